/* SPDX-License-Identifier: MIT */

#include "cli/explain/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/format.h"

#define STEPS_MAX 2000 /* limits tried above the one in force */

struct want {
    size_t pool;
    json_int_t permits;
};

struct claim {
    const json_t *json; /* a Holder or a Waiter */
    bool is_held;
    json_int_t waiting_ms;
    struct want *wants;
    size_t n_wants;
};

struct pool {
    const char *name;
    json_int_t limit, used;
    size_t *line, n_line; /* the waiting claims in their order, parked ones where their time puts them */
};

struct queue {
    struct pool *pools;
    struct claim *claims;
    size_t n_pools, n_claims;
    json_t *held, *waiting; /* claim -> its number; a run may hold permits of its host while it waits for the
                               cluster's */
    bool is_complete;
};

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
    free(q);
    return NULL;
}

/* --- from replies of berthd --- */

static int add_claim(struct queue *q, size_t pool, const json_t *json, bool is_held, size_t *ret) {
    const char *id = format_get_text(json, "claim");
    json_t *index = is_held ? q->held : q->waiting, *known = json_object_get(index, id);
    size_t number = known ? (size_t) json_integer_value(known) : q->n_claims;
    struct claim *c = &q->claims[number];
    struct want *wants;

    if (!known) {
        if (json_object_set_new(index, id, json_integer((json_int_t) number)) < 0)
            return -ENOMEM;
        *c = (struct claim){
            .json = json, .is_held = is_held, .waiting_ms = format_get_number(json, "waiting_ms")};
        q->n_claims++;
    }
    wants = reallocarray(c->wants, c->n_wants + 1, sizeof(*wants));
    if (!wants)
        return -ENOMEM;
    c->wants = wants;
    wants[c->n_wants++] = (struct want){.pool = pool, .permits = format_get_number(json, "permits")};
    *ret = number;
    return 0;
}

/* A parked claim has no place. It stands before the first one that waits less long; with a head start it may
 * stand elsewhere. */
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
    *ret = steal_pointer(&q);
    return 0;
}

bool queue_is_complete(const struct queue *q) {
    return q->is_complete;
}

static size_t find_claim(const json_t *index, const char *id) {
    const json_t *number = json_object_get(index, id);

    return number ? (size_t) json_integer_value(number) : SIZE_MAX;
}

static const struct pool *find_pool(const struct queue *q, const char *name) {
    for (size_t i = 0; i < q->n_pools; i++)
        if (strcmp(q->pools[i].name, name) == 0)
            return &q->pools[i];
    return NULL;
}

/* --- one play --- */

struct play {
    const struct queue *q;
    json_int_t *limits, *used; /* of each pool */
    size_t *heads; /* of each pool: the place of the first claim that has not started and is not parked */
    bool *started; /* of each claim */
};

static void play_done(struct play *p) {
    free(p->limits);
    free(p->used);
    free(p->heads);
    free(p->started);
}

static int play_begin(struct play *p, const struct queue *q, const struct queue_change *change) {
    size_t ended = change->ended ? find_claim(q->held, change->ended) : SIZE_MAX;

    *p = (struct play){.q = q,
                       .limits = calloc(q->n_pools + 1, sizeof(*p->limits)),
                       .used = calloc(q->n_pools + 1, sizeof(*p->used)),
                       .heads = calloc(q->n_pools + 1, sizeof(*p->heads)),
                       .started = calloc(q->n_claims + 1, sizeof(*p->started))};
    if (!p->limits || !p->used || !p->heads || !p->started)
        return -ENOMEM;
    for (size_t i = 0; i < q->n_pools; i++) {
        bool is_changed = change->pool && strcmp(change->pool, q->pools[i].name) == 0;

        p->limits[i] = is_changed ? change->limit : q->pools[i].limit;
        p->used[i] = q->pools[i].used;
    }
    if (ended != SIZE_MAX) {
        const struct claim *c = &q->claims[ended];

        for (size_t i = 0; i < c->n_wants; i++)
            p->used[c->wants[i].pool] -= c->wants[i].permits;
    }
    return 0;
}

