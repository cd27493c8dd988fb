/* SPDX-License-Identifier: MIT */

/* Claims: granted, refused, given back, revoked; and the table of all tests. */

#include "tests/harness/store/store-suite-internal.h"

#include <stdlib.h>

static const struct store_fixture *fixture;

void store_suite_use(const struct store_fixture *f) {
    fixture = f;
}

const struct store_pool store_suite_pools[3] = {
    {.name = "db", .limit = 4, .queue_limit = 100},
    {.name = "net", .limit = 2, .queue_limit = 100},
    {.name = "one", .limit = 1, .queue_limit = 3},
};

bool store_suite_begin(struct bed *b) {
    return bed_init(b, fixture, store_suite_pools, ELEMENTSOF(store_suite_pools)) && bed_start(b);
}

const struct store_fixture *store_suite_fixture(void) {
    return fixture;
}

/* --- grants --- */

static void test_grant(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:2,net:1");
    probe_grant(p);
    TEST_INT(p->n_waiting, 0);
    CU_ASSERT(p->token > 1600000000000000); /* µs since 1970 (R7) */
    CU_ASSERT(p->token < 1ull << 53);
    TEST_INT(bed_used(&b, "db"), 2);
    TEST_INT(bed_used(&b, "net"), 1);
    TEST_INT(bed_used(&b, "one"), 0);
    probe_end(p);
    TEST_INT(bed_used(&b, "db"), 0);
    bed_done(&b);
}

static void test_order(void) {
    struct probe *waiting[8];
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:4");
    probe_grant(holder);
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
        probe_wait(waiting[i] = bed_probe(&b, i, "db:4"));
        TEST_INT(waiting[i]->claim.position, i + 1);
    }
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
        probe_still_waits(waiting[i]);
        probe_release(holder);
        BED_UNTIL(&b, waiting[i]->n_granted > 0);
        TEST_INT(waiting[i]->grant_number, i + 2);
        CU_ASSERT(waiting[i]->token > holder->token);
        CU_ASSERT(waiting[i]->ticket > holder->ticket);
        holder = waiting[i];
    }
    bed_done(&b);
}

/* R2: a claim that needs more than is free waits at the head, and free permits wait with it. */
static void test_head_blocks(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *three = bed_probe(&b, 0, "db:3"), *heavy = bed_probe(&b, 1, "db:4"), *light = bed_probe(&b, 2, "db:1");
    probe_grant(three);
    probe_wait(heavy);
    probe_wait(light); /* one is free, but not for it */
    probe_still_waits(light);
    TEST_INT(bed_used(&b, "db"), 3);
    probe_release(three);
    BED_UNTIL(&b, heavy->n_granted > 0);
    probe_still_waits(light);
    probe_release(heavy);
    BED_UNTIL(&b, light->n_granted > 0);
    bed_done(&b);
}

/* One release makes room for several. */
static void test_several_at_once(void) {
    struct probe *light[6];
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *heavy = bed_probe(&b, 0, "db:4");
    probe_grant(heavy);
    for (unsigned i = 0; i < ELEMENTSOF(light); i++)
        probe_wait(light[i] = bed_probe(&b, i, "db"));
    probe_release(heavy);
    for (unsigned i = 0; i < 4; i++)
        BED_UNTIL(&b, light[i]->n_granted > 0);
    probe_still_waits(light[4]);
    probe_still_waits(light[5]);
    TEST_INT(bed_used(&b, "db"), 4);
    bed_done(&b);
}

/* R3: all or none, and the oldest is first in all its queues (curator-acquire: one by one, so that two wait for each other). */
static void test_all_or_none(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *net = bed_probe(&b, 0, "net:2"), *both = bed_probe(&b, 1, "db:1,net:1"), *db = bed_probe(&b, 2, "db:1");
    probe_grant(net);
    probe_wait(both);
    TEST_INT(bed_used(&b, "db"), 0); /* no partial hold */
    probe_wait(db);                  /* behind it, although db is free */
    probe_still_waits(db);
    probe_release(net);
    BED_UNTIL(&b, both->n_granted > 0);
    BED_UNTIL(&b, db->n_granted > 0);
    TEST_INT(bed_used(&b, "db"), 2);
    TEST_INT(bed_used(&b, "net"), 1);
    bed_done(&b);
}

