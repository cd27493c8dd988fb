/* SPDX-License-Identifier: MIT */
/* Plays queues on by the rules, with and without time. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/queue-internal.h"
#include "base/json/format.h"

void play_done(struct play *p) {
    free(p->limits);
    free(p->used);
    free(p->heads);
    free(p->started);
    free(p->order);
    free(p->ends);
}

void play_give_back(struct play *p, size_t claim) {
    const struct claim *c = &p->q->claims[claim];

    for (size_t i = 0; i < c->n_wants; i++)
        p->used[c->wants[i].pool] -= c->wants[i].permits;
}

int play_begin(struct play *p, const struct queue *q, const struct queue_change *change) {
    size_t ended = change->ended ? queue_find(q->held, change->ended) : SIZE_MAX;

    *p = (struct play){.q = q,
                       .limits = calloc(q->n_pools + 1, sizeof(*p->limits)),
                       .used = calloc(q->n_pools + 1, sizeof(*p->used)),
                       .heads = calloc(q->n_pools + 1, sizeof(*p->heads)),
                       .started = calloc(q->n_claims + 1, sizeof(*p->started)),
                       .order = calloc(q->n_claims + 1, sizeof(*p->order)),
                       .first = change->first ? queue_find(q->waiting, change->first) : SIZE_MAX};
    if (!p->limits || !p->used || !p->heads || !p->started || !p->order)
        return -ENOMEM;
    for (size_t i = 0; i < q->n_pools; i++) {
        bool is_changed = change->pool && strcmp(change->pool, q->pools[i].name) == 0;

        p->limits[i] = is_changed ? change->limit : q->pools[i].limit;
        p->used[i] = q->pools[i].used;
    }
    if (ended != SIZE_MAX)
        play_give_back(p, ended);
    return 0;
}

bool play_is_parked(const struct play *p, const struct claim *c) {
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
    return !p->started[claim] && !play_is_parked(p, &p->q->claims[claim]);
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

static void start(struct play *p, size_t claim) {
    const struct claim *c = &p->q->claims[claim];

    p->started[claim] = true;
    p->order[p->n_order++] = claim;
    for (size_t i = 0; i < c->n_wants; i++)
        p->used[c->wants[i].pool] += c->wants[i].permits;
    if (p->began)
        p->began[claim] = p->now;
    if (p->times)
        add_end(p, claim);
}

/* Starts all claims that may start. Each is first in all its queues, so no other claim can take its permits,
 * and the order of the pools does not matter. */
void play_on(struct play *p) {
    bool is_over = false;

    while (!is_over) {
        is_over = true;
        for (size_t i = 0; i < p->q->n_pools; i++) {
            size_t claim = head_of(p, i);

            if (claim == SIZE_MAX || !may_start(p, claim))
                continue;
            start(p, claim);
            is_over = false;
        }
    }
}

void play_undo(struct play *p, size_t n) {
    while (p->n_order > n) {
        size_t claim = p->order[--p->n_order];

        p->started[claim] = false;
        play_give_back(p, claim);
    }
}

