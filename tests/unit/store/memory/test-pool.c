/* SPDX-License-Identifier: MIT */

/* The core of the host's semaphore, beyond the contract tests of stores: time that is passed in, inner
 * bookkeeping, cost. */

#include "store/memory/pool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/harness/host/asker.h"
#include "tests/harness/test.h"

static void test_clock(void) {
    struct pools p;

    asker_begin(&p);
    struct asker *a = asker_ask(&p, "db", NOW), *b = asker_ask(&p, "db", NOW - 1000), *c = asker_ask(&p, "db", NOW + 1000);
    CU_ASSERT(a->in_pools->ticket == NOW && a->in_pools->token == NOW + 1);
    CU_ASSERT(b->in_pools->ticket == NOW + 2 && b->in_pools->token == NOW + 3); /* the clock was set back */
    CU_ASSERT(c->in_pools->ticket == NOW + 1000);
    asker_give_back(&p, a, NOW);
    asker_give_back(&p, b, NOW);
    asker_give_back(&p, c, NOW);
    pools_done(&p);
}

static void test_nothing_before_open(void) {
    size_t refused = 0;
    struct pools p;

    pools_init(&p);
    asker_declare(&p, "db", 4, 10);
    struct asker *a = asker_ask(&p, "db", NOW), *now = asker_new("db");
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_WAITING);
    now->claim.nowait = true;
    TEST_INT(pools_claim(&p, &now->claim, NOW, &now->in_pools, &refused), POOL_E_BUSY);
    TEST_INT(refused, 0);
    pools_open(&p, NOW);
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_HELD);
    CU_ASSERT_FALSE(list_is_empty(&p.changed)); /* not by a call of its owner */
    asker_give_back(&p, a, NOW);
    asker_give_back(&p, now, NOW);
    pools_done(&p);
}

static void test_unknown_pool(void) {
    struct asker *a = asker_new("db,none");
    size_t refused = 0;
    struct pools p;

    asker_begin(&p);
    TEST_INT(pools_claim(&p, &a->claim, NOW, &a->in_pools, &refused), -ENOENT);
    CU_ASSERT(list_is_empty(&p.claims));
    free(a);
    pools_done(&p);
}

/* A pool that left the config stays, with its limit, while claims are in it, and takes no new ones. */
static void test_undeclared(void) {
    size_t refused = 0;
    struct pools p;

    asker_begin(&p);
    struct asker *a = asker_ask(&p, "db:4", NOW), *b = asker_ask(&p, "db:2", NOW), *late = asker_new("db");
    pools_undeclare(&p);
    asker_declare(&p, "net", 1, 10);
    pools_reevaluate(&p, NOW);
    TEST_INT(pools_claim(&p, &late->claim, NOW, &late->in_pools, &refused), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(pools_find(&p, "db"));
    asker_give_back(&p, a, NOW);
    TEST_INT(b->in_pools->state, POOL_CLAIM_STATE_HELD);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pools_find(&p, "db"));
    asker_give_back(&p, b, NOW);
    CU_ASSERT_PTR_NULL(pools_find(&p, "db"));
    CU_ASSERT_PTR_NOT_NULL(pools_find(&p, "net"));
    free(late);
    pools_done(&p);
}

/* R5: a wrong count of used permits lasts until the next call, which counts the records. */
static void test_used_is_counted(void) {
    struct pools p;

    asker_begin(&p);
    struct asker *a = asker_ask(&p, "db:3", NOW);
    pools_find(&p, "db")->used = 4000;
    struct asker *b = asker_ask(&p, "db:1", NOW);
    TEST_INT(b->in_pools->state, POOL_CLAIM_STATE_HELD);
    pools_find(&p, "db")->used = 0;
    struct asker *c = asker_ask(&p, "db:1", NOW);
    TEST_INT(c->in_pools->state, POOL_CLAIM_STATE_WAITING);
    asker_give_back(&p, a, NOW);
    TEST_INT(c->in_pools->state, POOL_CLAIM_STATE_HELD);
    asker_give_back(&p, b, NOW);
    asker_give_back(&p, c, NOW);
    pools_done(&p);
}

