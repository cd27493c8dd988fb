/* SPDX-License-Identifier: MIT */
/* What would start a claim at once: a higher limit, or the end of a holder. Both are found for all claims in
 * one play, because `berth explain` asks for each run of a job. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/queue-internal.h"
#include "base/json/format.h"

#define STEPS_MAX 2000 /* limits tried above the one in force */

struct queue_help {
    json_int_t **lowest;   /* of each pool: NULL, or for each claim the lowest limit that starts it; -1: none */
    size_t n_lowest;
    size_t *holders, n_holders; /* by the begin of their grants, the last one first */
    const json_t **enough; /* of each claim: the first of those holders whose end starts it */
    bool knows_ends;       /* the latter three are known */
};

struct queue_help *queue_help_free(struct queue_help *h) {
    if (!h)
        return NULL;
    for (size_t i = 0; i < h->n_lowest; i++)
        free(h->lowest[i]);
    free(h->lowest);
    free(h->holders);
    free(h->enough);
    free(h);
    return NULL;
}

/* Returns what is found so far; NULL: no memory. */
static struct queue_help *help_of(struct queue *q) {
    struct queue_help *h = q->help ? q->help : calloc(1, sizeof(*h));

    if (!h || q->help)
        return h;
    h->n_lowest = q->n_pools;
    h->lowest = calloc(q->n_pools + 1, sizeof(*h->lowest));
    h->holders = calloc(q->n_claims + 1, sizeof(*h->holders));
    h->enough = calloc(q->n_claims + 1, sizeof(*h->enough));
    if (!h->lowest || !h->holders || !h->enough)
        return queue_help_free(h);
    return q->help = h;
}

/* --- limits --- */

