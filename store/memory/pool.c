/* SPDX-License-Identifier: MIT */
#include "store/memory/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- pools --- */

void pools_init(struct pools *p) {
    *p = (struct pools){.is_open = false};
    list_init(&p->pools);
    list_init(&p->claims);
    list_init(&p->due);
    list_init(&p->news);
}

static void pool_free(struct pool *pool) {
    list_unlink(&pool->link);
    list_unlink(&pool->due);
    pool_clear(pool);
    free(pool);
}

void pools_done(struct pools *p) {
    list_foreach_safe(c, &p->claims, struct pool_claim, link) {
        list_unlink(&c->link);
        free(c);
    }
    list_foreach_safe(pool, &p->pools, struct pool, link)
        pool_free(pool);
    pools_init(p);
}

struct pool *pools_find(struct pools *p, const char *name) {
    list_foreach(pool, &p->pools, struct pool, link)
        if (strcmp(pool->name, name) == 0)
            return pool;
    return NULL;
}

int pools_make(struct pools *p, const char *name, struct pool **ret) {
    struct pool *pool = pools_find(p, name);

    if (!pool) {
        pool = calloc(1, sizeof(*pool));
        if (!pool)
            return -ENOMEM;
        snprintf(pool->name, sizeof(pool->name), "%s", name);
        list_init(&pool->due);
        list_init(&pool->queue);
        list_init(&pool->parked);
        list_init(&pool->held);
        list_append(&p->pools, &pool->link);
    }
    *ret = pool;
    return 0;
}

void pools_undeclare(struct pools *p) {
    list_foreach(pool, &p->pools, struct pool, link)
        pool->declared = false;
}

void pool_declare(struct pool *pool, uint32_t limit, uint32_t queue_limit) {
    pool->declared = true;
    pool->declared_limit = limit;
    pool->queue_limit = queue_limit;
}

static void pools_drop_unused(struct pools *p) {
    list_foreach_safe(pool, &p->pools, struct pool, link)
        if (!pool->declared && list_is_empty(&pool->queue) && list_is_empty(&pool->parked) && list_is_empty(&pool->held))
            pool_free(pool);
}

uint32_t pool_limit(const struct pool *pool) {
    return pool->override.is_set ? pool->override.limit : pool->declared_limit;
}

uint32_t pool_used(const struct pool *pool) {
    uint32_t used = 0;

    list_foreach(part, &pool->held, struct pool_part, link)
        used += part->permits;
    return used;
}

/* --- a claim's state --- */

static void pool_touch(struct pools *p, struct pool *pool) {
    if (!list_is_linked(&pool->due))
        list_append(&p->due, &pool->due);
}

/* Into a list that is ordered by place, from the tail. How many stand behind it. */
static uint32_t insert_in_order(struct list *list, struct pool_part *part) {
    struct list *where = list;
    uint32_t n_behind = 0;

    for (; where->prev != list; n_behind++) {
        const struct pool_claim *other = list_entry(where->prev, struct pool_part, link)->claim;

        if (other->place < part->claim->place || (other->place == part->claim->place && other->ticket < part->claim->ticket))
            break;
        where = where->prev;
    }
    list_insert_before(where, &part->link);
    return n_behind;
}

static void part_unlink(struct pools *p, struct pool_part *part) {
    struct pool *pool = part->pool;

    switch (part->claim->state) {
    case POOL_CLAIM_STATE_NONE:
        return;
    case POOL_CLAIM_STATE_WAITING:
        if (pool->queue.next == &part->link) /* else the first one is still the one that could not be granted */
            pool_touch(p, pool);
        pool->n_queue--;
        break;
    case POOL_CLAIM_STATE_PARKED:
        pool->n_parked--;
        break;
    case POOL_CLAIM_STATE_HELD:
        pool_touch(p, pool);
        break;
    }
    list_unlink(&part->link);
}

static void part_link(struct pools *p, struct pool_part *part) {
    struct pool *pool = part->pool;
    uint32_t position;

    switch (part->claim->state) {
    case POOL_CLAIM_STATE_NONE:
        break;
    case POOL_CLAIM_STATE_WAITING:
        position = ++pool->n_queue - insert_in_order(&pool->queue, part);
        if (position == 1)
            pool_touch(p, pool);
        if (position > part->claim->position)
            part->claim->position = position;
        break;
    case POOL_CLAIM_STATE_PARKED:
        pool->n_parked++;
        (void) insert_in_order(&pool->parked, part);
        break;
    case POOL_CLAIM_STATE_HELD:
        list_append(&pool->held, &part->link);
        break;
    }
}