/* Claims that want the same pools, named in opposite orders, never wait for each other. */
static void test_no_deadlock(void) {
    struct probe *p[40];
    unsigned n = 0;
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        probe_ask(p[i] = bed_probe(&b, i, i % 2 ? "net:2,db:3" : "db:3,net:2"));
    while (n < ELEMENTSOF(p)) {
        BED_UNTIL(&b, b.n_grants > n);
        if (b.n_grants == n)
            break;
        n++;
        TEST_INT(b.n_grants, n); /* one at a time */
        for (unsigned i = 0; i < ELEMENTSOF(p); i++)
            if (p[i]->grant_number == n)
                probe_release(p[i]);
    }
    TEST_INT(n, ELEMENTSOF(p));
    bed_done(&b);
}

/* More grants at once than one turn of the loop delivers or one batch sends. */
static void test_many_at_once(void) {
    struct probe *p[300];
    unsigned n_told = 0;
    struct bed b;
    static const struct store_pool wide[] = {{.name = "db", .limit = 200, .queue_limit = 1000}};

    if (!bed_init(&b, fixture, wide, 1) || !bed_start(&b))
        return;
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        probe_ask(p[i] = bed_probe(&b, i, "db"));
    for (unsigned i = 0; i < ELEMENTSOF(p); i++) {
        BED_UNTIL(&b, p[i]->n_granted + p[i]->n_waiting > 0);
        n_told += p[i]->n_granted;
    }
    TEST_INT(n_told, 200);
    TEST_INT(bed_used(&b, "db"), 200);
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        if (p[i]->n_granted > 0)
            probe_release(p[i]);
    for (unsigned i = 0; i < ELEMENTSOF(p); i++)
        BED_UNTIL(&b, p[i]->n_granted > 0);
    bed_done(&b);
}

static void test_head_start(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "one"), *normal = bed_probe(&b, 1, "one"), *early = bed_probe(&b, 2, "one"),
                 *later = bed_probe(&b, 0, "one");
    early->claim.head_start_usec = 60 * USEC_PER_SEC;
    later->claim.head_start_usec = 30 * USEC_PER_SEC;
    probe_grant(holder);
    probe_wait(normal);
    probe_wait(early);
    TEST_INT(early->claim.position, 1);
    probe_wait(later);
    TEST_INT(later->claim.position, 2);
    probe_release(holder);
    BED_UNTIL(&b, early->n_granted > 0);
    probe_release(early);
    BED_UNTIL(&b, later->n_granted > 0);
    probe_release(later);
    BED_UNTIL(&b, normal->n_granted > 0);
    bed_done(&b);
}

/* A head start shorter than the other claim's waiting time has no effect. */
static void test_small_head_start(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "one"), *first = bed_probe(&b, 1, "one"), *second = bed_probe(&b, 2, "one");
    probe_grant(holder);
    probe_wait(first);
    second->claim.head_start_usec = 1; /* µs; tickets differ by at least that */
    usec_t end = clock_boottime() + 2 * USEC_PER_MSEC;
    while (bed_turn(&b, end))
        ;
    probe_wait(second);
    TEST_INT(second->claim.position, 2);
    bed_done(&b);
}

/* --- refusals --- */

static void test_nowait(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *now = bed_probe(&b, 0, "db:3"), *busy = bed_probe(&b, 1, "db:2"), *fits = bed_probe(&b, 2, "db:1");
    now->claim.nowait = busy->claim.nowait = fits->claim.nowait = true;
    probe_grant(now);
    probe_refuse(busy, STORE_REFUSAL_BUSY);
    TEST_STRING(busy->refused_pool, "db");
    probe_grant(fits);
    probe_release(fits);
    probe_release(now);
    busy->n_refused = 0; /* the claim belongs to its owner again and may be requested again */
    id_make(busy->id);
    bed_settle(&b);
    probe_grant(busy);
    TEST_INT(bed_used(&b, "db"), 2);
    bed_done(&b);
}

