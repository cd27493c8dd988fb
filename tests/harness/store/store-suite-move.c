/* SPDX-License-Identifier: MIT */

/* Moves: where a claim stands afterwards, and what is granted. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/store/store-suite-internal.h"

#define WAITING 5

struct line { /* one holder of pool one, and claims behind it */
    struct bed bed;
    struct probe *holder, *waiting[WAITING];
};

static bool line_up(struct line *l) {
    static const struct store_pool pool = {.name = "one", .limit = 1, .queue_limit = 100};

    if (!bed_init(&l->bed, store_suite_fixture(), &pool, 1) || !bed_start(&l->bed))
        return false;
    l->holder = bed_probe(&l->bed, 0, "one");
    probe_grant(l->holder);
    for (unsigned i = 0; i < WAITING; i++)
        probe_wait(l->waiting[i] = bed_probe(&l->bed, i + 1, "one"));
    return true;
}

static struct store_move move_of(enum store_move_kind kind, const struct probe *p, const struct probe *before, int64_t by_usec) {
    struct store_move move = {.kind = kind, .by_usec = by_usec};

    snprintf(move.claim, sizeof(move.claim), "%s", p->claim.id);
    if (before)
        snprintf(move.before, sizeof(move.before), "%s", before->claim.id);
    return move;
}

/* Moves, which must be possible; any host may ask. The claim's host learns of it. */
static struct store_move move(enum store_move_kind kind, struct probe *p, const struct probe *before, int64_t by_usec) {
    struct store_move m = move_of(kind, p, before, by_usec);

    TEST_INT(bed_move(p->bed, p->host + 1, &m), 0);
    if (m.number > 0)
        BED_UNTIL(p->bed, p->claim.moved == m.number);
    CU_ASSERT(m.head_start_usec == claim_head_start(&p->claim));
    TEST_INT(m.head_start_usec % USEC_PER_MSEC, 0);
    TEST_STRING(m.name, p->claim.name);
    return m;
}

/* The order in which they are granted, as digits: the first probe is 0. */
static const char *order(struct line *l) {
    static char text[WAITING + 1];
    unsigned before = l->bed.n_grants;

    memset(text, 0, sizeof(text));
    probe_release(l->holder);
    for (unsigned k = 0; k < WAITING; k++) {
        BED_UNTIL(&l->bed, l->bed.n_grants > before + k);
        for (unsigned i = 0; i < WAITING; i++)
            if (l->waiting[i]->grant_number == before + k + 1) {
                text[k] = (char) ('0' + i);
                probe_release(l->waiting[i]);
            }
    }
    return text;
}

static void ends_in_order(struct line *l, const char *expected) {
    TEST_STRING(order(l), expected);
    bed_done(&l->bed);
}

void store_suite_test_move_first(void) {
    struct line l;

    if (!line_up(&l))
        return;
    struct store_move m = move(STORE_MOVE_FIRST, l.waiting[3], NULL, 0);
    CU_ASSERT(m.number > l.waiting[4]->ticket);
    TEST_INT(m.n_places, 1);
    TEST_STRING(m.places[0].pool, "one");
    TEST_INT(m.places[0].place, 1);
    TEST_INT(m.places[0].passed, 3);
    TEST_INT(m.n_passed, 3);
    TEST_STRING(m.pools, "one:1");
    m = move(STORE_MOVE_FIRST, l.waiting[4], NULL, 0); /* the last one that is moved is first */
    TEST_INT(m.places[0].passed, 4);
    m = move(STORE_MOVE_FIRST, l.waiting[4], NULL, 0);
    TEST_INT(m.number, 0);
    TEST_INT(m.places[0].place, 1);
    TEST_INT(m.places[0].passed, 0);
    CU_ASSERT_FALSE(m.is_held);
    ends_in_order(&l, "43012");
}

/* Those that are moved before the same one keep their order, and nobody goes further than needed. */
void store_suite_test_move_before(void) {
    struct line l;

    if (!line_up(&l))
        return;
    struct store_move m = move(STORE_MOVE_BEFORE, l.waiting[3], l.waiting[0], 0);
    TEST_INT(m.places[0].place, 1);
    m = move(STORE_MOVE_BEFORE, l.waiting[4], l.waiting[0], 0);
    TEST_INT(m.places[0].place, 2);
    m = move(STORE_MOVE_BEFORE, l.waiting[3], l.waiting[2], 0); /* it is */
    TEST_INT(m.number, 0);
    ends_in_order(&l, "34012");
}