/* The one place where a claim changes its state; moves all its parts to the lists of the new one. */
static void claim_set_state(struct pools *p, struct pool_claim *c, enum pool_claim_state state) {
    for (size_t i = 0; i < c->n_parts; i++)
        part_unlink(p, &c->parts[i]);
    c->state = state;
    c->position = 0;
    for (size_t i = 0; i < c->n_parts; i++)
        part_link(p, &c->parts[i]);
}

/* The same, by somebody else's doing. */
static void claim_move(struct pools *p, struct pool_claim *c, enum pool_claim_state state) {
    claim_set_state(p, c, state);
    if (!list_is_linked(&c->news))
        list_append(&p->news, &c->news);
}

/* --- granting --- */

/* What is used, counted once in a call: in between only grants change it, and they add to it. */
static uint32_t pool_used_in_call(struct pools *p, struct pool *pool) {
    if (pool->counted != p->call) {
        pool->counted = p->call;
        pool->used = pool_used(pool);
    }
    return pool->used;
}

/* The first of its pools in which it is not first or does not fit; NULL: it can be granted (R2, R3). */
static struct pool *claim_find_obstacle(struct pools *p, struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts; i++) {
        struct pool *pool = c->parts[i].pool;
        uint32_t used, limit = pool_limit(pool);

        if (pool->queue.next != &c->parts[i].link)
            return pool;
        used = pool_used_in_call(p, pool);
        if (used >= limit || c->parts[i].permits > limit - used)
            return pool;
    }
    return NULL;
}

static uint64_t pools_tick(struct pools *p, usec_t now_realtime) {
    p->clock = now_realtime > p->clock ? now_realtime : p->clock + 1;
    return p->clock;
}

static void claim_grant(struct pools *p, struct pool_claim *c, usec_t now_realtime) {
    for (size_t i = 0; i < c->n_parts; i++)
        c->parts[i].pool->used += c->parts[i].permits;
    c->token = pools_tick(p, now_realtime);
    c->granted_realtime = now_realtime;
    claim_move(p, c, POOL_CLAIM_STATE_HELD);
}

/* Grants in the order of the queues until nothing more fits. A grant makes others first in its pools: these are due again. */
static void pools_serve(struct pools *p, usec_t now_realtime) {
    if (!p->is_open)
        return;
    p->call++;
    while (!list_is_empty(&p->due)) {
        struct pool *pool = list_first(&p->due, struct pool, due);
        struct pool_part *head;

        list_unlink(&pool->due);
        while ((head = list_first(&pool->queue, struct pool_part, link)) && !claim_find_obstacle(p, head->claim))
            claim_grant(p, head->claim, now_realtime);
    }
}

/* The first of its pools whose limit is below what it asks there, or NULL. */
static struct pool *claim_find_low_limit(struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i].permits > pool_limit(c->parts[i].pool))
            return c->parts[i].pool;
    return NULL;
}

static void pool_park(struct pools *p, struct pool *pool) {
    list_foreach_safe(part, &pool->queue, struct pool_part, link)
        if (part->permits > pool_limit(pool))
            claim_move(p, part->claim, POOL_CLAIM_STATE_PARKED);
}

static void pool_unpark(struct pools *p, struct pool *pool) {
    list_foreach_safe(part, &pool->parked, struct pool_part, link)
        if (!claim_find_low_limit(part->claim))
            claim_move(p, part->claim, POOL_CLAIM_STATE_WAITING);
}

void pools_settle(struct pools *p, usec_t now_realtime) {
    list_foreach(pool, &p->pools, struct pool, link)
        pool_park(p, pool);
    list_foreach(pool, &p->pools, struct pool, link)
        pool_unpark(p, pool);
    list_foreach(pool, &p->pools, struct pool, link)
        pool_touch(p, pool);
    list_foreach(pool, &p->pools, struct pool, link) {
        pool->is_settled = true;
        pool->settled_limit = pool_limit(pool);
    }
    pools_serve(p, now_realtime);
    pools_drop_unused(p);
}

bool pool_has_new_limit(const struct pool *pool) {
    return pool->is_settled && pool->settled_limit != pool_limit(pool);
}

void pools_open(struct pools *p, usec_t now_realtime) {
    p->is_open = true;
    pools_settle(p, now_realtime);
}

/* --- claims --- */

struct pool_claim *pool_claim_free(struct pool_claim *c) {
    if (!c)
        return NULL;
    list_unlink(&c->link);
    list_unlink(&c->news);
    free(c);
    return NULL;
}

