/* SPDX-License-Identifier: MIT */

/* The same decisions as in store/redis/lua/move.lua. */

#include "store/memory/pool-move.h"

#include <stdio.h>
#include <string.h>

#define SPARE_USEC USEC_PER_SEC /* left before a claim, so that later moves before it find room */
#define GIVEN_MAX ((usec_t) 3650 * 24 * 3600 * USEC_PER_SEC)
#define TRIES 16

struct target {
    bool has_bound, has_lower;
    uint64_t bound, lower; /* the new queue key is below bound, and above lower if there is room */
};

static const struct pool_part *part_in(const struct pool_claim *c, const struct pool *pool) {
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i].pool == pool)
            return &c->parts[i];
    return NULL;
}

static void find_first(const struct pool_claim *c, struct target *t) {
    for (size_t i = 0; i < c->n_parts; i++) {
        const struct pool_part *first = list_first(&c->parts[i].pool->queue, struct pool_part, link);

        if (!first || first->claim == c)
            continue;
        if (!t->has_bound || first->claim->queue_key < t->bound)
            t->bound = first->claim->queue_key;
        t->has_bound = true;
    }
}

/* Notes the queue key right before a part, the claim itself not counted. */
static void find_lower(const struct pool_claim *c, const struct pool_part *part, struct target *t) {
    const struct list *queue = &part->pool->queue;
    const struct list *at = part->link.prev;

    if (at != queue && list_entry(at, struct pool_part, link)->claim == c)
        at = at->prev;
    if (at == queue)
        return;
    if (!t->has_lower || list_entry(at, struct pool_part, link)->claim->queue_key > t->lower)
        t->lower = list_entry(at, struct pool_part, link)->claim->queue_key;
    t->has_lower = true;
}

/* 0 or STORE_E_APART. */
static int find_before(const struct pool_claim *c, const struct pool_claim *other, struct target *t) {
    bool is_common = false;

    for (size_t i = 0; i < c->n_parts; i++) {
        const struct pool_part *part = part_in(other, c->parts[i].pool);

        is_common |= part != NULL;
        if (part && other->state == POOL_CLAIM_STATE_WAITING)
            find_lower(c, part, t);
    }
    if (!is_common || c == other)
        return STORE_E_APART;
    t->has_bound = true;
    t->bound = other->queue_key;
    return 0;
}

/* Rounds up to milliseconds, the unit of events. */
static usec_t rounded(usec_t usec) {
    return (usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC * USEC_PER_MSEC;
}

static usec_t given_for(const struct target *t, uint64_t base, bool has_spare) {
    usec_t want = rounded(base - t->bound + 1), room, middle;

    if (!has_spare)
        return want;
    room = t->has_lower ? (t->bound - t->lower) / 2 : SPARE_USEC;
    middle = rounded(base - t->bound + (room < SPARE_USEC ? room : SPARE_USEC));
    return middle > want && middle <= base && (!t->has_lower || base - middle > t->lower) ? middle : want;
}

static usec_t add(usec_t given, int64_t by) {
    if (by < 0)
        return usec_sub(given, (usec_t) -by);
    return given + (usec_t) by < GIVEN_MAX ? rounded(given + (usec_t) by) : GIVEN_MAX;
}

/* Returns whether another claim has the key: then tickets would decide the order of the two. */
static bool is_taken(const struct pool_claim *c, uint64_t key) {
    for (size_t i = 0; i < c->n_parts; i++)
        list_foreach(part, &c->parts[i].pool->queue, struct pool_part, link)
            if (part->claim != c && part->claim->queue_key == key)
                return true;
    return false;
}

static uint32_t place_of(const struct pool_claim *c, size_t i) {
    uint32_t place = 0;

    list_foreach(part, &c->parts[i].pool->queue, struct pool_part, link) {
        place++;
        if (part->claim == c)
            return place;
    }
    return 0;
}

/* Lists some of the n claims right behind it in a queue. */
static void name_passed(const struct pool_claim *c, size_t i, uint32_t n, struct store_move *move) {
    const struct list *at = c->parts[i].link.next;

    move->n_passed = 0;
    for (; n > 0 && move->n_passed < STORE_PASSED_MAX && at != &c->parts[i].pool->queue; n--, at = at->next)
        (void) snprintf(move->passed[move->n_passed++].name, sizeof(move->passed->name), "%s",
                        list_entry(at, struct pool_part, link)->claim->claim->name);
}

static void note_places(const struct pool_claim *c, const uint32_t *before, struct store_move *move) {
    uint32_t most = 0;

    for (size_t i = 0; i < c->n_parts; i++) {
        struct store_place *p = &move->places[i];

        (void) snprintf(p->pool, sizeof(p->pool), "%s", c->parts[i].pool->name);
        p->place = place_of(c, i);
        p->passed = before[i] > p->place ? before[i] - p->place : 0;
        if (p->passed > most)
            name_passed(c, i, most = p->passed, move);
    }
    move->n_places = c->n_parts;
}

int pools_move(struct pools *pools, struct pool_claim *c, const struct pool_claim *before, struct store_move *move, usec_t now_realtime) {
    uint64_t base = usec_sub(c->ticket, c->claim->head_start_usec);
    uint32_t places[DEMAND_POOLS_MAX];
    usec_t given = c->given_usec;
    struct target t = {};

    if (move->kind == STORE_MOVE_FIRST)
        find_first(c, &t);
    else if (move->kind == STORE_MOVE_BEFORE && find_before(c, before, &t) != 0)
        return STORE_E_APART;
    if (move->kind == STORE_MOVE_BY)
        given = add(given, move->by_usec);
    else if (t.has_bound && c->queue_key >= t.bound)
        given = given_for(&t, base, move->kind == STORE_MOVE_BEFORE);
    for (size_t i = 0; i < c->n_parts; i++)
        places[i] = place_of(c, i);
    move->number = move->n_passed = move->n_places = 0;
    if (given != c->given_usec) {
        for (size_t i = 0; i < TRIES && is_taken(c, usec_sub(base, given)); i++)
            given += USEC_PER_MSEC;
        pools_place(pools, c, given, now_realtime);
        move->number = c->moved;
    }
    if (c->state == POOL_CLAIM_STATE_WAITING)
        note_places(c, places, move);
    pools_settle(pools, now_realtime);
    move->ticket = c->ticket;
    move->head_start_usec = c->claim->head_start_usec + given;
    move->is_parked = c->state == POOL_CLAIM_STATE_PARKED;
    move->is_held = c->state == POOL_CLAIM_STATE_HELD;
    (void) snprintf(move->name, sizeof(move->name), "%s", c->claim->name);
    (void) demands_format_refs(c->claim->demands, c->n_parts, move->pools);
    return 0;
}
