/* SPDX-License-Identifier: MIT */
/* Plays queues on by the rules, with and without time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/queue-internal.h"
#include "base/json/format.h"

struct end { /* of a claim that holds */
    double msec;
    size_t claim;
};

struct play {
    const struct queue *q;
    json_int_t *limits, *used; /* of each pool */
    size_t *heads; /* of each pool: the place of the first claim that has not started and is not parked */
    bool *started; /* of each claim */
    size_t first;  /* the claim that was moved before all others; SIZE_MAX: none */
    const struct queue_times *times; /* NULL: without time */
    double now;
    struct end *ends; /* a heap, the next one first */
    size_t n_ends;
};

static void play_done(struct play *p) {
    free(p->limits);
    free(p->used);
    free(p->heads);
    free(p->started);
    free(p->ends);
}

static void give_back(struct play *p, size_t claim) {
    const struct claim *c = &p->q->claims[claim];

    for (size_t i = 0; i < c->n_wants; i++)
        p->used[c->wants[i].pool] -= c->wants[i].permits;
}

static int play_begin(struct play *p, const struct queue *q, const struct queue_change *change) {
    size_t ended = change->ended ? queue_find(q->held, change->ended) : SIZE_MAX;

    *p = (struct play){.q = q,
                       .limits = calloc(q->n_pools + 1, sizeof(*p->limits)),
                       .used = calloc(q->n_pools + 1, sizeof(*p->used)),
                       .heads = calloc(q->n_pools + 1, sizeof(*p->heads)),
                       .started = calloc(q->n_claims + 1, sizeof(*p->started)),
                       .first = change->first ? queue_find(q->waiting, change->first) : SIZE_MAX};
    if (!p->limits || !p->used || !p->heads || !p->started)
        return -ENOMEM;
    for (size_t i = 0; i < q->n_pools; i++) {
        bool is_changed = change->pool && strcmp(change->pool, q->pools[i].name) == 0;

        p->limits[i] = is_changed ? change->limit : q->pools[i].limit;
        p->used[i] = q->pools[i].used;
    }
    if (ended != SIZE_MAX)
        give_back(p, ended);
    return 0;
}

static bool is_parked(const struct play *p, const struct claim *c) {
    for (size_t i = 0; i < c->n_wants; i++)
        if (c->wants[i].permits > p->limits[c->wants[i].pool])
            return true;
    return false;
}

static bool wants(const struct claim *c, size_t pool) {
    for (size_t i = 0; i < c->n_wants; i++)
        if (c->wants[i].pool == pool)
            return true;
    return false;
}

static bool is_next(const struct play *p, size_t claim) {
    return !p->started[claim] && !is_parked(p, &p->q->claims[claim]);
}

/* Returns the number of the first claim of a queue; SIZE_MAX: none. */
static size_t head_of(struct play *p, size_t pool) {
    const struct pool *line = &p->q->pools[pool];

    if (p->first != SIZE_MAX && is_next(p, p->first) && wants(&p->q->claims[p->first], pool))
        return p->first;
    for (; p->heads[pool] < line->n_line; p->heads[pool]++)
        if (is_next(p, line->line[p->heads[pool]]))
            return line->line[p->heads[pool]];
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

/* --- ends, the next one first --- */

static void swap(struct end *a, struct end *b) {
    struct end c = *a;

    *a = *b;
    *b = c;
}

static void add_end(struct play *p, size_t claim) {
    size_t i = p->n_ends++;

    p->ends[i] = (struct end){.msec = p->now + p->times->msec[claim], .claim = claim};
    for (; i > 0 && p->ends[i].msec < p->ends[(i - 1) / 2].msec; i = (i - 1) / 2)
        swap(&p->ends[i], &p->ends[(i - 1) / 2]);
}

static struct end take_end(struct play *p) {
    struct end next = p->ends[0];
    size_t i = 0, child;

    p->ends[0] = p->ends[--p->n_ends];
    while ((child = 2 * i + 1) < p->n_ends) {
        if (child + 1 < p->n_ends && p->ends[child + 1].msec < p->ends[child].msec)
            child++;
        if (p->ends[i].msec <= p->ends[child].msec)
            break;
        swap(&p->ends[i], &p->ends[child]);
        i = child;
    }
    return next;
}

/* --- starts --- */

static int start(struct play *p, size_t claim, json_t *list) {
    const struct claim *c = &p->q->claims[claim];

    p->started[claim] = true;
    for (size_t i = 0; i < c->n_wants; i++)
        p->used[c->wants[i].pool] += c->wants[i].permits;
    if (p->times)
        add_end(p, claim);
    return list && json_array_append(list, (json_t *) c->json) < 0 ? -ENOMEM : 0;
}

/* Starts all claims that may start. Each is first in all its queues, so no other claim can take its permits,
 * and the order of the pools does not matter. */
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
    size_t wanted = queue_find(q->waiting, claim);
    int r = ret && !list ? -ENOMEM : play_begin(&p, q, change);

    if (r == 0)
        r = play_on(&p, list);
    if (ret)
        *ret = list;
    return r == 0 && wanted != SIZE_MAX && p.started[wanted];
}

/* --- with time --- */

/* Returns whether the run of a holder still waits. */
static bool is_of_waiting(const struct claim *c) {
    return c->is_held && c->twin != SIZE_MAX;
}