static struct pool_claim *claim_new(struct pools *p, const struct claim *claim) {
    struct pool_claim *c = calloc(1, sizeof(*c) + claim->n_demands * sizeof(c->parts[0]));

    if (!c)
        return NULL;
    c->claim = claim;
    c->n_parts = claim->n_demands;
    for (size_t i = 0; i < c->n_parts; i++)
        c->parts[i] = (struct pool_part){.claim = c, .permits = claim->demands[i].permits};
    list_append(&p->claims, &c->link);
    list_init(&c->news);
    return c;
}

static void pools_remember(struct pools *p, uint64_t number) {
    if (number > p->clock)
        p->clock = number;
}

/* Its ticket, the old one if there is one, and with it its place. Tickets and tokens are near the time at which they were drawn
 * (R7): good enough for people where nothing else is known. */
static void claim_draw_ticket(struct pools *p, struct pool_claim *c, usec_t now_realtime) {
    pools_remember(p, c->claim->ticket);
    c->ticket = c->claim->ticket > 0 ? c->claim->ticket : pools_tick(p, now_realtime);
    c->queued_realtime = c->claim->ticket > 0 ? c->ticket : now_realtime;
    c->place = usec_sub(c->ticket, c->claim->head_start_usec);
}

/* Into its queues or, if a limit is too low for it, among the parked. */
static void claim_enqueue(struct pools *p, struct pool_claim *c) {
    claim_set_state(p, c, claim_find_low_limit(c) ? POOL_CLAIM_STATE_PARKED : POOL_CLAIM_STATE_WAITING);
}

static struct pool *claim_find_full_queue(struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts; i++) {
        struct pool *pool = c->parts[i].pool;

        if (pool->n_queue + pool->n_parked > pool->queue_limit) /* it stands there itself */
            return pool;
    }
    return NULL;
}

/* Whether a claim that has just been enqueued may stay although it was not granted: 0 or a named answer. */
static int claim_check_wait(struct pools *p, struct pool_claim *c, struct pool **ret_pool) {
    struct pool *pool;

    if (c->claim->nowait) {
        if (!(pool = claim_find_low_limit(c)) && !(pool = claim_find_obstacle(p, c)))
            pool = c->parts[0].pool; /* not open yet */
        *ret_pool = pool;
        return POOL_E_BUSY;
    }
    if (c->claim->ticket == 0 && (pool = claim_find_full_queue(c))) {
        *ret_pool = pool;
        return POOL_E_QUEUE_FULL;
    }
    return 0;
}

int pools_claim(struct pools *p, const struct claim *claim, usec_t now_realtime, struct pool_claim **ret, struct pool **ret_pool) {
    struct pool_claim *c = claim_new(p, claim);
    int r;

    if (!c)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_parts; i++) {
        c->parts[i].pool = pools_find(p, claim->demands[i].pool);
        if (!c->parts[i].pool || !c->parts[i].pool->declared) {
            pool_claim_free(c);
            return -ENOENT;
        }
    }
    claim_draw_ticket(p, c, now_realtime);
    claim_enqueue(p, c);
    pools_serve(p, now_realtime);
    list_unlink(&c->news); /* its own doing */
    if (c->state != POOL_CLAIM_STATE_HELD && (r = claim_check_wait(p, c, ret_pool)) > 0)
        pools_leave(p, c, now_realtime);
    else
        r = 0;
    *ret = c;
    return r;
}

int pools_adopt(struct pools *p, const struct claim *claim, usec_t now_realtime, struct pool_claim **ret) {
    struct pool_claim *c = claim_new(p, claim);

    if (!c)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_parts; i++)
        if (pools_make(p, claim->demands[i].pool, &c->parts[i].pool) < 0) {
            pool_claim_free(c);
            return -ENOMEM;
        }
    pools_remember(p, claim->token);
    claim_draw_ticket(p, c, now_realtime);
    if (claim->token > 0) {
        c->token = c->granted_realtime = claim->token;
        claim_set_state(p, c, POOL_CLAIM_STATE_HELD);
    } else {
        claim_enqueue(p, c);
        pools_serve(p, now_realtime);
        list_unlink(&c->news);
    }
    *ret = c;
    return 0;
}

void pools_leave(struct pools *p, struct pool_claim *c, usec_t now_realtime) {
    claim_set_state(p, c, POOL_CLAIM_STATE_NONE);
    pools_serve(p, now_realtime);
    pools_drop_unused(p);
}