static void test_overrides_end(void) {
    struct pools p;

    asker_begin(&p);
    struct pool *db = pools_find(&p, "db"), *net = pools_find(&p, "net");
    TEST_INT(pool_override(db, 3, 1000, "less"), 0);
    TEST_INT(pool_override(net, 3, USEC_INFINITY, NULL), 0);
    CU_ASSERT(pool_has_new_limit(db));
    pools_reevaluate(&p, NOW);
    CU_ASSERT_FALSE(pool_has_new_limit(db));
    CU_ASSERT(pools_expire(&p, 999) == 1000);
    TEST_INT(pool_limit(db), 3);
    CU_ASSERT(pools_expire(&p, 1000) == USEC_INFINITY);
    TEST_INT(pool_limit(db), 4);
    TEST_INT(pool_limit(net), 3);
    /* When a pause ends, the override that it replaced is in force again, unless that has ended, too. */
    TEST_INT(pool_override(db, 3, 3000, "less"), 0);
    TEST_INT(pool_pause(db, 2000, NULL), 0);
    CU_ASSERT(pools_expire(&p, 1500) == 2000);
    TEST_INT(pool_limit(db), 0);
    CU_ASSERT(pools_expire(&p, 2000) == 3000);
    TEST_INT(pool_limit(db), 3);
    TEST_STRING(db->override.reason, "less");
    TEST_INT(pool_pause(db, 4000, "again"), 0);
    CU_ASSERT(pools_expire(&p, 3500) == 4000);
    CU_ASSERT(pools_expire(&p, 4000) == USEC_INFINITY);
    TEST_INT(pool_limit(db), 4);
    /* An override that replaces a pause stays after a resume: the earlier override does not come back. */
    TEST_INT(pool_override(db, 3, USEC_INFINITY, NULL), 0);
    TEST_INT(pool_pause(db, USEC_INFINITY, NULL), 0);
    TEST_INT(pool_override(db, 2, USEC_INFINITY, NULL), 0);
    pool_resume(db, 5000);
    TEST_INT(pool_limit(db), 2);
    pools_done(&p);
}

/* All claims that a raised limit unparks are in the queues before anything is granted. */
static void test_unpark_before_grant(void) {
    struct pools p;

    asker_begin(&p);
    struct pool *db = pools_find(&p, "db"), *net = pools_find(&p, "net");
    TEST_INT(pool_pause(net, USEC_INFINITY, NULL), 0);
    TEST_INT(pool_pause(db, USEC_INFINITY, NULL), 0);
    pools_reevaluate(&p, NOW);
    struct asker *old = asker_ask(&p, "net:1,db:4", NOW), *late = asker_ask(&p, "db:4", NOW);
    pool_resume(db, 0);
    pool_resume(net, 0);
    pools_reevaluate(&p, NOW);
    TEST_INT(old->in_pools->state, POOL_CLAIM_STATE_HELD);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_WAITING);
    asker_give_back(&p, old, NOW);
    asker_give_back(&p, late, NOW);
    pools_done(&p);
}

/* The same where the claims meet in a pool that was never too small, and the pool of the younger one
 * comes first. */
static void test_unpark_all_before_grant(void) {
    struct pools p;

    asker_begin(&p); /* db, net */
    asker_declare(&p, "one", 0, 10);
    asker_declare(&p, "db", 0, 10);
    pools_reevaluate(&p, NOW);
    struct asker *old = asker_ask(&p, "net,one", NOW), *late = asker_ask(&p, "db,net", NOW);
    TEST_INT(old->in_pools->state, POOL_CLAIM_STATE_PARKED);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_PARKED);
    asker_declare(&p, "one", 1, 10);
    asker_declare(&p, "db", 1, 10);
    pools_reevaluate(&p, NOW);
    TEST_INT(old->in_pools->state, POOL_CLAIM_STATE_HELD);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_WAITING);
    asker_give_back(&p, old, NOW);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_HELD);
    asker_give_back(&p, late, NOW);
    pools_done(&p);
}

