/* SPDX-License-Identifier: MIT */

/* Limits, overrides and parking; what was there before the start; what an inspection shows. */

#include <string.h>

#include "tests/harness/store/store-suite-internal.h"

/* --- limits --- */

/* On all hosts, as after a reload of all. */
static void declare_db(struct bed *b, uint32_t limit) {
    struct store_pool changed[ELEMENTSOF(store_suite_pools)];

    memcpy(changed, store_suite_pools, sizeof(store_suite_pools));
    changed[0].limit = limit;
    for (unsigned i = 0; i < b->n_hosts; i++)
        TEST_INT(bed_declare(b, i, changed, ELEMENTSOF(changed)), 0);
    bed_settle(b);
}

/* R1: lowering kills nobody, and nothing is granted until use is below the limit. */
void store_suite_test_declare(void) {
    struct bed b;

    if (!store_suite_begin(&b))
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
    probe_still_waits(waiting);
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

void store_suite_test_limit_zero(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:1"), *now = bed_probe(&b, 1, "db:1");
    declare_db(&b, 0);
    probe_wait(p); /* whether as parked is the store's affair: nobody stands behind it who could be granted anything */
    now->claim.nowait = true;
    probe_refuse(now, STORE_REFUSAL_BUSY);
    declare_db(&b, 1);
    BED_UNTIL(&b, p->n_granted > 0);
    bed_done(&b);
}

#define OVERRIDE_FOR(usec, ...) (&(struct store_override){.pool = "db", .for_usec = (usec), __VA_ARGS__})
#define OVERRIDE(...) OVERRIDE_FOR(USEC_INFINITY, __VA_ARGS__)

void store_suite_test_override(void) {
    char reason[201]; /* the longest that berthd takes */
    struct bed b;

    memset(reason, 'x', 198);
    strcpy(reason + 198, "\u00e9");
    if (!store_suite_begin(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "db:4"), *next = bed_probe(&b, 1, "db:2");
    probe_grant(held);
    probe_wait(next);
    TEST_INT(bed_override(&b, 1, OVERRIDE(.limit = 6, .reason = reason)), 0);
    BED_UNTIL(&b, next->n_granted > 0);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *pool = snapshot_find_pool(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    TEST_INT(pool->limit, 6);
    TEST_INT(pool->has_override, true);
    TEST_INT(pool->override_limit, 6);
    CU_ASSERT(pool->override_until == USEC_INFINITY);
    TEST_STRING(pool->override_reason, reason);
    BED_UNTIL(&b, bed_has_event(&b, "limit-changed: "));
    TEST_INT(bed_override(&b, 0, OVERRIDE(.clear = true)), 0);
    TEST_INT(bed_limit(&b, "db"), 4);
    TEST_INT(bed_used(&b, "db"), 6);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.clear = true)), 0); /* nothing there */
    const struct store_override unknown = {.pool = "none", .limit = 1, .for_usec = USEC_INFINITY};
    TEST_INT(bed_override(&b, 0, &unknown), STORE_E_UNKNOWN);
    bed_done(&b);
}

/* R2: a pause parks and never blocks other pools; resume brings back in the old order before anything is granted. */
void store_suite_test_pause(void) {
    struct bed b;

    if (!store_suite_begin(&b))
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
    probe_end(holder);
    probe_still_waits(late);
    probe_end(net);
    probe_still_waits(both);
    uint64_t ticket = both->ticket;
    TEST_INT(bed_override(&b, 1, OVERRIDE(.resume = true)), 0);
    BED_UNTIL(&b, both->n_granted > 0);
    CU_ASSERT(both->ticket == ticket);
    probe_still_waits(late);
    probe_release(both);
    BED_UNTIL(&b, late->n_granted > 0);
    TEST_INT(bed_limit(&b, "db"), 4);
    bed_done(&b);
}

