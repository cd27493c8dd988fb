/* SPDX-License-Identifier: MIT */

#include "base/array.h"
#include "base/explain/queue-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"

struct queue *queue_free(struct queue *q) {
    if (!q)
        return NULL;
    for (size_t i = 0; i < q->n_pools; i++)
        free(q->pools[i].line);
    for (size_t i = 0; i < q->n_claims; i++)
        free(q->claims[i].wants);
    free(q->pools);
    free(q->claims);
    json_decref(q->held);
    json_decref(q->waiting);
    queue_help_free(q->help);
    free(q);
    return NULL;
}

/* --- from replies of berthd --- */

static int add_claim(struct queue *q, size_t pool, const json_t *json, bool is_held, size_t *ret) {
    const char *id = format_get_text(json, "claim");
    json_t *index = is_held ? q->held : q->waiting, *known = json_object_get(index, id);
    size_t number = known ? (size_t) json_integer_value(known) : q->n_claims;
    struct claim *c = &q->claims[number];

    if (!known) {
        if (json_object_set_new(index, id, json_integer((json_int_t) number)) < 0)
            return -ENOMEM;
        *c = (struct claim){
            .json = json, .is_held = is_held, .waiting_ms = format_get_number(json, "waiting_ms")};
        q->n_claims++;
    }
    if (!array_grow(c->wants, c->n_wants))
        return -ENOMEM;
    c->wants[c->n_wants++] = (struct want){.pool = pool, .permits = format_get_number(json, "permits")};
    *ret = number;
    return 0;
}

/* Returns the place of a parked claim, which berthd does not send: before the first claim with a shorter
 * wait. With a head start it may be another one. */
static size_t place_of(const struct queue *q, const struct pool *p, const struct claim *parked) {
    size_t place = 0;

    while (place < p->n_line && q->claims[p->line[place]].waiting_ms >= parked->waiting_ms)
        place++;
    return place;
}

static int add_waiters(struct queue *q, size_t number, const json_t *waiters, bool parked) {
    struct pool *p = &q->pools[number];
    json_t *waiter;
    size_t i, claim, place;
    int r;

    json_array_foreach (waiters, i, waiter) {
        if ((format_get_number(waiter, "position") == 0) != parked)
            continue;
        r = add_claim(q, number, waiter, false, &claim);
        if (r < 0)
            return r;
        place = parked ? place_of(q, p, &q->claims[claim]) : p->n_line;
        memmove(&p->line[place + 1], &p->line[place], (p->n_line - place) * sizeof(*p->line));
        p->line[place] = claim;
        p->n_line++;
    }
    return 0;
}

static int add_pool(struct queue *q, const json_t *json) {
    const json_t *holders = json_object_get(json, "holders"), *waiters = json_object_get(json, "queue");
    struct pool *p = &q->pools[q->n_pools];
    json_int_t held = 0;
    json_t *holder;
    size_t i, claim;
    int r;

    *p = (struct pool){.name = format_get_text(json, "name"),
                       .limit = format_get_number(json, "limit"),
                       .used = format_get_number(json, "used"),
                       .line = calloc(json_array_size(waiters) + 1, sizeof(*p->line))};
    if (!p->line)
        return -ENOMEM;
    q->n_pools++;
    json_array_foreach (holders, i, holder) {
        r = add_claim(q, q->n_pools - 1, holder, true, &claim);
        if (r < 0)
            return r;
        held += format_get_number(holder, "permits");
    }
    r = add_waiters(q, q->n_pools - 1, waiters, false);
    if (r == 0)
        r = add_waiters(q, q->n_pools - 1, waiters, true);
    if (held < p->used || p->n_line < (size_t) format_get_number(json, "waiting"))
        q->is_complete = false;
    return r;
}

static void find_twins(struct queue *q) {
    for (size_t i = 0; i < q->n_claims; i++)
        q->claims[i].twin =
            queue_find(q->claims[i].is_held ? q->waiting : q->held, format_get_text(q->claims[i].json, "claim"));
}

static size_t count_claims(const json_t *pools) {
    size_t i, n = 0;
    json_t *pool;

    json_array_foreach (pools, i, pool)
        n += json_array_size(json_object_get(pool, "holders")) +
             json_array_size(json_object_get(pool, "queue"));
    return n;
}

int queue_new(struct queue **ret, const json_t *pools) {
    _cleanup_(queue_freep) struct queue *q = calloc(1, sizeof(*q));
    json_t *pool;
    size_t i;
    int r;

    if (!q)
        return -ENOMEM;
    q->is_complete = true;
    q->pools = calloc(json_array_size(pools) + 1, sizeof(*q->pools));
    q->claims = calloc(count_claims(pools) + 1, sizeof(*q->claims));
    q->held = json_object();
    q->waiting = json_object();
    if (!q->pools || !q->claims || !q->held || !q->waiting)
        return -ENOMEM;
    json_array_foreach (pools, i, pool) {
        r = add_pool(q, pool);
        if (r < 0)
            return r;
    }
    find_twins(q);
    *ret = steal_pointer(&q);
    return 0;
}

bool queue_is_complete(const struct queue *q) {
    return q->is_complete;
}

size_t queue_find(const json_t *index, const char *id) {
    const json_t *number = json_object_get(index, id);

    return number ? (size_t) json_integer_value(number) : SIZE_MAX;
}

/* --- all claims --- */

size_t queue_count(const struct queue *q) {
    return q->n_claims;
}

const json_t *queue_claim(const struct queue *q, size_t i, bool *ret_is_held) {
    *ret_is_held = q->claims[i].is_held;
    return q->claims[i].json;
}

size_t queue_pool_of(const struct queue *q, size_t i) {
    return q->claims[i].wants[0].pool;
}

size_t queue_number(const struct queue *q, const char *claim) {
    return queue_find(q->waiting, claim);
}
