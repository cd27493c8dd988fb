/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc */

/* A call about a turn lacks memory, or its reply is lost: it is repeated later, and no turn is lost or taken twice. */

#include <signal.h>
#include <stdlib.h>

#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/wrap.h"

WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_ZEROED_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, NULL, void *, realloc, (void *old, size_t size), (old, size))

#define ROUNDS_MAX 200
#define DUE INT64_C(1700000000)

static const struct store_pool pools[] = {{.name = "@j", .limit = 1, .queue_limit = 100}};

/* Makes a claim that asks for the turn of a due time. */
static struct probe *ask_for(struct bed *b, unsigned host, struct claim_turn *turn, int64_t due) {
    struct probe *p = bed_probe(b, host, "x:1");

    snprintf(p->demands.items[0].pool, sizeof(p->demands.items[0].pool), "@j");
    *turn = (struct claim_turn) {.pool = p->demands.items[0].pool, .due = due, .again_usec = USEC_INFINITY};
    p->claim.turn = turn;
    return p;
}

/* Takes, commits and gives back a turn, which another host then takes. Allocation number `from` of its kind fails, counted
 * from the call to its answer. Returns whether there was such an allocation. */
static bool lives(struct bed *b, enum fault_kind kind, unsigned from, int64_t due) {
    struct claim_turn turn, next;
    struct probe *first = ask_for(b, 0, &turn, due), *second = ask_for(b, 1, &next, due);
    unsigned n_committed = b->n_committed;
    bool is_met;
    int r;

    fault_begin(kind, from, 1);
    r = store_claim(b->stores[0], &first->claim);
    if (r == -ENOMEM) { /* the caller keeps the claim */
        fault_end();
        TEST_INT(store_claim(b->stores[0], &first->claim), 0);
    }
    BED_UNTIL(b, first->n_granted > 0);
    store_commit(b->stores[0], &first->claim);
    BED_UNTIL(b, b->n_committed == n_committed + 1);
    TEST_INT(turn.attempt, 1);
    store_give_back(b->stores[0], &first->claim, 2, 0);
    BED_UNTIL(b, first->n_released > 0);
    is_met = fault_end();
    TEST_INT(store_claim(b->stores[1], &second->claim), 0);
    BED_UNTIL(b, second->n_granted > 0);
    TEST_INT(next.attempt, 2);
    store_release(b->stores[1], &second->claim);
    BED_UNTIL(b, second->n_released > 0);
    first->claim.turn = second->claim.turn = NULL;
    return is_met;
}

static void each_fails(enum fault_kind kind) {
    unsigned from = 1;
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(2), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    while (from < ROUNDS_MAX && lives(&b, kind, from, DUE + from))
        from++;
    CU_ASSERT(from > 1 && from < ROUNDS_MAX);
    bed_done(&b);
}

static void test_memory(void) {
    each_fails(FAULT_MEMORY);
}

static void test_zeroed_memory(void) {
    each_fails(FAULT_ZEROED_MEMORY);
}

static void on_passed(int r, void *userdata) {
    *(int *) userdata = r;
}

#define NO_REPLY 1000

/* A pass fails, and its caller asks again with the same id. */
static void test_pass(void) {
    struct store_pass pass = {.pool = "@j", .due = DUE, .id = "m1"};
    int done = NO_REPLY;
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(2), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    fault_begin(FAULT_MEMORY, 1, 1);
    TEST_INT(store_pass(b.stores[0], &pass, on_passed, &done), -ENOMEM);
    CU_ASSERT(fault_end());
    TEST_INT(store_pass(b.stores[0], &pass, on_passed, &done), 0);
    BED_UNTIL(&b, done != NO_REPLY);
    TEST_INT(done, 0);
    bed_done(&b);
}

/* Redis has lost its scripts, or its data: a pass is answered although the connection stays. */
static void test_pass_is_answered(void) {
    struct store_pass pass = {.pool = "@j", .due = DUE, .id = "m1"};
    const char *const losses[] = {"SCRIPT FLUSH", "FLUSHALL"};
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(1), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    for (size_t i = 0; i < ELEMENTSOF(losses); i++) {
        int done = NO_REPLY;

        BED_UNTIL(&b, heartbeat_is_ready(store_redis_of(b.stores[0])));
        redis_bed_command(losses[i]);
        TEST_INT(store_pass(b.stores[0], &pass, on_passed, &done), 0);
        BED_UNTIL(&b, done != NO_REPLY);
        TEST_INT(done, -ENOTCONN);
    }
    bed_done(&b);
}

static void on_shared(int r, const struct store_shared *shared, void *userdata) {
    CU_ASSERT((r == 0) == (shared != NULL));
    *(int *) userdata = r == 0 ? (int) shared->n_hosts : r;
}

static void test_hosts(void) {
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(2), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    for (enum fault_kind kind = FAULT_MEMORY; kind <= FAULT_ZEROED_MEMORY; kind++) {
        bool is_met = true;

        for (unsigned from = 1; is_met; from++) {
            int done = NO_REPLY, r;

            fault_begin(kind, from, 1);
            r = store_ask_shared(b.stores[1], "@j", on_shared, &done);
            if (r == 0)
                BED_UNTIL(&b, done != NO_REPLY);
            is_met = fault_end();
            CU_ASSERT(is_met || (r == 0 && done == 2));
            CU_ASSERT(done == 2 || done < 0 || r < 0);
            BED_UNTIL(&b, bed_all_ready(&b));
            CU_ASSERT_FATAL(from < ROUNDS_MAX);
        }
    }
    bed_done(&b);
}

