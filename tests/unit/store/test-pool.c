/* SPDX-License-Identifier: MIT */

/* The core of the host's semaphore, where the contract tests of stores do not reach: time passed in, inner bookkeeping, cost. */

#include "store/memory/pool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/memory/pool-snapshot.h"
#include "tests/harness/test.h"

#define NOW ((usec_t) 1700000000000000)

/* A claim as an owner has it. */
struct asker {
    struct claim claim;
    struct demands demands;
    struct pool_claim *in_pools;
};

static struct asker *ask_new(const char *pools) {
    struct asker *a = calloc(1, sizeof(*a));

    if (!a || demands_parse(pools, &a->demands) != 0)
        abort();
    snprintf(a->claim.id, sizeof(a->claim.id), "%p", (void *) a);
    a->claim.demands = a->demands.items;
    a->claim.n_demands = a->demands.n;
    return a;
}

static struct asker *ask(struct pools *p, const char *pools, usec_t now) {
    struct asker *a = ask_new(pools);
    struct pool *pool = NULL;

    TEST_INT(pools_claim(p, &a->claim, now, &a->in_pools, &pool), 0);
    return a;
}

static void give_back(struct pools *p, struct asker *a, usec_t now) {
    pools_leave(p, a->in_pools, now);
    pool_claim_free(a->in_pools);
    free(a);
}

static void declare(struct pools *p, const char *name, uint32_t limit, uint32_t queue_limit) {
    struct pool *pool;

    if (pools_make(p, name, &pool) < 0)
        abort();
    pool_declare(pool, limit, queue_limit);
}

static void begin(struct pools *p) {
    pools_init(p);
    declare(p, "db", 4, 10000);
    declare(p, "net", 1, 10000);
    pools_open(p, NOW);
}

static void test_clock(void) {
    struct pools p;

    begin(&p);
    struct asker *a = ask(&p, "db", NOW), *b = ask(&p, "db", NOW - 1000), *c = ask(&p, "db", NOW + 1000);
    CU_ASSERT(a->in_pools->ticket == NOW && a->in_pools->token == NOW + 1);
    CU_ASSERT(b->in_pools->ticket == NOW + 2 && b->in_pools->token == NOW + 3); /* the clock was set back */
    CU_ASSERT(c->in_pools->ticket == NOW + 1000);
    give_back(&p, a, NOW);
    give_back(&p, b, NOW);
    give_back(&p, c, NOW);
    pools_done(&p);
}

static void test_nothing_before_open(void) {
    struct pool *pool = NULL;
    struct pools p;

    pools_init(&p);
    declare(&p, "db", 4, 10);
    struct asker *a = ask(&p, "db", NOW), *now = ask_new("db");
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_WAITING);
    now->claim.nowait = true;
    TEST_INT(pools_claim(&p, &now->claim, NOW, &now->in_pools, &pool), POOL_E_BUSY);
    CU_ASSERT_PTR_EQUAL(pool, pools_find(&p, "db"));
    pools_open(&p, NOW);
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_HELD);
    CU_ASSERT_FALSE(list_is_empty(&p.changed)); /* not its own doing */
    give_back(&p, a, NOW);
    give_back(&p, now, NOW);
    pools_done(&p);
}

static void test_unknown_pool(void) {
    struct asker *a = ask_new("db,none");
    struct pool *pool = NULL;
    struct pools p;

    begin(&p);
    TEST_INT(pools_claim(&p, &a->claim, NOW, &a->in_pools, &pool), -ENOENT);
    CU_ASSERT(list_is_empty(&p.claims));
    free(a);
    pools_done(&p);
}

/* A pool that left the config stays, with its limit, while claims are in it, and takes no new ones. */
static void test_undeclared(void) {
    struct pool *pool = NULL;
    struct pools p;

    begin(&p);
    struct asker *a = ask(&p, "db:4", NOW), *b = ask(&p, "db:2", NOW), *late = ask_new("db");
    pools_undeclare(&p);
    declare(&p, "net", 1, 10);
    pools_reevaluate(&p, NOW);
    TEST_INT(pools_claim(&p, &late->claim, NOW, &late->in_pools, &pool), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(pools_find(&p, "db"));
    give_back(&p, a, NOW);
    TEST_INT(b->in_pools->state, POOL_CLAIM_STATE_HELD);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pools_find(&p, "db"));
    give_back(&p, b, NOW);
    CU_ASSERT_PTR_NULL(pools_find(&p, "db"));
    CU_ASSERT_PTR_NOT_NULL(pools_find(&p, "net"));
    free(late);
    pools_done(&p);
}