void store_suite_test_move_by(void) {
    struct line l;

    if (!line_up(&l))
        return;
    struct store_move m = move(STORE_MOVE_BY, l.waiting[2], NULL, 3600 * (int64_t) USEC_PER_SEC);
    TEST_INT(m.places[0].place, 1);
    CU_ASSERT(m.head_start_usec == 3600 * USEC_PER_SEC);
    m = move(STORE_MOVE_BY, l.waiting[4], NULL, 7200 * (int64_t) USEC_PER_SEC);
    m = move(STORE_MOVE_BY, l.waiting[4], NULL, -(int64_t) 3600 * (int64_t) USEC_PER_SEC - 1000000);
    TEST_INT(m.places[0].place, 2);
    m = move(STORE_MOVE_BY, l.waiting[2], NULL, -(int64_t) 7200 * (int64_t) USEC_PER_SEC); /* down to its own */
    TEST_INT(m.head_start_usec, 0);
    CU_ASSERT(m.number > 0);
    m = move(STORE_MOVE_BY, l.waiting[2], NULL, -1000);
    TEST_INT(m.number, 0);
    ends_in_order(&l, "40123");
}

void store_suite_test_move_in_all_queues(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *one = bed_probe(&b, 0, "one"), *db = bed_probe(&b, 1, "db:4"), *a = bed_probe(&b, 2, "one"),
                 *c = bed_probe(&b, 0, "db:4"), *both = bed_probe(&b, 1, "one,db:4");
    probe_grant(one);
    probe_grant(db);
    probe_wait(a);
    probe_wait(c);
    probe_wait(both);
    struct store_move m = move(STORE_MOVE_FIRST, both, NULL, 0);
    TEST_INT(m.n_places, 2);
    for (size_t i = 0; i < m.n_places; i++) {
        TEST_INT(m.places[i].place, 1);
        TEST_INT(m.places[i].passed, 1);
    }
    probe_end(one);
    probe_still_waits(a);
    probe_end(db);
    BED_UNTIL(&b, both->n_granted > 0);
    TEST_INT(a->n_granted + c->n_granted, 0);
    probe_release(both);
    BED_UNTIL(&b, a->n_granted > 0 && c->n_granted > 0);
    bed_done(&b);
}

static void refused(struct probe *asker, struct store_move m, int expected, const struct probe *about) {
    TEST_INT(bed_move(asker->bed, asker->host, &m), expected);
    if (about)
        TEST_STRING(m.about, about->claim.id);
}

void store_suite_test_move_refused(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *waiting = bed_probe(&b, 1, "one"), *db = bed_probe(&b, 2, "db:4"),
                 *other = bed_probe(&b, 0, "db:4"), *nobody = bed_probe(&b, 1, "db");
    probe_grant(held);
    probe_grant(db);
    probe_wait(waiting);
    probe_wait(other);
    refused(held, move_of(STORE_MOVE_FIRST, held, NULL, 0), STORE_E_HELD, held);
    refused(held, move_of(STORE_MOVE_BEFORE, waiting, held, 0), STORE_E_HELD, held);
    refused(held, move_of(STORE_MOVE_FIRST, nobody, NULL, 0), STORE_E_UNKNOWN, nobody);
    refused(held, move_of(STORE_MOVE_BEFORE, waiting, nobody, 0), STORE_E_UNKNOWN, nobody);
    refused(held, move_of(STORE_MOVE_BEFORE, waiting, other, 0), STORE_E_APART, NULL);
    refused(held, move_of(STORE_MOVE_BEFORE, waiting, waiting, 0), STORE_E_APART, NULL);
    TEST_INT(bed_revoke(&b, 0, waiting->claim.id), 0);
    refused(held, move_of(STORE_MOVE_FIRST, waiting, NULL, 0), STORE_E_UNKNOWN, waiting);
    TEST_INT(waiting->claim.moved, 0);
    BED_UNTIL(&b, waiting->n_lost > 0);
    TEST_INT(bed_revoke(&b, 0, held->claim.id), 0);
    refused(other, move_of(STORE_MOVE_FIRST, held, NULL, 0), STORE_E_HELD, held); /* until its owner releases it */
    BED_UNTIL(&b, held->n_lost > 0);
    bed_done(&b);
}