static int begin_time(struct play *p, const struct queue_times *times, const struct queue_change *change) {
    size_t ended = change->ended ? queue_find(p->q->held, change->ended) : SIZE_MAX;

    p->times = times;
    p->ends = calloc(p->q->n_claims + 1, sizeof(*p->ends));
    if (!p->ends)
        return -ENOMEM;
    for (size_t i = 0; i < p->q->n_claims; i++)
        if (p->q->claims[i].is_held && i != ended && !is_of_waiting(&p->q->claims[i]))
            add_end(p, i);
    return 0;
}

/* Ends the next claim. Permits of host pools that the run held while it waited end with it. */
static void end_next(struct play *p) {
    struct end end = take_end(p);
    size_t twin = p->q->claims[end.claim].is_held ? SIZE_MAX : p->q->claims[end.claim].twin;

    p->now = end.msec;
    give_back(p, end.claim);
    if (twin != SIZE_MAX)
        give_back(p, twin);
}

static void change_limit(struct play *p, const struct queue_later *later) {
    p->now = later->msec > p->now ? later->msec : p->now;
    p->limits[later->pool] = later->limit;
    memset(p->heads, 0, p->q->n_pools * sizeof(*p->heads)); /* parked claims may be in their queues again */
}

double queue_start_time(const struct queue *q, const struct queue_change *change, const char *claim,
                        const struct queue_times *times) {
    _cleanup_(play_done) struct play p = {};
    size_t wanted = queue_find(q->waiting, claim), n_later = 0;

    if (wanted == SIZE_MAX || play_begin(&p, q, change) < 0 || begin_time(&p, times, change) < 0)
        return -1;
    for (;;) {
        const struct queue_later *later = n_later < times->n_later ? &times->later[n_later] : NULL;

        if (play_on(&p, NULL) < 0)
            return -1;
        if (p.started[wanted])
            return p.now;
        if (later && (p.n_ends == 0 || later->msec <= p.ends[0].msec)) {
            change_limit(&p, later);
            n_later++;
        } else if (p.n_ends > 0) {
            end_next(&p);
        } else {
            return -1;
        }
    }
}

/* --- claims that matter --- */

static bool has_marked(const struct play *p, const struct pool *line, const bool *before) {
    for (size_t i = 0; i < line->n_line; i++)
        if (before[line->line[i]] && line->line[i] != p->first)
            return true;
    return false;
}

/* Marks the claims before a marked one in one queue. If a limit will change, marks the whole queue, because
 * claims may pass a parked one. Returns whether there were new ones. */
static bool mark_before(const struct play *p, size_t pool, bool *before) {
    const struct pool *line = &p->q->pools[pool];
    bool is_new = false, is_behind = p->times->n_later > 0 && has_marked(p, line, before);

    for (size_t i = line->n_line; i-- > 0;) {
        size_t c = line->line[i];

        if (!before[c] && is_behind && (p->times->n_later > 0 || !is_parked(p, &p->q->claims[c])))
            is_new = before[c] = true;
        is_behind |= before[c] && c != p->first;
    }
    return is_new;
}

/* Returns whether the holders of the pool and the marked claims do not all fit into it. */
static bool is_scarce(const struct play *p, size_t pool, const bool *before) {
    json_int_t limit = p->limits[pool], needed = p->used[pool];

    for (size_t i = 0; i < p->times->n_later; i++)
        if (p->times->later[i].pool == pool && (limit == 0 || p->times->later[i].limit < limit))
            limit = p->times->later[i].limit;
    for (size_t i = 0; i < p->q->n_claims; i++)
        for (size_t k = 0; before[i] && k < p->q->claims[i].n_wants; k++)
            if (p->q->claims[i].wants[k].pool == pool)
                needed += p->q->claims[i].wants[k].permits;
    return needed > limit;
}

static void mark_needs(const struct play *p, const bool *before, bool *needs) {
    for (size_t pool = 0; pool < p->q->n_pools; pool++) {
        if (!is_scarce(p, pool, before))
            continue;
        for (size_t i = 0; i < p->q->n_claims; i++)
            if (wants(&p->q->claims[i], pool) && (before[i] || p->q->claims[i].is_held))
                needs[i] = true;
    }
}

int queue_needs(const struct queue *q, const struct queue_change *change, const char *claim,
                const struct queue_times *times, bool *needs) {
    _cleanup_(play_done) struct play p = {};
    _cleanup_free_ bool *before = calloc(q->n_claims + 1, sizeof(*before));
    size_t wanted = queue_find(q->waiting, claim);
    bool is_new = true;

    memset(needs, 0, q->n_claims * sizeof(*needs));
    if (!before || play_begin(&p, q, change) < 0)
        return -ENOMEM;
    if (wanted == SIZE_MAX)
        return 0;
    p.times = times;
    before[wanted] = true;
    while (is_new) {
        is_new = false;
        for (size_t pool = 0; pool < q->n_pools; pool++)
            is_new |= mark_before(&p, pool, before);
        /* Permits that a run holds while it waits return after its wait. */
        for (size_t i = 0; i < q->n_claims; i++) {
            size_t twin = q->claims[i].twin;

            if (is_of_waiting(&q->claims[i]) && !before[twin]) {
                bool matters = false;

                for (size_t k = 0; k < q->claims[i].n_wants; k++)
                    matters |= is_scarce(&p, q->claims[i].wants[k].pool, before);
                is_new |= matters;
                before[twin] |= matters;
            }
        }
    }
    mark_needs(&p, before, needs);
    for (size_t i = 0; i < q->n_claims; i++) /* a waiting run holds its permits until it ends */
        needs[i] &= !is_of_waiting(&q->claims[i]);
    needs[wanted] = false;
    return 0;
}