/* R5: a number that is wrong in a pool is wrong until the next call looks at the records. */
static void test_used_is_counted(void) {
    struct pools p;

    begin(&p);
    struct asker *a = ask(&p, "db:3", NOW);
    pools_find(&p, "db")->used = 4000;
    struct asker *b = ask(&p, "db:1", NOW);
    TEST_INT(b->in_pools->state, POOL_CLAIM_STATE_HELD);
    pools_find(&p, "db")->used = 0;
    struct asker *c = ask(&p, "db:1", NOW);
    TEST_INT(c->in_pools->state, POOL_CLAIM_STATE_WAITING);
    give_back(&p, a, NOW);
    TEST_INT(c->in_pools->state, POOL_CLAIM_STATE_HELD);
    give_back(&p, b, NOW);
    give_back(&p, c, NOW);
    pools_done(&p);
}

static void test_overrides_end(void) {
    struct pools p;

    begin(&p);
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
    /* A pause that ends gives way to what it had replaced, if that has not ended itself meanwhile. */
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
    /* Another override takes the place of a pause, too: nothing comes back. */
    TEST_INT(pool_override(db, 3, USEC_INFINITY, NULL), 0);
    TEST_INT(pool_pause(db, USEC_INFINITY, NULL), 0);
    TEST_INT(pool_override(db, 2, USEC_INFINITY, NULL), 0);
    pool_resume(db, 5000);
    TEST_INT(pool_limit(db), 2);
    pools_done(&p);
}

/* All that a raised limit brings back is in the queues before anything is granted. */
static void test_unpark_before_grant(void) {
    struct pools p;

    begin(&p);
    struct pool *db = pools_find(&p, "db"), *net = pools_find(&p, "net");
    TEST_INT(pool_pause(net, USEC_INFINITY, NULL), 0);
    TEST_INT(pool_pause(db, USEC_INFINITY, NULL), 0);
    pools_reevaluate(&p, NOW);
    struct asker *old = ask(&p, "net:1,db:4", NOW), *late = ask(&p, "db:4", NOW);
    pool_resume(db, 0);
    pool_resume(net, 0);
    pools_reevaluate(&p, NOW);
    TEST_INT(old->in_pools->state, POOL_CLAIM_STATE_HELD);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_WAITING);
    give_back(&p, old, NOW);
    give_back(&p, late, NOW);
    pools_done(&p);
}

/* The same where they meet in a pool that was never too small: the younger one's pool comes first. */
static void test_unpark_all_before_grant(void) {
    struct pools p;

    begin(&p); /* db, net */
    declare(&p, "one", 0, 10);
    declare(&p, "db", 0, 10);
    pools_reevaluate(&p, NOW);
    struct asker *old = ask(&p, "net,one", NOW), *late = ask(&p, "db,net", NOW);
    TEST_INT(old->in_pools->state, POOL_CLAIM_STATE_PARKED);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_PARKED);
    declare(&p, "one", 1, 10);
    declare(&p, "db", 1, 10);
    pools_reevaluate(&p, NOW);
    TEST_INT(old->in_pools->state, POOL_CLAIM_STATE_HELD);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_WAITING);
    give_back(&p, old, NOW);
    TEST_INT(late->in_pools->state, POOL_CLAIM_STATE_HELD);
    give_back(&p, late, NOW);
    pools_done(&p);
}

static void test_huge_head_start(void) {
    struct pools p;

    begin(&p);
    struct asker *holder = ask(&p, "net", NOW), *normal = ask(&p, "net", NOW), *a = ask_new("net"), *b = ask_new("net");
    struct pool *pool = NULL;
    a->claim.head_start_usec = b->claim.head_start_usec = USEC_INFINITY;
    TEST_INT(pools_claim(&p, &a->claim, NOW, &a->in_pools, &pool), 0);
    TEST_INT(pools_claim(&p, &b->claim, NOW, &b->in_pools, &pool), 0);
    TEST_INT(a->in_pools->position, 1);
    TEST_INT(b->in_pools->position, 2); /* the same place: the older ticket first */
    give_back(&p, holder, NOW);
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_HELD);
    give_back(&p, normal, NOW);
    give_back(&p, a, NOW);
    give_back(&p, b, NOW);
    pools_done(&p);
}