/* A parked claim comes back to its new place. */
void store_suite_test_move_parked(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:4"), *first = bed_probe(&b, 1, "db"), *parked = bed_probe(&b, 2, "db:3");
    probe_grant(holder);
    probe_wait(first);
    probe_wait(parked);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "db", .limit = 2, .for_usec = USEC_INFINITY}), 0);
    probe_end(holder);
    BED_UNTIL(&b, first->n_granted > 0);
    probe_release(first);
    BED_UNTIL(&b, parked->was_parked);
    struct probe *blocker = bed_probe(&b, 0, "db:2"), *next = bed_probe(&b, 1, "db:2");
    probe_grant(blocker);
    probe_wait(next);
    struct store_move m = move(STORE_MOVE_BY, parked, NULL, 3600 * (int64_t) USEC_PER_SEC);
    CU_ASSERT(m.is_parked);
    TEST_INT(m.n_places, 0);
    CU_ASSERT(m.number > 0);
    m = move(STORE_MOVE_FIRST, next, NULL, 0); /* it is, because who is parked stands in no queue */
    TEST_INT(m.number, 0);
    TEST_INT(bed_override(&b, 0, &(struct store_override) {.pool = "db", .clear = true, .for_usec = USEC_INFINITY}), 0);
    probe_end(blocker);
    BED_UNTIL(&b, parked->n_granted > 0);
    TEST_INT(next->n_granted, 0);
    probe_release(parked);
    BED_UNTIL(&b, next->n_granted > 0);
    bed_done(&b);
}

/* The first one wants more than is free; who is moved before it gets what there is, at once. Moved back, the next gets its turn. */
void store_suite_test_move_grants(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "db:3"), *large = bed_probe(&b, 1, "db:2"), *small = bed_probe(&b, 2, "db");
    probe_grant(holder);
    probe_wait(large);
    probe_wait(small);
    struct store_move m = move_of(STORE_MOVE_FIRST, small, NULL, 0);
    TEST_INT(bed_move(&b, 0, &m), 0);
    CU_ASSERT(m.is_held);
    TEST_INT(m.places[0].place, 1);
    BED_UNTIL(&b, small->n_granted > 0);
    CU_ASSERT(small->token > m.number);
    probe_release(small);
    struct probe *third = bed_probe(&b, 0, "db");
    probe_wait(third);
    move(STORE_MOVE_BY, large, NULL, 3600 * (int64_t) USEC_PER_SEC);
    m = move_of(STORE_MOVE_BY, third, NULL, 7200 * (int64_t) USEC_PER_SEC);
    TEST_INT(bed_move(&b, 1, &m), 0);
    CU_ASSERT(m.is_held);
    BED_UNTIL(&b, third->n_granted > 0);
    bed_done(&b);
}

/* A restarted berthd reports the last move of each claim. */
void store_suite_test_move_adopted(void) {
    const uint64_t old = 1700000000000000;
    struct bed b;

    if (!bed_init(&b, store_suite_fixture(), store_suite_pools, 3))
        return;
    struct probe *held = bed_probe(&b, 0, "one"), *early = bed_probe(&b, 0, "one"), *late = bed_probe(&b, 0, "one");
    held->claim.token = held->claim.ticket = old;
    early->claim.ticket = old + 1;
    late->claim.ticket = old + 60 * USEC_PER_SEC;
    late->claim.given_usec = 3600 * USEC_PER_SEC;
    late->claim.moved = old + 61 * USEC_PER_SEC;
    TEST_INT(store_adopt(b.stores[0], &held->claim), 0);
    TEST_INT(store_adopt(b.stores[0], &early->claim), 0);
    TEST_INT(store_adopt(b.stores[0], &late->claim), 0);
    CU_ASSERT_FATAL(bed_start(&b));
    BED_UNTIL(&b, early->n_waiting > 0 && late->n_waiting > 0);
    struct store_move m = move(STORE_MOVE_BY, late, NULL, -1000);
    CU_ASSERT(m.head_start_usec == 3600 * USEC_PER_SEC - 1000);
    TEST_INT(m.places[0].place, 1);
    probe_release(held);
    BED_UNTIL(&b, late->n_granted > 0);
    TEST_INT(early->n_granted, 0);
    bed_done(&b);
}

void store_suite_test_move_key(void) {
    const struct store_pool pool = {.name = "tenant/*", .limit = 1, .queue_limit = 100};
    struct bed b;

    if (!bed_init(&b, store_suite_fixture(), &pool, 1) || !bed_start(&b))
        return;
    struct probe *held = bed_probe(&b, 0, "tenant/a"), *first = bed_probe(&b, 1, "tenant/a"), *second = bed_probe(&b, 2, "tenant/a");
    probe_grant(held);
    probe_wait(first);
    probe_wait(second);
    struct store_move m = move(STORE_MOVE_FIRST, second, NULL, 0);
    TEST_STRING(m.places[0].pool, "tenant/a");
    probe_end(held);
    BED_UNTIL(&b, second->n_granted > 0);
    TEST_INT(first->n_granted, 0);
    bed_done(&b);
}