static json_t *list_started(const struct play *p) {
    json_t *list = json_array();

    for (size_t i = 0; i < p->n_order; i++)
        if (json_array_append(list, (json_t *) p->q->claims[p->order[i]].json) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

bool queue_starts(const struct queue *q, const struct queue_change *change, const char *claim,
                  json_t **ret) {
    _cleanup_(play_done) struct play p = {};
    size_t wanted = queue_find(q->waiting, claim);
    int r = play_begin(&p, q, change);

    if (r == 0)
        play_on(&p);
    if (ret)
        *ret = r == 0 ? list_started(&p) : NULL;
    return r == 0 && (!ret || *ret) && wanted != SIZE_MAX && p.started[wanted];
}

/* --- with time --- */

struct queue_player {
    struct play play;
    size_t wanted, *holders, n_holders; /* the claims that hold permits and do not wait */
    json_int_t *limits, *used; /* of each pool, at the begin */
};

struct queue_player *queue_player_free(struct queue_player *player) {
    if (!player)
        return NULL;
    play_done(&player->play);
    free(player->holders);
    free(player->limits);
    free(player->used);
    free(player);
    return NULL;
}

static void find_holders(struct queue_player *player, const struct queue_change *change) {
    const struct queue *q = player->play.q;
    size_t ended = change->ended ? queue_find(q->held, change->ended) : SIZE_MAX;

    for (size_t i = 0; i < q->n_claims; i++)
        if (q->claims[i].is_held && i != ended && !claim_is_of_waiting(&q->claims[i]))
            player->holders[player->n_holders++] = i;
}

struct queue_player *queue_player_new(const struct queue *q, const struct queue_change *change, const char *claim) {
    _cleanup_(queue_player_freep) struct queue_player *player = calloc(1, sizeof(*player));
    size_t n = q->n_pools;

    if (!player || play_begin(&player->play, q, change) < 0)
        return NULL;
    player->wanted = claim ? queue_find(q->waiting, claim) : SIZE_MAX;
    player->play.ends = calloc(q->n_claims + 1, sizeof(*player->play.ends));
    player->holders = calloc(q->n_claims + 1, sizeof(*player->holders));
    player->limits = calloc(n + 1, sizeof(*player->limits));
    player->used = calloc(n + 1, sizeof(*player->used));
    if (!player->play.ends || !player->holders || !player->limits || !player->used)
        return NULL;
    memcpy(player->limits, player->play.limits, n * sizeof(*player->limits));
    memcpy(player->used, player->play.used, n * sizeof(*player->used));
    find_holders(player, change);
    return steal_pointer(&player);
}

static void play_again(struct queue_player *player, const struct queue_times *times) {
    struct play *p = &player->play;
    size_t n = p->q->n_pools;

    memcpy(p->limits, player->limits, n * sizeof(*p->limits));
    memcpy(p->used, player->used, n * sizeof(*p->used));
    memset(p->heads, 0, n * sizeof(*p->heads));
    while (p->n_order > 0)
        p->started[p->order[--p->n_order]] = false;
    p->times = times;
    p->now = 0;
    p->n_ends = 0;
    for (size_t i = 0; i < player->n_holders; i++)
        add_end(p, player->holders[i]);
}

/* Ends the next claim. Permits of host pools that the run held while it waited end with it. */
static void end_next(struct play *p) {
    struct end end = take_end(p);
    size_t twin = p->q->claims[end.claim].is_held ? SIZE_MAX : p->q->claims[end.claim].twin;

    p->now = end.msec;
    play_give_back(p, end.claim);
    if (twin != SIZE_MAX)
        play_give_back(p, twin);
}

static void change_limit(struct play *p, const struct queue_later *later) {
    p->now = later->msec > p->now ? later->msec : p->now;
    p->limits[later->pool] = later->limit;
    memset(p->heads, 0, p->q->n_pools * sizeof(*p->heads)); /* parked claims may be in their queues again */
}

/* Advances to the next end of a claim or change of a limit. Returns false if there is none. */
static bool step(struct play *p, size_t *n_later) {
    const struct queue_later *later = *n_later < p->times->n_later ? &p->times->later[*n_later] : NULL;

    if (later && (p->n_ends == 0 || later->msec <= p->ends[0].msec)) {
        change_limit(p, later);
        ++*n_later;
        return true;
    }
    if (p->n_ends == 0 || isinf(p->ends[0].msec))
        return false;
    end_next(p);
    return true;
}

double queue_player_start_time(struct queue_player *player, const struct queue_times *times) {
    struct play *p = &player->play;
    size_t n_later = 0;

    if (player->wanted == SIZE_MAX)
        return -1;
    play_again(player, times);
    do {
        play_on(p);
        if (p->started[player->wanted])
            return p->now;
    } while (step(p, &n_later));
    return -1;
}

void queue_player_start_times(struct queue_player *player, const struct queue_times *times, double *began) {
    struct play *p = &player->play;
    size_t n_later = 0;

    for (size_t i = 0; i < p->q->n_claims; i++)
        began[i] = -1;
    play_again(player, times);
    p->began = began;
    do
        play_on(p);
    while (step(p, &n_later));
    p->began = NULL;
}

double queue_start_time(const struct queue *q, const struct queue_change *change, const char *claim,
                        const struct queue_times *times) {
    _cleanup_(queue_player_freep) struct queue_player *player = queue_player_new(q, change, claim);

    return player ? queue_player_start_time(player, times) : -1;
}