void store_suite_test_pause_remembers(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    TEST_INT(bed_override(&b, 0, OVERRIDE(.limit = 3, .reason = "less")), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0); /* twice is once */
    TEST_INT(bed_limit(&b, "db"), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.resume = true)), 0);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *pool = snapshot_find_pool(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    TEST_INT(pool->limit, 3);
    TEST_STRING(pool->override_reason, "less");
    TEST_INT(bed_override(&b, 0, OVERRIDE(.resume = true)), 0); /* not paused: nothing to do */
    TEST_INT(bed_limit(&b, "db"), 3);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.clear = true)), 0); /* the pause and what is below it */
    TEST_INT(bed_limit(&b, "db"), 4);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.limit = 0)), 0); /* is shown as a pause, and ends like one */
    TEST_INT(bed_override(&b, 0, OVERRIDE(.resume = true)), 0);
    TEST_INT(bed_limit(&b, "db"), 4);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.limit = 0)), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.pause = true)), 0);
    TEST_INT(bed_override(&b, 0, OVERRIDE(.resume = true)), 0);
    TEST_INT(bed_limit(&b, "db"), 4);
    bed_done(&b);
}

void store_suite_test_override_ends(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:1");
    TEST_INT(bed_override(&b, 0, OVERRIDE_FOR(300 * USEC_PER_MSEC, .limit = 0)), 0);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *pool = snapshot_find_pool(s, "db");
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
void store_suite_test_parked_leaves_all_queues(void) {
    struct bed b;

    if (!store_suite_begin(&b))
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
    probe_still_waits(db); /* behind the older one, although db is free */
    probe_end(next);
    probe_release(net);
    BED_UNTIL(&b, all->n_granted > 0);
    probe_release(all);
    BED_UNTIL(&b, db->n_granted > 0);
    bed_done(&b);
}

void store_suite_test_withdraw_parked(void) {
    struct bed b;

    if (!store_suite_begin(&b))
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
void store_suite_test_adopt(void) {
    const uint64_t old = 1700000000000000;
    struct bed b;

    if (!bed_init(&b, store_suite_fixture(), store_suite_pools, ELEMENTSOF(store_suite_pools)))
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
    probe_still_waits(first);
    probe_release(held[1]);
    BED_UNTIL(&b, second->n_granted > 0);
    CU_ASSERT(first->grant_number < second->grant_number);
    CU_ASSERT(first->token > old + 102);
    bed_done(&b);
}

/* Tokens and tickets grow even beyond one that was drawn by a clock ahead of ours (R7). */
void store_suite_test_clock_ahead(void) {
    const uint64_t ahead = clock_realtime() + 3600 * USEC_PER_SEC;
    struct bed b;

    if (!bed_init(&b, store_suite_fixture(), store_suite_pools, ELEMENTSOF(store_suite_pools)))
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

/* A claim that brings its ticket gets its old place, whatever the queue limit is. */
void store_suite_test_claim_keeps_ticket(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "one"), *old = bed_probe(&b, 1, "one"), *waiting[3];
    probe_grant(holder);
    for (unsigned i = 0; i < 3; i++)
        probe_wait(waiting[i] = bed_probe(&b, i, "one"));
    uint64_t ticket = waiting[0]->ticket - 1; /* where the clock is ahead of the time, the next one may be one more */
    old->claim.ticket = ticket;
    probe_wait(old);
    CU_ASSERT(old->ticket == ticket);
    TEST_INT(old->claim.position, 1);
    probe_release(holder);
    BED_UNTIL(&b, old->n_granted > 0);
    bed_done(&b);
}

/* --- looking --- */

void store_suite_test_inspect(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "db:3"), *first = bed_probe(&b, 0, "db:2,net:1"), *second = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    probe_wait(first);
    probe_wait(second);
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(&b, 0);
    const struct snapshot_pool *db = snapshot_find_pool(s, "db"), *net = snapshot_find_pool(s, "net");
    CU_ASSERT_FATAL(db && net);
    TEST_INT(s->n_pools, ELEMENTSOF(store_suite_pools));
    TEST_INT(s->grace_usec, 0);
    TEST_INT(db->host_scope, store_suite_fixture()->host_scope);
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
        }
    bed_done(&b);
}
