/* SPDX-License-Identifier: MIT */
#include "tests/harness/store-suite.h"

#include <stdlib.h>
#include <string.h>

static const struct store_fixture *fixture;

void store_suite_use(const struct store_fixture *f) {
    fixture = f;
}

/* The pools of most tests. */
static const struct store_pool pools[] = {
    {.name = "db", .limit = 4, .queue_limit = 100},
    {.name = "net", .limit = 2, .queue_limit = 100},
    {.name = "one", .limit = 1, .queue_limit = 3},
};

static bool begin(struct bed *b) {
    return bed_init(b, fixture, pools, ELEMENTSOF(pools)) && bed_start(b);
}

/* Lets a claim that should wait be: nothing was granted to it even when all that was asked before has been answered. */
static void still_waits(struct probe *p) {
    bed_settle(p->bed);
    TEST_INT(p->n_granted, 0);
    CU_ASSERT(p->claim.state == CLAIM_STATE_WAITING || p->claim.state == CLAIM_STATE_PARKED);
}

/* --- grants --- */

static void test_grant(void) {
    struct bed b;

    if (!begin(&b))
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

    if (!begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:4");
    probe_grant(holder);
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
        probe_wait(waiting[i] = bed_probe(&b, i, "db:4"));
        TEST_INT(waiting[i]->claim.position, i + 1);
    }
    for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
        still_waits(waiting[i]);
        probe_release(holder);
        BED_UNTIL(&b, waiting[i]->n_granted > 0);
        TEST_INT(waiting[i]->grant_number, i + 2);
        CU_ASSERT(waiting[i]->token > holder->token);
        CU_ASSERT(waiting[i]->ticket > holder->ticket);
        holder = waiting[i];
    }
    bed_done(&b);
}

/* R2: what needs more than is free waits at the head, and what is free waits with it. */
static void test_head_blocks(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *three = bed_probe(&b, 0, "db:3"), *heavy = bed_probe(&b, 1, "db:4"), *light = bed_probe(&b, 2, "db:1");
    probe_grant(three);
    probe_wait(heavy);
    probe_wait(light); /* one is free, but not for it */
    still_waits(light);
    TEST_INT(bed_used(&b, "db"), 3);
    probe_release(three);
    BED_UNTIL(&b, heavy->n_granted > 0);
    still_waits(light);
    probe_release(heavy);
    BED_UNTIL(&b, light->n_granted > 0);
    bed_done(&b);
}

/* One release makes room for several. */
static void test_several_at_once(void) {
    struct probe *light[6];
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *heavy = bed_probe(&b, 0, "db:4");
    probe_grant(heavy);
    for (unsigned i = 0; i < ELEMENTSOF(light); i++)
        probe_wait(light[i] = bed_probe(&b, i, "db"));
    probe_release(heavy);
    for (unsigned i = 0; i < 4; i++)
        BED_UNTIL(&b, light[i]->n_granted > 0);
    still_waits(light[4]);
    still_waits(light[5]);
    TEST_INT(bed_used(&b, "db"), 4);
    bed_done(&b);
}

