/* SPDX-License-Identifier: MIT */

/* Snapshots of host pools. */

#include "store/memory/pool-snapshot.h"

#include "tests/harness/host/asker.h"
#include "tests/harness/test.h"

static void test_snapshot_is_bounded(void) {
    static struct asker *a[SNAPSHOT_LIST_MAX + 20], *w[SNAPSHOT_LIST_MAX + 20];
    struct snapshot *s = NULL;
    struct pools p;

    pools_init(&p);
    asker_declare(&p, "db", ELEMENTSOF(a), 10000);
    pools_open(&p, NOW);
    for (size_t i = 0; i < ELEMENTSOF(a); i++)
        a[i] = asker_ask(&p, "db", NOW);
    for (size_t i = 0; i < ELEMENTSOF(w); i++)
        w[i] = asker_ask(&p, "db", NOW);
    TEST_INT(pool_override(pools_find(&p, "db"), 7, 5000, "why"), 0);
    TEST_INT(pools_snapshot(&p, "ant", 2000, NOW + 10, &s), 0);
    TEST_INT(s->n_pools, 1);
    TEST_INT(s->pools[0].used, ELEMENTSOF(a));
    TEST_INT(s->pools[0].n_holders, SNAPSHOT_LIST_MAX);
    TEST_INT(s->pools[0].waiting, ELEMENTSOF(w));
    TEST_INT(s->pools[0].n_queue, SNAPSHOT_LIST_MAX);
    TEST_INT(s->n_mine, ELEMENTSOF(w));
    TEST_INT(s->pools[0].limit, 7);
    CU_ASSERT(s->pools[0].override_until == NOW + 10 + 3000);
    TEST_INT(s->pools[0].queue[0].waiting_usec, 10);
    CU_ASSERT_PTR_NULL(snapshot_free(s));
    for (size_t i = 0; i < ELEMENTSOF(a); i++)
        asker_give_back(&p, a[i], NOW);
    for (size_t i = 0; i < ELEMENTSOF(w); i++)
        asker_give_back(&p, w[i], NOW);
    pools_done(&p);
}

static void test_snapshot_of_parked(void) {
    struct snapshot *s = NULL;
    struct pools p;

    asker_begin(&p);
    struct asker *holder = asker_ask(&p, "net", NOW), *queued = asker_ask(&p, "net", NOW), *parked = asker_new("net:2");
    size_t refused = 0;
    TEST_INT(pools_claim(&p, &parked->claim, NOW, &parked->in_pools, &refused), 0);
    TEST_INT(pools_snapshot(&p, "ant", 0, NOW, &s), 0);
    TEST_INT(s->pools[1].waiting, 1);
    TEST_INT(s->pools[1].parked, 1);
    CU_ASSERT_FATAL(s->pools[1].n_queue == 2);
    TEST_INT(s->pools[1].queue[0].position, 1);
    TEST_STRING(s->pools[1].queue[1].claim, parked->claim.id);
    TEST_INT(s->pools[1].queue[1].position, 0);
    TEST_INT(s->n_mine, 1); /* no place in any queue */
    snapshot_free(s);
    asker_give_back(&p, parked, NOW);
    asker_give_back(&p, queued, NOW);
    asker_give_back(&p, holder, NOW);
    pools_done(&p);
}

static void test_free_functions_take_null(void) {
    CU_ASSERT_PTR_NULL(pool_claim_free(NULL));
    CU_ASSERT_PTR_NULL(snapshot_free(NULL));
}

static CU_TestInfo tests[] = {
    {"bounded", test_snapshot_is_bounded},
    {"of parked claims", test_snapshot_of_parked},
    {"free functions take NULL", test_free_functions_take_null},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "pool-snapshot", .pTests = tests});