/* Adopted permits are held beyond the limit, and 2^32 does not wrap. */
static void test_far_beyond_the_limit(void) {
    struct asker *held[3];
    struct pools p;

    pools_init(&p);
    declare(&p, "db", 1, 10);
    for (int i = 0; i < 3; i++) {
        held[i] = ask_new("db:1000");
        held[i]->claim.token = NOW + (usec_t) i;
        TEST_INT(pools_adopt(&p, &held[i]->claim, NOW, &held[i]->in_pools), 0);
    }
    pools_open(&p, NOW);
    struct asker *a = ask(&p, "db:1", NOW);
    TEST_INT(pool_used(pools_find(&p, "db")), 3000);
    for (int i = 0; i < 3; i++) {
        TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_WAITING);
        give_back(&p, held[i], NOW);
    }
    TEST_INT(a->in_pools->state, POOL_CLAIM_STATE_HELD);
    give_back(&p, a, NOW);
    pools_done(&p);
}

/* Adopting into a pool that the config does not have: it counts there, and the pool goes with it. */
static void test_adopt_undeclared(void) {
    struct asker *a = ask_new("gone:2");
    struct pools p;

    begin(&p);
    a->claim.token = NOW;
    TEST_INT(pools_adopt(&p, &a->claim, NOW, &a->in_pools), 0);
    TEST_INT(pool_used(pools_find(&p, "gone")), 2);
    TEST_INT(pool_limit(pools_find(&p, "gone")), 0);
    give_back(&p, a, NOW);
    CU_ASSERT_PTR_NULL(pools_find(&p, "gone"));
    pools_done(&p);
}

static double cpu_seconds(void) {
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

#define MANY 30000

/* Many that wait: arrivals, a pause, a resume, and serving them all one by one cost about the same each. */
static void test_many(void) {
    static struct asker *a[MANY];
    struct pools p;
    double begun = cpu_seconds();

    pools_init(&p);
    declare(&p, "db", 2, MANY);
    pools_open(&p, NOW);
    for (size_t i = 0; i < MANY; i++)
        a[i] = ask(&p, "db:2", NOW + i * 2);
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
        give_back(&p, a[i], NOW);
    }
    TEST_INT(db->n_queue + db->n_parked, 0);
    CU_ASSERT(cpu_seconds() - begun < 1.5); /* measured: 0.02 s; squared it would be far above */
    pools_done(&p);
}

static void test_snapshot_is_bounded(void) {
    static struct asker *a[SNAPSHOT_LIST_MAX + 20], *w[SNAPSHOT_LIST_MAX + 20];
    struct snapshot *s = NULL;
    struct pools p;

    pools_init(&p);
    declare(&p, "db", ELEMENTSOF(a), 10000);
    pools_open(&p, NOW);
    for (size_t i = 0; i < ELEMENTSOF(a); i++)
        a[i] = ask(&p, "db", NOW);
    for (size_t i = 0; i < ELEMENTSOF(w); i++)
        w[i] = ask(&p, "db", NOW);
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
        give_back(&p, a[i], NOW);
    for (size_t i = 0; i < ELEMENTSOF(w); i++)
        give_back(&p, w[i], NOW);
    pools_done(&p);
}

static void test_snapshot_of_parked(void) {
    struct snapshot *s = NULL;
    struct pools p;

    begin(&p);
    struct asker *holder = ask(&p, "net", NOW), *queued = ask(&p, "net", NOW), *parked = ask_new("net:2");
    struct pool *pool = NULL;
    TEST_INT(pools_claim(&p, &parked->claim, NOW, &parked->in_pools, &pool), 0);
    TEST_INT(pools_snapshot(&p, "ant", 0, NOW, &s), 0);
    TEST_INT(s->pools[1].waiting, 1);
    TEST_INT(s->pools[1].parked, 1);
    CU_ASSERT_FATAL(s->pools[1].n_queue == 2);
    TEST_INT(s->pools[1].queue[0].position, 1);
    TEST_STRING(s->pools[1].queue[1].claim, parked->claim.id);
    TEST_INT(s->pools[1].queue[1].position, 0);
    TEST_INT(s->n_mine, 1); /* no place in any queue */
    snapshot_free(s);
    give_back(&p, parked, NOW);
    give_back(&p, queued, NOW);
    give_back(&p, holder, NOW);
    pools_done(&p);
}

static void test_free_functions_take_null(void) {
    CU_ASSERT_PTR_NULL(pool_claim_free(NULL));
    CU_ASSERT_PTR_NULL(snapshot_free(NULL));
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
    {"snapshot is bounded", test_snapshot_is_bounded},
    {"snapshot of parked", test_snapshot_of_parked},
    {"free functions take NULL", test_free_functions_take_null},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "pool", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