/* R3: all or none, and the oldest is first in all its queues. */
static void test_all_or_none(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *net = bed_probe(&b, 0, "net:2"), *both = bed_probe(&b, 1, "db:1,net:1"), *db = bed_probe(&b, 2, "db:1");
    probe_grant(net);
    probe_wait(both);
    TEST_INT(bed_used(&b, "db"), 0); /* no partial hold */
    probe_wait(db);                  /* behind it, although db is free */
    still_waits(db);
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

    if (!begin(&b))
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

/* More at once than is told in one turn of the loop or sent in one go. */
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

    if (!begin(&b))
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

/* A head start that is less than what the other one has waited already changes nothing. */
static void test_small_head_start(void) {
    struct bed b;

    if (!begin(&b))
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

    if (!begin(&b))
        return;
    struct probe *now = bed_probe(&b, 0, "db:3"), *busy = bed_probe(&b, 1, "db:2"), *fits = bed_probe(&b, 2, "db:1");
    now->claim.nowait = busy->claim.nowait = fits->claim.nowait = true;
    probe_grant(now);
    probe_refuse(busy, STORE_REFUSAL_BUSY);
    TEST_STRING(busy->refused_pool, "db");
    probe_grant(fits);
    probe_release(fits);
    probe_release(now);
    busy->n_refused = 0; /* the claim is its owner's again: it may ask once more */
    CU_ASSERT(id_make(busy->claim.id) == 0);
    bed_settle(&b);
    probe_grant(busy);
    TEST_INT(bed_used(&b, "db"), 2);
    bed_done(&b);
}

/* What would fit, but not before somebody else who waits, is busy, too. */
static void test_nowait_behind_head(void) {
    struct bed b;

    if (!begin(&b))
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

    if (!begin(&b))
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
    CU_ASSERT(id_make(more->claim.id) == 0);
    probe_wait(more);
    bed_done(&b);
}

/* --- the end of a claim --- */

static void test_withdraw(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:4"), *first = bed_probe(&b, 1, "db:4"), *second = bed_probe(&b, 2, "db:1");
    probe_grant(holder);
    probe_wait(first);
    probe_wait(second);
    probe_end(first);
    probe_release(holder);
    BED_UNTIL(&b, second->n_granted > 0);
    TEST_INT(first->n_granted, 0);
    bed_done(&b);
}

/* The head of the queue withdraws: who was behind it gets what is free, with nothing released. */
static void test_withdraw_head(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:3"), *head = bed_probe(&b, 1, "db:2,net:1"), *next = bed_probe(&b, 2, "db:1");
    probe_grant(holder);
    probe_wait(head);
    probe_wait(next);
    probe_release(head);
    BED_UNTIL(&b, next->n_granted > 0);
    BED_UNTIL(&b, head->n_released > 0);
    bed_done(&b);
}

/* Withdrawn before the answer was there, when it would be granted, or wait, or be refused. */
static void test_withdraw_asked(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *granted = bed_probe(&b, 0, "db:4"), *waiting = bed_probe(&b, 0, "db:4"), *refused = bed_probe(&b, 0, "db:4"),
                 *next = bed_probe(&b, 0, "db:4");
    refused->claim.nowait = true;
    probe_ask(granted);
    probe_ask(waiting);
    probe_ask(refused);
    probe_ask(next);
    probe_release(granted);
    probe_release(waiting);
    probe_release(refused);
    BED_UNTIL(&b, granted->n_released + waiting->n_released + refused->n_released == 3);
    BED_UNTIL(&b, next->n_granted > 0);
    TEST_INT(granted->n_granted + waiting->n_granted + waiting->n_waiting + refused->n_refused, 0);
    bed_done(&b);
}

static void test_release_is_idempotent(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:2"), *other = bed_probe(&b, 1, "db:2");
    probe_release(p); /* never asked */
    probe_grant(p);
    probe_grant(other);
    probe_release(p);
    TEST_INT(p->claim.state, CLAIM_STATE_RELEASING);
    probe_release(p);
    BED_UNTIL(&b, p->n_released > 0);
    probe_release(p);
    bed_settle(&b);
    TEST_INT(p->n_released, 1);
    TEST_INT(bed_used(&b, "db"), 2);
    bed_done(&b);
}

static void test_revoke(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one"), *next = bed_probe(&b, 2, "one");
    probe_grant(held);
    probe_wait(waiting);
    probe_wait(next);
    TEST_INT(bed_revoke(&b, 1, held->claim.id), 0);
    BED_UNTIL(&b, held->n_lost > 0);
    TEST_INT(held->loss, STORE_LOSS_REVOKED);
    TEST_INT(held->claim.state, CLAIM_STATE_HELD);
    still_waits(waiting); /* it is held until its owner says otherwise */
    TEST_INT(bed_used(&b, "one"), 1);
    TEST_INT(bed_revoke(&b, 2, waiting->claim.id), 0);
    BED_UNTIL(&b, waiting->n_lost > 0);
    TEST_INT(waiting->loss, STORE_LOSS_REVOKED);
    probe_end(waiting);
    probe_end(held);
    BED_UNTIL(&b, next->n_granted > 0);
    TEST_INT(waiting->n_granted, 0);
    TEST_INT(held->n_lost, 1);
    TEST_INT(bed_revoke(&b, 0, held->claim.id), STORE_E_UNKNOWN);
    TEST_INT(bed_revoke(&b, 0, "00112233445566778899aabbccddeeff"), STORE_E_UNKNOWN);
    bed_done(&b);
}

/* --- limits --- */

/* On all hosts, as after a reload of all. */
static void declare_db(struct bed *b, uint32_t limit) {
    struct store_pool changed[ELEMENTSOF(pools)];

    memcpy(changed, pools, sizeof(pools));
    changed[0].limit = limit;
    for (unsigned i = 0; i < b->n_hosts; i++)
        TEST_INT(bed_declare(b, i, changed, ELEMENTSOF(changed)), 0);
    bed_settle(b);
}

/* R1: lowering kills nobody, and nothing is granted until use is below the limit. */
static void test_declare(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *held[4], *waiting = bed_probe(&b, 0, "db:1");
    for (unsigned i = 0; i < 4; i++)
        probe_grant(held[i] = bed_probe(&b, i, "db:1"));
    declare_db(&b, 2);
    TEST_INT(bed_limit(&b, "db"), 2);
    TEST_INT(bed_used(&b, "db"), 4);
    probe_wait(waiting);
    probe_end(held[0]);
    probe_end(held[1]);
    still_waits(waiting);
    probe_release(held[2]);
    BED_UNTIL(&b, waiting->n_granted > 0);
    TEST_INT(bed_used(&b, "db"), 2);
    struct probe *after = bed_probe(&b, 1, "db:3");
    probe_wait(after); /* more than the limit: parked */
    TEST_INT(after->claim.state, CLAIM_STATE_PARKED);
    declare_db(&b, 6);
    BED_UNTIL(&b, after->n_granted > 0);
    TEST_INT(bed_used(&b, "db"), 5);
    BED_UNTIL(&b, bed_has_event(&b, "limit-changed: "));
    bed_done(&b);
}

static void test_limit_zero(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:1"), *now = bed_probe(&b, 1, "db:1");
    declare_db(&b, 0);
    probe_wait(p);
    TEST_INT(p->claim.state, CLAIM_STATE_PARKED);
    now->claim.nowait = true;
    probe_refuse(now, STORE_REFUSAL_BUSY);
    declare_db(&b, 1);
    BED_UNTIL(&b, p->n_granted > 0);
    bed_done(&b);
}

#define OVERRIDE_FOR(usec, ...) (&(struct store_override){.pool = "db", .for_usec = (usec), __VA_ARGS__})
#define OVERRIDE(...) OVERRIDE_FOR(USEC_INFINITY, __VA_ARGS__)

static void test_override(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "db:4"), *next = bed_probe(&b, 1, "db:2");
    probe_grant(held);
    probe_wait(next);
    TEST_INT(bed_override(&b, 1, OVERRIDE(.limit = 6, .reason = "more of it")), 0);
    BED_UNTIL(&b, next->n_granted > 0);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *pool = snapshot_find(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    TEST_INT(pool->limit, 6);
    TEST_INT(pool->has_override, true);
    TEST_INT(pool->override_limit, 6);
    CU_ASSERT(pool->override_until == USEC_INFINITY);
    TEST_STRING(pool->override_reason, "more of it");
    BED_UNTIL(&b, bed_has_event(&b, "limit-changed: "));
    TEST_INT(bed_override(&b, 0, OVERRIDE(.clear = true)), 0);
    TEST_INT(bed_limit(&b, "db"), 4);
    TEST_INT(bed_used(&b, "db"), 6);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.clear = true)), 0); /* nothing there */
    TEST_INT(bed_override(&b, 0, &(struct store_override){.pool = "none", .limit = 1, .for_usec = USEC_INFINITY}), STORE_E_UNKNOWN);
    bed_done(&b);
}

