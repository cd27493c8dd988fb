/* SPDX-License-Identifier: MIT */
#include "store/memory/pool.h"

#include <errno.h>
#include <stdlib.h>

uint32_t pool_used(const struct pool *pool) {
    uint32_t used = 0;

    list_foreach(part, &pool->held, struct pool_part, link)
        used += part->permits;
    return used;
}

/* --- a claim's state --- */

static void pool_touch(struct pools *pools, struct pool *pool) {
    if (!list_is_linked(&pool->due))
        list_append(&pools->due, &pool->due);
}

/* Inserts into a list that is ordered by queue key, from the tail. Returns how many parts are behind. */
static uint32_t insert_in_order(struct list *list, struct pool_part *part) {
    struct list *where = list;
    uint32_t n_behind = 0;

    for (; where->prev != list; n_behind++) {
        const struct pool_claim *other = list_entry(where->prev, struct pool_part, link)->claim;

        if (other->queue_key < part->claim->queue_key ||
            (other->queue_key == part->claim->queue_key && other->ticket < part->claim->ticket))
            break;
        where = where->prev;
    }
    list_insert_before(where, &part->link);
    return n_behind;
}

static void part_unlink(struct pools *pools, struct pool_part *part) {
    struct pool *pool = part->pool;

    switch (part->claim->state) {
    case POOL_CLAIM_STATE_NONE:
        return;
    case POOL_CLAIM_STATE_WAITING:
        if (pool->queue.next == &part->link) /* else the first one still cannot be granted */
            pool_touch(pools, pool);
        pool->n_queue--;
        break;
    case POOL_CLAIM_STATE_PARKED:
        pool->n_parked--;
        break;
    case POOL_CLAIM_STATE_HELD:
        pool_touch(pools, pool);
        break;
    }
    list_unlink(&part->link);
}

static void part_link(struct pools *pools, struct pool_part *part) {
    struct pool *pool = part->pool;
    uint32_t position;

    switch (part->claim->state) {
    case POOL_CLAIM_STATE_NONE:
        break;
    case POOL_CLAIM_STATE_WAITING:
        position = ++pool->n_queue - insert_in_order(&pool->queue, part);
        if (position == 1)
            pool_touch(pools, pool);
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

/* Changes the state of a claim and moves its parts to the lists of that state. No other function does. */
static void claim_set_state(struct pools *pools, struct pool_claim *c, enum pool_claim_state state) {
    for (size_t i = 0; i < c->n_parts; i++)
        part_unlink(pools, &c->parts[i]);
    c->state = state;
    c->position = 0;
    for (size_t i = 0; i < c->n_parts; i++)
        part_link(pools, &c->parts[i]);
}

/* Does the same on behalf of another claim, and adds this one to pools->changed. */
static void claim_move(struct pools *pools, struct pool_claim *c, enum pool_claim_state state) {
    claim_set_state(pools, c, state);
    if (!list_is_linked(&c->changed))
        list_append(&pools->changed, &c->changed);
}

/* --- granting --- */

/* Returns the permits in use, counted once in a call: within a call only grants change the number. */
static uint32_t pool_used_in_call(struct pools *pools, struct pool *pool) {
    if (pool->counted != pools->call) {
        pool->counted = pools->call;
        pool->used = pool_used(pool);
    }
    return pool->used;
}

/* Returns the first pool where the claim is not first or does not fit; NULL: it can be granted (R2, R3). */
static struct pool *claim_find_obstacle(struct pools *pools, struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts; i++) {
        struct pool *pool = c->parts[i].pool;
        uint32_t used, limit = pool_limit(pool);

        if (pool->queue.next != &c->parts[i].link)
            return pool;
        used = pool_used_in_call(pools, pool);
        if (used >= limit || c->parts[i].permits > limit - used)
            return pool;
    }
    return NULL;
}

static uint64_t pools_tick(struct pools *pools, usec_t now_realtime) {
    pools->clock = now_realtime > pools->clock ? now_realtime : pools->clock + 1;
    return pools->clock;
}

static void claim_grant(struct pools *pools, struct pool_claim *c, usec_t now_realtime) {
    for (size_t i = 0; i < c->n_parts; i++)
        c->parts[i].pool->used += c->parts[i].permits;
    c->token = pools_tick(pools, now_realtime);
    c->granted_realtime = now_realtime;
    claim_move(pools, c, POOL_CLAIM_STATE_HELD);
}

/* Grants in the order of the queues until nothing more fits. A grant makes its pools due again. */
void pools_settle(struct pools *pools, usec_t now_realtime) {
    if (!pools->is_open)
        return;
    pools->call++;
    while (!list_is_empty(&pools->due)) {
        struct pool *pool = list_first(&pools->due, struct pool, due);
        struct pool_part *head;

        list_unlink(&pool->due);
        while ((head = list_first(&pool->queue, struct pool_part, link)) &&
               !claim_find_obstacle(pools, head->claim))
            claim_grant(pools, head->claim, now_realtime);
    }
}

/* Returns the first pool whose limit is below the claim's demand, or NULL. */
static struct pool *claim_find_low_limit(struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i].permits > pool_limit(c->parts[i].pool))
            return c->parts[i].pool;
    return NULL;
}