static void test_huge_head_start(void) {
    struct pools p;

    asker_begin(&p);
    struct asker *holder = asker_ask(&p, "net", NOW), *normal = asker_ask(&p, "net", NOW), *a = asker_new("net"), *b = asker_new("net");
    size_t refused = 0;
    a->claim.head_start_usec = b->claim.head_start_usec = USEC_INFINITY;
    TEST_INT(pools_claim(&p, &a->claim, NOW, &a->in_pools, &refused), 0);
    TEST_INT(pools_claim(&p, &b->claim, NOW, &b->in_pools, &refused), 0);
    TEST_INT(a->in_pools->position, 1);
    TEST_INT(b->in_pools->position, 2); /* the same place: the older ticket first */
    asker_give_back(&p, holder, NOW);
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_HELD);
    asker_give_back(&p, normal, NOW);
    asker_give_back(&p, a, NOW);
    asker_give_back(&p, b, NOW);
    pools_done(&p);
}

/* Adopted permits are held beyond the limit, and 2^32 does not wrap. */
static void test_far_beyond_the_limit(void) {
    struct asker *held[3];
    struct pools p;

    pools_init(&p);
    asker_declare(&p, "db", 1, 10);
    for (int i = 0; i < 3; i++) {
        held[i] = asker_new("db:1000");
        held[i]->claim.token = NOW + (usec_t) i;
        TEST_INT(pools_adopt(&p, &held[i]->claim, NOW, &held[i]->in_pools), 0);
    }
    pools_open(&p, NOW);
    struct asker *a = asker_ask(&p, "db:1", NOW);
    TEST_INT(pool_used(pools_find(&p, "db")), 3000);
    for (int i = 0; i < 3; i++) {
        TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_WAITING);
        asker_give_back(&p, held[i], NOW);
    }
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_HELD);
    asker_give_back(&p, a, NOW);
    pools_done(&p);
}

/* Adopted permits of a pool that the config does not have count there. The pool goes with its last claim. */
static void test_adopt_undeclared(void) {
    struct asker *a = asker_new("gone:2");
    struct pools p;

    asker_begin(&p);
    a->claim.token = NOW;
    TEST_INT(pools_adopt(&p, &a->claim, NOW, &a->in_pools), 0);
    TEST_INT(pool_used(pools_find(&p, "gone")), 2);
    TEST_INT(pool_limit(pools_find(&p, "gone")), 0);
    asker_give_back(&p, a, NOW);
    CU_ASSERT_PTR_NULL(pools_find(&p, "gone"));
    pools_done(&p);
}

static double cpu_seconds(void) {
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

#define MANY 30000

/* Many waiting claims: arrivals, a pause, a resume, and grants one by one cost about the same each. */
static void test_many(void) {
    static struct asker *a[MANY];
    struct pools p;
    double begun = cpu_seconds();

    pools_init(&p);
    asker_declare(&p, "db", 2, MANY);
    pools_open(&p, NOW);
    for (size_t i = 0; i < MANY; i++)
        a[i] = asker_ask(&p, "db:2", NOW + i * 2);
    TEST_INT(a[MANY - 1]->in_pools->position, MANY - 1);
    struct pool *db = pools_find(&p, "db");
    TEST_INT(pool_pause(db, USEC_INFINITY, NULL), 0);
    pools_reevaluate(&p, NOW);
    TEST_INT(db->n_parked, MANY - 1);
    pool_resume(db, 0);
    pools_reevaluate(&p, NOW);
    TEST_INT(db->n_queue, MANY - 1);
    for (size_t i = 0; i < MANY; i++) {
        if (a[i]->in_pools->state != POOL_CLAIM_STATE_HELD)
            CU_FAIL("not in order");
        asker_give_back(&p, a[i], NOW);
    }
    TEST_INT(db->n_queue + db->n_parked, 0);
    CU_ASSERT(cpu_seconds() - begun < 1.5); /* measured: 0.02 s; quadratic cost would be far above */
    pools_done(&p);
}

static CU_TestInfo tests[] = {
    {"clock", test_clock},
    {"nothing before open", test_nothing_before_open},
    {"unknown pool", test_unknown_pool},
    {"undeclared", test_undeclared},
    {"used is counted", test_used_is_counted},
    {"overrides end", test_overrides_end},
    {"unpark before grant", test_unpark_before_grant},
    {"unpark all before grant", test_unpark_all_before_grant},
    {"huge head start", test_huge_head_start},
    {"far beyond the limit", test_far_beyond_the_limit},
    {"adopt undeclared", test_adopt_undeclared},
    {"many", test_many},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "pool", .pTests = tests});