/* R2: a pause parks and never blocks other pools; resume brings back in the old order before anything is granted. */
static void test_pause(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:4"), *both = bed_probe(&b, 1, "net:2,db:4"), *net = bed_probe(&b, 2, "net:2"),
                 *late = bed_probe(&b, 0, "db:4");
    probe_grant(holder);
    probe_wait(both);
    probe_wait(net); /* behind it in net */
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true, .reason = "maintenance")), 0);
    BED_UNTIL(&b, both->was_parked);
    BED_UNTIL(&b, net->n_granted > 0); /* no longer behind it */
    TEST_INT(bed_limit(&b, "db"), 0);
    probe_wait(late);
    TEST_INT(late->claim.state, CLAIM_STATE_PARKED);
    probe_end(holder);
    still_waits(late);
    probe_end(net);
    still_waits(both);
    uint64_t ticket = both->ticket;
    TEST_INT(bed_override(&b, 1, OVERRIDE(.resume = true)), 0);
    BED_UNTIL(&b, both->n_granted > 0);
    CU_ASSERT(both->ticket == ticket);
    still_waits(late);
    probe_release(both);
    BED_UNTIL(&b, late->n_granted > 0);
    TEST_INT(bed_limit(&b, "db"), 4);
    bed_done(&b);
}