static void pool_park(struct pools *pools, struct pool *pool) {
    list_foreach_safe(part, &pool->queue, struct pool_part, link)
        if (part->permits > pool_limit(pool))
            claim_move(pools, part->claim, POOL_CLAIM_STATE_PARKED);
}

static void pool_unpark(struct pools *pools, struct pool *pool) {
    list_foreach_safe(part, &pool->parked, struct pool_part, link)
        if (!claim_find_low_limit(part->claim))
            claim_move(pools, part->claim, POOL_CLAIM_STATE_WAITING);
}

void pools_reevaluate(struct pools *pools, usec_t now_realtime) {
    list_foreach(pool, &pools->pools, struct pool, link)
        pool_park(pools, pool);
    list_foreach(pool, &pools->pools, struct pool, link)
        pool_unpark(pools, pool);
    list_foreach(pool, &pools->pools, struct pool, link) {
        pool_touch(pools, pool);
        pool->is_evaluated = true;
        pool->evaluated_limit = pool_limit(pool);
        pool->evaluated_own = pool_has_own_limit(pool);
    }
    pools_settle(pools, now_realtime);
    pools_drop_unused(pools);
}

bool pool_has_new_limit(const struct pool *pool) {
    bool is_own = pool_has_own_limit(pool), was_own = !pool->pattern || pool->evaluated_own;

    return pool->is_evaluated && (is_own || was_own) && (pool->evaluated_limit != pool_limit(pool) || is_own != was_own);
}

void pools_open(struct pools *pools, usec_t now_realtime) {
    pools->is_open = true;
    pools_reevaluate(pools, now_realtime);
}

/* --- claims --- */

struct pool_claim *pool_claim_free(struct pool_claim *c) {
    if (!c)
        return NULL;
    list_unlink(&c->link);
    list_unlink(&c->changed);
    free(c);
    return NULL;
}

static struct pool_claim *claim_new(struct pools *pools, struct claim *claim) {
    struct pool_claim *c = calloc(1, sizeof(*c) + claim->n_demands * sizeof(c->parts[0]));

    if (!c)
        return NULL;
    c->claim = claim;
    c->n_parts = claim->n_demands;
    for (size_t i = 0; i < c->n_parts; i++)
        c->parts[i] = (struct pool_part) {.claim = c, .permits = claim->demands[i].permits};
    list_append(&pools->claims, &c->link);
    list_init(&c->changed);
    return c;
}

static void pools_remember(struct pools *pools, uint64_t number) {
    if (number > pools->clock)
        pools->clock = number;
}

/* Draws a ticket unless the claim has one, and computes the queue key. A ticket is near the time at which it
 * was drawn (R7), which is good enough to show people when the claim was queued. */
static void claim_draw_ticket(struct pools *pools, struct pool_claim *c, usec_t now_realtime) {
    pools_remember(pools, c->claim->ticket);
    c->ticket = c->claim->ticket > 0 ? c->claim->ticket : pools_tick(pools, now_realtime);
    c->queued_realtime = c->claim->ticket > 0 ? c->ticket : now_realtime;
    c->given_usec = c->claim->given_usec;
    c->moved = c->claim->moved;
    pools_remember(pools, c->moved);
    c->queue_key = usec_sub(c->ticket, claim_head_start(c->claim));
}

