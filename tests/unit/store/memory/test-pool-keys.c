/* SPDX-License-Identifier: MIT */

/* store/memory: patterns and their keys. tests/harness/store/store-suite-keys.c has what both stores do. */

#include <string.h>

#include "store/memory/pool-snapshot.h"
#include "store/memory/pool.h"
#include "tests/harness/host/asker.h"
#include "tests/harness/test.h"


static size_t count_pools(const struct pools *p) {
    size_t n = 0;

    list_foreach(pool, &p->pools, struct pool, link)
        n++;
    return n;
}

static void begin(struct pools *p) {
    asker_begin(p);
    asker_declare(p, "tenant/*", 1, 1);
    pools_reevaluate(p, NOW);
}

static void test_vanishes(void) {
    struct pools p;

    begin(&p);
    size_t before = count_pools(&p);
    struct asker *a = asker_ask(&p, "tenant/a", NOW), *b = asker_ask(&p, "tenant/a", NOW);
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_HELD);
    TEST_INT(b->in_pools->state, POOL_CLAIM_STATE_WAITING);
    TEST_INT(count_pools(&p), before + 1);
    asker_give_back(&p, a, NOW);
    TEST_INT(b->in_pools->state, POOL_CLAIM_STATE_HELD);
    asker_give_back(&p, b, NOW);
    TEST_INT(count_pools(&p), before);
    pools_done(&p);
}

/* A claim that is refused makes no key. */
static void test_refused(void) {
    struct asker *c = asker_new("tenant/a"), *unknown = asker_new("tenant/b,none");
    size_t refused = 9;
    struct pools p;

    begin(&p);
    size_t before = count_pools(&p);
    TEST_INT(pool_override(pools_find(&p, "tenant/*"), 0, USEC_INFINITY, NULL), 0);
    c->claim.nowait = true;
    TEST_INT(pools_claim(&p, &c->claim, NOW, &c->in_pools, &refused), POOL_E_BUSY);
    TEST_INT(refused, 0);
    asker_give_back(&p, c, NOW);
    TEST_INT(pools_claim(&p, &unknown->claim, NOW, &unknown->in_pools, &refused), -ENOENT);
    TEST_INT(count_pools(&p), before);
    free(unknown);
    pools_done(&p);
}

/* An override keeps an idle key, until it is cleared or the pattern leaves the config. */
static void test_override_stays(void) {
    struct pool *key;
    struct pools p;

    begin(&p);
    size_t before = count_pools(&p);
    TEST_INT(pools_get(&p, "tenant/a", &key), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(key);
    TEST_INT(pool_override(key, 3, USEC_INFINITY, NULL), 0);
    CU_ASSERT(pool_has_new_limit(key));
    pools_reevaluate(&p, NOW);
    CU_ASSERT_PTR_EQUAL(pools_find(&p, "tenant/a"), key);
    TEST_INT(pool_limit(key), 3);
    CU_ASSERT_FALSE(pool_has_new_limit(key));
    pool_clear(key);
    CU_ASSERT(pool_has_new_limit(key));
    CU_ASSERT_FALSE(pool_has_own_limit(key));
    pools_reevaluate(&p, NOW);
    TEST_INT(count_pools(&p), before);
    TEST_INT(pools_get(&p, "other/a", &key), 0);
    CU_ASSERT_PTR_NULL(key);
    pools_done(&p);
}

/* The pattern leaves the config while a key is held: the key keeps its limit, and both go with its last claim. */
static void test_pattern_undeclared(void) {
    struct pools p;

    begin(&p);
    struct asker *a = asker_ask(&p, "tenant/a", NOW), *b = asker_ask(&p, "tenant/a", NOW);
    pools_undeclare(&p);
    pools_reevaluate(&p, NOW);
    TEST_INT(pool_limit(pools_find(&p, "tenant/a")), 1);
    asker_give_back(&p, a, NOW);
    TEST_INT(b->in_pools->state, POOL_CLAIM_STATE_HELD);
    asker_give_back(&p, b, NOW);
    TEST_INT(count_pools(&p), 0);
    pools_done(&p);
}

static CU_TestInfo tests[] = {
    {"an idle key vanishes", test_vanishes},
    {"a refused claim makes no key", test_refused},
    {"an override stays", test_override_stays},
    {"the pattern leaves the config", test_pattern_undeclared},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "pool-keys", .pTests = tests});