static void test_pause_remembers(void) {
    struct bed b;

    if (!begin(&b))
        return;
    TEST_INT(bed_override(&b, 0, OVERRIDE(.limit = 3, .reason = "less")), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0); /* twice is once */
    TEST_INT(bed_limit(&b, "db"), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.resume = true)), 0);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *pool = snapshot_find(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    TEST_INT(pool->limit, 3);
    TEST_STRING(pool->override_reason, "less");
    TEST_INT(bed_override(&b, 0, OVERRIDE(.resume = true)), 0); /* not paused: nothing to do */
    TEST_INT(bed_limit(&b, "db"), 3);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.clear = true)), 0); /* the pause and what is below it */
    TEST_INT(bed_limit(&b, "db"), 4);
    bed_done(&b);
}

static void test_override_ends(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:1");
    TEST_INT(bed_override(&b, 0, OVERRIDE_FOR(300 * USEC_PER_MSEC, .limit = 0)), 0);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *pool = snapshot_find(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    TEST_INT(pool->limit, 0);
    CU_ASSERT(pool->override_until > clock_realtime() - USEC_PER_SEC);
    CU_ASSERT(pool->override_until < clock_realtime() + USEC_PER_SEC);
    probe_wait(p);
    BED_UNTIL(&b, p->n_granted > 0); /* nobody has to do anything for it */
    TEST_INT(bed_limit(&b, "db"), 4);
    bed_done(&b);
}

/* --- parking --- */

/* Parked by another pool's limit: in none of its queues, and all come back together. */
static void test_parked_leaves_all_queues(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *one = bed_probe(&b, 0, "one"), *all = bed_probe(&b, 1, "db:3,net:1,one:1"), *db = bed_probe(&b, 2, "db:4");
    probe_grant(one);
    probe_wait(all);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.limit = 2)), 0);
    BED_UNTIL(&b, all->was_parked);
    probe_wait(db);
    TEST_INT(db->claim.state, CLAIM_STATE_PARKED);
    struct probe *net = bed_probe(&b, 0, "net:2"), *next = bed_probe(&b, 1, "one");
    probe_grant(net); /* nobody stands before it there */
    probe_wait(next);
    probe_end(one);
    BED_UNTIL(&b, next->n_granted > 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.clear = true)), 0);
    BED_UNTIL(&b, all->n_waiting == 3); /* queued, parked, back */
    TEST_INT(all->claim.state, CLAIM_STATE_WAITING);
    still_waits(db); /* behind the older one, although db is free */
    probe_end(next);
    probe_release(net);
    BED_UNTIL(&b, all->n_granted > 0);
    probe_release(all);
    BED_UNTIL(&b, db->n_granted > 0);
    bed_done(&b);
}

static void test_withdraw_parked(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:2");
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0);
    probe_wait(p);
    probe_end(p);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.resume = true)), 0);
    bed_settle(&b);
    TEST_INT(p->n_granted, 0);
    TEST_INT(bed_used(&b, "db"), 0);
    bed_done(&b);
}

/* --- what was there before --- */

static void adopt(struct probe *p, uint64_t ticket, uint64_t token) {
    p->claim.ticket = ticket;
    p->claim.token = token;
    TEST_INT(store_adopt(p->bed->stores[p->host], &p->claim), 0);
}

/* Held ones count even beyond the limit, and are no news to their owner; waiting ones come back with their old places. */
static void test_adopt(void) {
    const uint64_t old = 1700000000000000;
    struct bed b;

    if (!bed_init(&b, fixture, pools, ELEMENTSOF(pools)))
        return;
    struct probe *held[3], *second = bed_probe(&b, 0, "db:1"), *first = bed_probe(&b, 0, "db:1");
    for (unsigned i = 0; i < 3; i++)
        adopt(held[i] = bed_probe(&b, 0, "db:2"), old + i, old + 100 + i);
    adopt(second, old + 20, 0);
    adopt(first, old + 10, 0);
    if (!bed_start(&b))
        return;
    BED_UNTIL(&b, first->n_waiting > 0 && second->n_waiting > 0);
    CU_ASSERT(bed_has_event(&b, "overcommitted: "));
    TEST_INT(bed_used(&b, "db"), 6);
    for (unsigned i = 0; i < 3; i++) {
        TEST_INT(held[i]->n_granted, 0);
        TEST_INT(held[i]->claim.state, CLAIM_STATE_HELD);
        CU_ASSERT(held[i]->claim.token == old + 100 + i);
    }
    CU_ASSERT(first->ticket == old + 10 && second->ticket == old + 20);
    probe_end(held[0]);
    still_waits(first);
    probe_release(held[1]);
    BED_UNTIL(&b, second->n_granted > 0);
    CU_ASSERT(first->grant_number < second->grant_number);
    CU_ASSERT(first->token > old + 102);
    bed_done(&b);
}