static void on_ended(int r, const struct store_ended_turns *ended, void *userdata) {
    CU_ASSERT((r == 0) == (ended != NULL));
    *(int *) userdata = r == 0 ? (int) ended->n_turns : r;
}

/* Each allocation fails once, from the call to its answer: the caller gets an error, and asks again. */
static void test_stop(void) {
    struct claim_turn turn;
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(2), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    for (enum fault_kind kind = FAULT_MEMORY; kind <= FAULT_ZEROED_MEMORY; kind++) {
        bool is_met = true;

        for (unsigned from = 1; is_met; from++) {
            struct probe *p = ask_for(&b, 0, &turn, DUE + kind * ROUNDS_MAX + from);
            int done = NO_REPLY, again = NO_REPLY, r;

            TEST_INT(store_claim(b.stores[0], &p->claim), 0);
            BED_UNTIL(&b, p->n_granted > 0);
            store_give_back(b.stores[0], &p->claim, 2, 0);
            BED_UNTIL(&b, p->n_released > 0);
            p->claim.turn = NULL;
            fault_begin(kind, from, 1);
            r = store_end_turns(b.stores[1], "@j", on_ended, &done);
            if (r == 0)
                BED_UNTIL(&b, done != NO_REPLY);
            is_met = fault_end();
            CU_ASSERT(is_met || (r == 0 && done == 1));
            BED_UNTIL(&b, bed_all_ready(&b));
            TEST_INT(store_end_turns(b.stores[1], "@j", on_ended, &again), 0);
            BED_UNTIL(&b, again != NO_REPLY);
            CU_ASSERT(again == 0 || (again == 1 && done != 1)); /* once */
            CU_ASSERT_FATAL(from < ROUNDS_MAX);
        }
    }
    bed_done(&b);
}

/* A host reports the marks that it knows. This needs no memory, and works after a reload, too. */
static void test_remembered(void) {
    struct claim_turn turn;
    struct probe *late;
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(2), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    fault_begin(FAULT_MEMORY, 1, 1000);
    store_remember(b.stores[0], "@j", DUE);
    CU_ASSERT(!fault_end());
    TEST_INT(store_declare(b.stores[0], pools, ELEMENTSOF(pools), false), 0); /* a reload */
    redis_bed_command("FLUSHALL");
    BED_UNTIL(&b, !bed_all_ready(&b));
    BED_UNTIL(&b, bed_all_ready(&b));
    late = ask_for(&b, 1, &turn, DUE);
    TEST_INT(store_claim(b.stores[1], &late->claim), 0);
    BED_UNTIL(&b, b.n_turns_refused == 1);
    late->claim.turn = NULL;
    bed_done(&b);
}

/* The turn is given back, and the reply is lost with the connection: the permit is not taken again. */
static void test_reply_lost(void) {
    usec_t lease = redis_bed.lease, timeout = redis_bed.timeout;
    struct claim_turn turn;
    struct probe *p;
    struct bed b;

    redis_bed.lease = 60 * USEC_PER_SEC;
    redis_bed.timeout = USEC_PER_SEC / 2;
    if (!bed_init(&b, redis_bed_fixture(1), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    p = ask_for(&b, 0, &turn, DUE);
    TEST_INT(store_claim(b.stores[0], &p->claim), 0);
    BED_UNTIL(&b, p->n_granted > 0);
    store_commit(b.stores[0], &p->claim);
    BED_UNTIL(&b, b.n_committed == 1);
    TEST_INT(kill(redis_bed.server.pid, SIGSTOP), 0);
    store_give_back(b.stores[0], &p->claim, 2, 0);
    BED_UNTIL(&b, b.stores[0]->state == STORE_STATE_AWAY);
    TEST_INT(kill(redis_bed.server.pid, SIGCONT), 0); /* Redis reads the call first */
    BED_UNTIL(&b, p->n_released > 0);
    TEST_INT(p->claim.released, 0);
    p->claim.turn = NULL;
    bed_done(&b);
    redis_bed.lease = lease;
    redis_bed.timeout = timeout;
}

/* Redis loses its data between the grant and the commit. The host reports its turn before it commits the
 * turn. */
static void test_new_epoch(void) {
    struct claim_turn turn;
    struct probe *p;
    struct bed b;

    if (!bed_init(&b, redis_bed_fixture(1), pools, ELEMENTSOF(pools)) || !bed_start(&b))
        return;
    p = ask_for(&b, 0, &turn, DUE);
    TEST_INT(store_claim(b.stores[0], &p->claim), 0);
    BED_UNTIL(&b, p->n_granted > 0);
    redis_bed_command("FLUSHALL");
    store_commit(b.stores[0], &p->claim);
    BED_UNTIL(&b, b.n_committed == 1);
    store_release(b.stores[0], &p->claim);
    BED_UNTIL(&b, p->n_released > 0);
    p->claim.turn = NULL;
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"taken, committed, given back", test_memory},
    {"taken, committed, given back: zeroed memory", test_zeroed_memory},
    {"passed", test_pass},
    {"passed: answered on a connection that stays", test_pass_is_answered},
    {"hosts", test_hosts},
    {"stop", test_stop},
    {"remembered", test_remembered},
    {"a reply is lost", test_reply_lost},
    {"new epoch", test_new_epoch},
    CU_TEST_INFO_NULL,
};

TEST_MAIN(redis_bed_main(argc, argv, suites, NULL),
          {.pName = "turns of store-redis, failing", .pTests = tests})