/* A claim that would fit, but not before another waiting claim, is busy as well. */
static void test_nowait_behind_head(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:3"), *head = bed_probe(&b, 1, "db:2"), *now = bed_probe(&b, 2, "db:1");
    now->claim.nowait = true;
    probe_grant(holder);
    probe_wait(head);
    probe_refuse(now, STORE_REFUSAL_BUSY);
    bed_done(&b);
}

static void test_queue_full(void) {
    struct probe *waiting[3];
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "one"), *more = bed_probe(&b, 1, "db,one");
    probe_grant(holder);
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++)
        probe_wait(waiting[i] = bed_probe(&b, i, "one"));
    probe_refuse(more, STORE_REFUSAL_QUEUE_FULL);
    TEST_STRING(more->refused_pool, "one");
    TEST_INT(bed_used(&b, "db"), 0);
    probe_end(waiting[1]);
    more->n_refused = 0;
    id_make(more->id);
    probe_wait(more);
    bed_done(&b);
}

static void test_fuzz(void) {
    const char *wanted = getenv("BERTH_SEED");

    if (wanted)
        store_fuzz(fixture, strtoull(wanted, NULL, 10));
    for (unsigned seed = 1; !wanted && seed <= fixture->n_seeds; seed++)
        store_fuzz(fixture, seed);
}

CU_TestInfo store_suite_tests[] = {
    {"grant", test_grant},
    {"order", test_order},
    {"head blocks", test_head_blocks},
    {"several at once", test_several_at_once},
    {"all or none", test_all_or_none},
    {"no deadlock", test_no_deadlock},
    {"many at once", test_many_at_once},
    {"head start", test_head_start},
    {"small head start", test_small_head_start},
    {"nowait", test_nowait},
    {"nowait behind head", test_nowait_behind_head},
    {"queue full", test_queue_full},
    {"withdraw", store_suite_test_withdraw},
    {"withdraw head", store_suite_test_withdraw_head},
    {"withdraw asked", store_suite_test_withdraw_asked},
    {"release is idempotent", store_suite_test_release_is_idempotent},
    {"revoke", store_suite_test_revoke},
    {"declare", store_suite_test_declare},
    {"limit zero", store_suite_test_limit_zero},
    {"override", store_suite_test_override},
    {"pause", store_suite_test_pause},
    {"pause remembers", store_suite_test_pause_remembers},
    {"override ends", store_suite_test_override_ends},
    {"parked leaves all queues", store_suite_test_parked_leaves_all_queues},
    {"withdraw parked", store_suite_test_withdraw_parked},
    {"adopt", store_suite_test_adopt},
    {"clock ahead", store_suite_test_clock_ahead},
    {"claim keeps ticket", store_suite_test_claim_keeps_ticket},
    {"inspect", store_suite_test_inspect},
    {"keys", store_suite_test_keys},
    {"keys crowded", store_suite_test_keys_crowded},
    {"keys in full", store_suite_test_keys_in_full},
    {"keys override", store_suite_test_keys_override},
    {"keys pause", store_suite_test_keys_pause},
    {"keys declare", store_suite_test_keys_declare},
    {"keys vanish", store_suite_test_keys_vanish},
    {"keys inspect", store_suite_test_keys_inspect},
    {"move first", store_suite_test_move_first},
    {"move before", store_suite_test_move_before},
    {"move by", store_suite_test_move_by},
    {"move in all queues", store_suite_test_move_in_all_queues},
    {"move refused", store_suite_test_move_refused},
    {"move parked", store_suite_test_move_parked},
    {"move grants", store_suite_test_move_grants},
    {"move adopted", store_suite_test_move_adopted},
    {"move key", store_suite_test_move_key},
    {"fuzz", test_fuzz},
    CU_TEST_INFO_NULL,
};