/* Tokens and tickets grow even beyond one that was drawn by a clock ahead of ours (R7). */
static void test_clock_ahead(void) {
    const uint64_t ahead = clock_realtime() + 3600 * USEC_PER_SEC;
    struct bed b;

    if (!bed_init(&b, fixture, pools, ELEMENTSOF(pools)))
        return;
    struct probe *held = bed_probe(&b, 0, "db:1");
    adopt(held, ahead, ahead + 5);
    if (!bed_start(&b))
        return;
    struct probe *p = bed_probe(&b, 1, "db:1");
    probe_grant(p);
    CU_ASSERT(p->token > ahead + 5);
    CU_ASSERT(p->ticket > ahead);
    bed_done(&b);
}

/* A claim that brings its ticket gets its old place, whatever the queue limit says. */
static void test_claim_keeps_ticket(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "one"), *old = bed_probe(&b, 1, "one"), *waiting[3];
    probe_grant(holder);
    for (unsigned i = 0; i < 3; i++)
        probe_wait(waiting[i] = bed_probe(&b, i, "one"));
    old->claim.ticket = holder->ticket + 1;
    probe_wait(old);
    CU_ASSERT(old->ticket == holder->ticket + 1);
    TEST_INT(old->claim.position, 1);
    probe_release(holder);
    BED_UNTIL(&b, old->n_granted > 0);
    bed_done(&b);
}

/* --- looking --- */

static void test_inspect(void) {
    struct bed b;

    if (!begin(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *first = bed_probe(&b, 0, "db:2,net:1"), *second = bed_probe(&b, 0, "db:1");
    held->claim.pid = 4711;
    probe_grant(held);
    probe_wait(first);
    probe_wait(second);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *db = snapshot_find(s, "db"), *net = snapshot_find(s, "net");
    CU_ASSERT_FATAL(db && net);
    TEST_INT(s->n_pools, ELEMENTSOF(pools));
    TEST_INT(s->grace_usec, 0);
    TEST_INT(db->host_scope, fixture->host_scope);
    TEST_INT(db->limit, 4);
    TEST_INT(db->has_override, false);
    TEST_INT(db->used, 3);
    TEST_INT(db->waiting, 2);
    TEST_INT(db->n_holders, 1);
    TEST_INT(db->n_queue, 2);
    TEST_INT(net->used, 0);
    TEST_INT(net->waiting, 1);
    CU_ASSERT_FATAL(db->n_holders == 1 && db->n_queue == 2);
    TEST_STRING(db->holders[0].claim, held->claim.id);
    TEST_STRING(db->holders[0].host, b.hosts[0]);
    TEST_STRING(db->holders[0].name, "probe");
    TEST_INT(db->holders[0].permits, 3);
    TEST_INT(db->holders[0].pid, 4711);
    CU_ASSERT(db->holders[0].token == held->token);
    CU_ASSERT(db->holders[0].since_realtime + 60 * USEC_PER_SEC > clock_realtime());
    TEST_STRING(db->queue[0].claim, first->claim.id);
    TEST_STRING(db->queue[1].claim, second->claim.id);
    TEST_INT(db->queue[0].position, 1);
    TEST_INT(db->queue[1].position, 2);
    TEST_INT(db->queue[0].permits, 2);
    CU_ASSERT(db->queue[0].waiting_usec < 60 * USEC_PER_SEC);
    TEST_INT(s->n_mine, 3);
    for (size_t i = 0; i < s->n_mine; i++)
        if (strcmp(s->mine[i].claim, second->claim.id) == 0) {
            TEST_STRING(s->mine[i].pool, "db");
            TEST_INT(s->mine[i].position, 2);
            TEST_INT(s->mine[i].head_permits, 2);
        }
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
    {"withdraw", test_withdraw},
    {"withdraw head", test_withdraw_head},
    {"withdraw asked", test_withdraw_asked},
    {"release is idempotent", test_release_is_idempotent},
    {"revoke", test_revoke},
    {"declare", test_declare},
    {"limit zero", test_limit_zero},
    {"override", test_override},
    {"pause", test_pause},
    {"pause remembers", test_pause_remembers},
    {"override ends", test_override_ends},
    {"parked leaves all queues", test_parked_leaves_all_queues},
    {"withdraw parked", test_withdraw_parked},
    {"adopt", test_adopt},
    {"clock ahead", test_clock_ahead},
    {"claim keeps ticket", test_claim_keeps_ticket},
    {"inspect", test_inspect},
    {"fuzz", test_fuzz},
    CU_TEST_INFO_NULL,
};