static bool is_parked(const struct play *p, const struct claim *c) {
    for (size_t i = 0; i < c->n_wants; i++)
        if (c->wants[i].permits > p->limits[c->wants[i].pool])
            return true;
    return false;
}

/* Returns the number of the first claim of a queue; SIZE_MAX: none. */
static size_t head_of(struct play *p, size_t pool) {
    const struct pool *line = &p->q->pools[pool];

    for (; p->heads[pool] < line->n_line; p->heads[pool]++) {
        size_t c = line->line[p->heads[pool]];

        if (!p->started[c] && !is_parked(p, &p->q->claims[c]))
            return c;
    }
    return SIZE_MAX;
}

static bool may_start(struct play *p, size_t claim) {
    const struct claim *c = &p->q->claims[claim];

    for (size_t i = 0; i < c->n_wants; i++) {
        size_t pool = c->wants[i].pool;

        if (p->used[pool] + c->wants[i].permits > p->limits[pool] || head_of(p, pool) != claim)
            return false;
    }
    return true;
}

static int start(struct play *p, size_t claim, json_t *list) {
    const struct claim *c = &p->q->claims[claim];

    p->started[claim] = true;
    for (size_t i = 0; i < c->n_wants; i++)
        p->used[c->wants[i].pool] += c->wants[i].permits;
    return list && json_array_append(list, (json_t *) c->json) < 0 ? -ENOMEM : 0;
}

/* A claim that may start is first in all its queues, so no other one can take its permits: the order of the
 * pools does not matter. */
static int play_on(struct play *p, json_t *list) {
    bool is_over = false;

    while (!is_over) {
        is_over = true;
        for (size_t i = 0; i < p->q->n_pools; i++) {
            size_t claim = head_of(p, i);

            if (claim == SIZE_MAX || !may_start(p, claim))
                continue;
            if (start(p, claim, list) < 0)
                return -ENOMEM;
            is_over = false;
        }
    }
    return 0;
}

bool queue_starts(const struct queue *q, const struct queue_change *change, const char *claim,
                  json_t **ret) {
    _cleanup_(play_done) struct play p = {};
    json_t *list = ret ? json_array() : NULL;
    size_t wanted = find_claim(q->waiting, claim);
    int r = ret && !list ? -ENOMEM : play_begin(&p, q, change);

    if (r == 0)
        r = play_on(&p, list);
    if (ret)
        *ret = list;
    return r == 0 && wanted != SIZE_MAX && p.started[wanted];
}

/* --- what would help --- */

/* A higher limit may start fewer claims: one that was parked, and wants much, comes first again. So each
 * limit is tried. */
json_int_t queue_lowest_limit(const struct queue *q, const char *pool, const char *claim) {
    const struct pool *p = find_pool(q, pool);
    json_int_t most = 0;

    if (!p)
        return -1;
    most = p->used;
    for (size_t i = 0; i < p->n_line; i++) {
        const struct claim *c = &q->claims[p->line[i]];

        for (size_t k = 0; k < c->n_wants; k++)
            if (&q->pools[c->wants[k].pool] == p)
                most += c->wants[k].permits;
    }
    for (json_int_t limit = p->limit + 1; limit <= most && limit - p->limit <= STEPS_MAX; limit++)
        if (queue_starts(q, &(struct queue_change){.pool = pool, .limit = limit}, claim, NULL))
            return limit;
    return -1;
}

const json_t *queue_enough(const struct queue *q, const char *claim) {
    const json_t *best = NULL;

    for (size_t i = 0; i < q->n_claims; i++) {
        const struct claim *c = &q->claims[i];
        const char *id = format_get_text(c->json, "claim"), *since = format_get_text(c->json, "since");

        if (!c->is_held || (best && strcmp(since, format_get_text(best, "since")) <= 0))
            continue;
        if (queue_starts(q, &(struct queue_change){.ended = id}, claim, NULL))
            best = c->json;
    }
    return best;
}