static size_t find_pool(const struct queue *q, const char *name) {
    for (size_t i = 0; i < q->n_pools; i++)
        if (strcmp(q->pools[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* Returns with which limit all claims of the pool would hold their permits. */
static json_int_t most_of(const struct queue *q, size_t pool) {
    const struct pool *p = &q->pools[pool];
    json_int_t most = p->used;

    for (size_t i = 0; i < p->n_line; i++) {
        const struct claim *c = &q->claims[p->line[i]];

        for (size_t k = 0; k < c->n_wants; k++)
            if (c->wants[k].pool == pool)
                most += c->wants[k].permits;
    }
    return most;
}

/* Notes for each limit above the one in force whether it is the first one that some claim fits below. */
static void find_unparking(const struct queue *q, size_t pool, bool unparks[static STEPS_MAX + 1]) {
    for (size_t i = 0; i < q->n_claims; i++)
        for (size_t k = 0; k < q->claims[i].n_wants; k++) {
            const struct want *w = &q->claims[i].wants[k];
            json_int_t above = w->permits - q->pools[pool].limit;

            if (strcmp(q->pools[w->pool].name, q->pools[pool].name) == 0 && above > 0 && above <= STEPS_MAX)
                unparks[above] = true;
        }
}

static void set_limit(struct play *p, const char *name, json_int_t limit) {
    for (size_t i = 0; i < p->q->n_pools; i++)
        if (strcmp(p->q->pools[i].name, name) == 0)
            p->limits[i] = limit;
}

/* Tries each limit, because a higher one may start fewer claims: a large claim that was parked is first again.
 * Only then the play begins again. Else the claims that started with the limit below start with this one, too,
 * and the play goes on from there. */
static int play_limits(const struct queue *q, size_t pool, json_int_t *lowest) {
    _cleanup_(play_done) struct play p = {};
    bool unparks[STEPS_MAX + 1] = {};
    struct queue_change change = {.pool = q->pools[pool].name};
    json_int_t limit = q->pools[pool].limit, most = most_of(q, pool);

    find_unparking(q, pool, unparks);
    for (json_int_t step = 1; step <= STEPS_MAX && limit + step <= most; step++) {
        size_t seen = p.n_order;

        change.limit = limit + step;
        if (step == 1 || unparks[step]) {
            play_done(&p);
            seen = 0;
            if (play_begin(&p, q, &change) < 0)
                return -ENOMEM;
        } else {
            set_limit(&p, change.pool, change.limit);
        }
        play_on(&p);
        for (; seen < p.n_order; seen++)
            if (lowest[p.order[seen]] < 0)
                lowest[p.order[seen]] = change.limit;
    }
    return 0;
}

json_int_t queue_lowest_limit(struct queue *q, const char *pool, const char *claim) {
    size_t number = find_pool(q, pool), wanted = queue_find(q->waiting, claim);
    struct queue_help *h = number == SIZE_MAX || wanted == SIZE_MAX ? NULL : help_of(q);
    json_int_t *lowest = h ? h->lowest[number] : NULL;

    if (!h)
        return -1;
    if (!lowest) {
        lowest = calloc(q->n_claims + 1, sizeof(*lowest));
        if (!lowest)
            return -1;
        for (size_t i = 0; i < q->n_claims; i++)
            lowest[i] = -1;
        if (play_limits(q, number, lowest) < 0) {
            free(lowest);
            return -1;
        }
        h->lowest[number] = lowest;
    }
    return lowest[wanted];
}

/* --- holders --- */

static int compare_begins(const void *a, const void *b, void *userdata) {
    size_t x = *(const size_t *) a, y = *(const size_t *) b;
    const struct queue *q = userdata;
    int k = strcmp(format_get_text(q->claims[y].json, "since"), format_get_text(q->claims[x].json, "since"));

    return k != 0 ? k : (x > y) - (x < y);
}

/* Plays the queues on after the end of each holder. */
static int play_ends(const struct queue *q, struct queue_help *h) {
    _cleanup_(play_done) struct play p = {};
    _cleanup_free_ size_t *heads = calloc(q->n_pools + 1, sizeof(*heads));
    size_t at_once;

    if (!heads || play_begin(&p, q, &(struct queue_change) {}) < 0)
        return -ENOMEM;
    play_on(&p);
    at_once = p.n_order;
    for (size_t i = 0; i < at_once && h->n_holders > 0; i++)
        h->enough[p.order[i]] = q->claims[h->holders[0]].json;
    memcpy(heads, p.heads, q->n_pools * sizeof(*heads));
    for (size_t i = 0; i < h->n_holders; i++) {
        const struct claim *holder = &q->claims[h->holders[i]];

        play_give_back(&p, h->holders[i]);
        play_on(&p);
        for (size_t k = at_once; k < p.n_order; k++)
            if (!h->enough[p.order[k]])
                h->enough[p.order[k]] = holder->json;
        play_undo(&p, at_once);
        memcpy(p.heads, heads, q->n_pools * sizeof(*heads));
        for (size_t k = 0; k < holder->n_wants; k++)
            p.used[holder->wants[k].pool] += holder->wants[k].permits;
    }
    return 0;
}

static int find_ends(struct queue *q, struct queue_help *h) {
    if (!h)
        return -ENOMEM;
    if (h->knows_ends)
        return 0;
    h->n_holders = 0;
    for (size_t i = 0; i < q->n_claims; i++)
        if (q->claims[i].is_held)
            h->holders[h->n_holders++] = i;
    qsort_r(h->holders, h->n_holders, sizeof(*h->holders), compare_begins, q);
    if (play_ends(q, h) < 0)
        return -ENOMEM;
    h->knows_ends = true;
    return 0;
}

/* Returns whether a claim that is first in all its queues fits after the end of a holder. */
static bool fits_after(const struct queue *q, const struct claim *c, const struct claim *holder) {
    for (size_t i = 0; i < c->n_wants; i++) {
        const struct pool *p = &q->pools[c->wants[i].pool];
        json_int_t used = p->used;

        for (size_t k = 0; k < holder->n_wants; k++)
            used -= holder->wants[k].pool == c->wants[i].pool ? holder->wants[k].permits : 0;
        if (c->wants[i].permits > p->limit || used + c->wants[i].permits > p->limit)
            return false;
    }
    return true;
}

const json_t *queue_enough(struct queue *q, const char *claim, bool first) {
    size_t wanted = queue_find(q->waiting, claim);
    struct queue_help *h = wanted == SIZE_MAX ? NULL : help_of(q);

    if (find_ends(q, h) < 0)
        return NULL;
    if (!first)
        return h->enough[wanted];
    for (size_t i = 0; i < h->n_holders; i++)
        if (fits_after(q, &q->claims[wanted], &q->claims[h->holders[i]]))
            return q->claims[h->holders[i]].json;
    return NULL;
}