/* Queues the claim, or parks it if a limit is too low. */
static void claim_enqueue(struct pools *pools, struct pool_claim *c) {
    claim_set_state(pools, c, claim_find_low_limit(c) ? POOL_CLAIM_STATE_PARKED : POOL_CLAIM_STATE_WAITING);
}

static struct pool *claim_find_full_queue(struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts; i++) {
        struct pool *pool = c->parts[i].pool;

        if (pool->n_queue + pool->n_parked > pool_queue_limit(pool)) /* the claim itself is counted */
            return pool;
    }
    return NULL;
}

/* Returns 0 if a claim that was enqueued and not granted may wait, else a named answer. */
static int claim_check_wait(struct pools *pools, struct pool_claim *c, struct pool **ret_pool) {
    struct pool *pool;

    if (c->claim->nowait) {
        if (!(pool = claim_find_low_limit(c)) && !(pool = claim_find_obstacle(pools, c)))
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

/* Drops those pools of a claim that nobody else uses. The claim has none any more. */
static void claim_drop_pools(struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts && c->parts[i].pool; i++) {
        pool_drop_if_unused(c->parts[i].pool);
        c->parts[i].pool = NULL;
    }
}

/* Finds the pools of a new claim. 0, -ENOENT or -ENOMEM. */
static int claim_find_pools(struct pools *pools, struct pool_claim *c) {
    for (size_t i = 0; i < c->n_parts; i++) {
        struct pool *pool;
        int r = pools_get(pools, c->claim->demands[i].pool, &pool);

        if (r < 0)
            return r;
        if (!pool || !pool_is_defined(pool))
            return -ENOENT;
        c->parts[i].pool = pool;
    }
    return 0;
}

static size_t claim_find_part(const struct pool_claim *c, const struct pool *pool) {
    size_t i = 0;

    while (i + 1 < c->n_parts && c->parts[i].pool != pool)
        i++;
    return i;
}

int pools_claim(struct pools *pools, struct claim *claim, usec_t now_realtime, struct pool_claim **ret,
                size_t *ret_demand) {
    struct pool_claim *c = claim_new(pools, claim);
    struct pool *refusing = NULL;
    int r;

    if (!c)
        return -ENOMEM;
    r = claim_find_pools(pools, c);
    if (r < 0) {
        claim_drop_pools(c);
        pool_claim_free(c);
        return r;
    }
    claim_draw_ticket(pools, c, now_realtime);
    claim_enqueue(pools, c);
    pools_settle(pools, now_realtime);
    list_unlink(&c->changed); /* the caller knows */
    if (c->state != POOL_CLAIM_STATE_HELD && (r = claim_check_wait(pools, c, &refusing)) > 0) {
        *ret_demand = claim_find_part(c, refusing);
        pools_leave(pools, c, now_realtime);
    } else {
        r = 0;
    }
    *ret = c;
    return r;
}

int pools_adopt(struct pools *pools, struct claim *claim, usec_t now_realtime, struct pool_claim **ret) {
    struct pool_claim *c = claim_new(pools, claim);

    if (!c)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_parts; i++)
        if (pools_make(pools, claim->demands[i].pool, &c->parts[i].pool) < 0) {
            pool_claim_free(c);
            return -ENOMEM;
        }
    pools_remember(pools, claim->token);
    claim_draw_ticket(pools, c, now_realtime);
    if (claim->token > 0) {
        c->token = c->granted_realtime = claim->token;
        claim_set_state(pools, c, POOL_CLAIM_STATE_HELD);
    } else {
        claim_enqueue(pools, c);
        pools_settle(pools, now_realtime);
        list_unlink(&c->changed);
    }
    *ret = c;
    return 0;
}

void pools_place(struct pools *pools, struct pool_claim *c, usec_t given_usec, usec_t now_realtime) {
    c->moved = pools_tick(pools, now_realtime);
    c->given_usec = given_usec;
    c->queue_key = usec_sub(c->ticket, c->claim->head_start_usec + given_usec);
    claim_set_state(pools, c, c->state);
}

void pools_leave(struct pools *pools, struct pool_claim *c, usec_t now_realtime) {
    if (c->state == POOL_CLAIM_STATE_NONE)
        return;
    claim_set_state(pools, c, POOL_CLAIM_STATE_NONE);
    pools_settle(pools, now_realtime);
    claim_drop_pools(c);
}
