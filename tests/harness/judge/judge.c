/* SPDX-License-Identifier: MIT */
#include "tests/harness/durations.h"
#include "tests/harness/judge/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define TOLERANCE (200 * USEC_PER_MSEC)
#define LATE USEC_PER_SEC /* bound of a claim or start on a busy machine, as seen from outside */

static unsigned limit_at(const struct judge *j, const char *pool, usec_t at) {
    unsigned limit = 0;
    usec_t newest = 0;

    for (size_t i = 0; i < j->n_limits; i++)
        if (j->limits[i].at <= at && j->limits[i].at >= newest && strcmp(j->limits[i].pool, pool) == 0) {
            limit = j->limits[i].limit;
            newest = j->limits[i].at;
        }
    return limit;
}

/* Returns the highest limit under which a run that starts at this time may have been granted. */
static unsigned limit_around(const struct judge *j, const char *pool, usec_t at) {
    unsigned limit = limit_at(j, pool, usec_sub(at, j->slack));

    for (size_t i = 0; i < j->n_limits; i++)
        if (strcmp(j->limits[i].pool, pool) == 0 && j->limits[i].at <= at && j->limits[i].at > usec_sub(at, j->slack) &&
            j->limits[i].limit > limit)
            limit = j->limits[i].limit;
    return limit;
}

/* Counts certain use: by runs that lived for sure. */
static unsigned used_for_sure(const struct judge *j, const char *pool, usec_t at) {
    unsigned used = 0;

    for (size_t i = 0; i < j->w->n && j->w->runs[i].start <= at; i++)
        if (j->w->runs[i].alive > at)
            used += demands_get(&j->w->runs[i].pools, pool);
    return used;
}

/* Counts possible use: a killed command may have lived until the witness saw it gone. */
static unsigned used_at_most(const struct judge *j, const char *pool, usec_t at) {
    unsigned used = 0;

    for (size_t i = 0; i < j->w->n && j->w->runs[i].start <= at; i++)
        if (j->w->runs[i].gone == 0 || j->w->runs[i].gone > at)
            used += demands_get(&j->w->runs[i].pools, pool);
    return used;
}

/* Returns how long use stays beyond the limit from here on. */
static usec_t overlap_from(const struct judge *j, const char *pool, unsigned limit, usec_t from) {
    usec_t until = USEC_INFINITY;

    for (size_t i = 0; i < j->w->n; i++) {
        usec_t end = j->w->runs[i].alive;

        if (end > from && end < until && demands_get(&j->w->runs[i].pools, pool) > 0 && used_for_sure(j, pool, end) <= limit)
            until = end;
    }
    return until == USEC_INFINITY ? 1 : until - from;
}

/* Names the other users of the pool at that time. */
static void name_others(const struct judge *j, const struct witness_run *of, const char *pool, char *text, size_t size) {
    size_t length = strlen(text);

    for (size_t i = 0; i < j->w->n && j->w->runs[i].start <= of->start && length < size; i++) {
        const struct witness_run *r = &j->w->runs[i];

        if (r != of && r->alive > of->start && demands_get(&r->pools, pool) > 0)
            length += (size_t) snprintf(text + length, size - length, "; %.40s on %.20s from %" PRIu64 " to %" PRIu64 "%s", r->id, r->host,
                                        r->start, r->alive, r->end ? "" : " (killed)");
    }
}

static bool is_excused(const struct judge *j, const struct witness_run *r) {
    for (size_t i = 0; i < j->n_excuses; i++)
        if (r->start >= j->excuses[i].from && r->token > 0 && r->token <= j->excuses[i].token)
            return true;
    return false;
}

/* Use grows only at starts, so only starts are checked against the limit in force. */
static void judge_overlap(const struct judge *j, struct judgement *ret) {
    for (size_t i = 0; i < j->w->n; i++) {
        const struct witness_run *r = &j->w->runs[i];

        for (size_t p = 0; p < r->pools.n; p++) {
            const char *pool = r->pools.items[p].pool;
            unsigned limit = limit_around(j, pool, r->start), used = used_for_sure(j, pool, r->start);
            unsigned seen = demands_get(&r->seen, pool);
            usec_t length;

            if (used <= limit && seen <= limit)
                continue;
            if (is_excused(j, r)) {
                ret->n_excused++;
                continue;
            }
            length = used > limit ? overlap_from(j, pool, limit, r->start) : 1;
            if (r->start + length > ret->overlap_until)
                ret->overlap_until = r->start + length;
            if (ret->n_overlaps == 0)
                ret->overlap_from = r->start;
            if (ret->n_overlaps++ == 0) {
                snprintf(ret->overlap, sizeof(ret->overlap),
                         "%s on %s starts at %" PRIu64 ": %s has %u in use by records, %u by locks, limit %u, for %" PRIu64 " us", r->id,
                         r->host, r->start, pool, used, seen, limit, length);
                name_others(j, r, pool, ret->overlap, sizeof(ret->overlap));
            }
            if (length > ret->worst_overlap)
                ret->worst_overlap = length;
        }
    }
}

static void judge_doubled(const struct judge *j, struct judgement *ret) {
    for (size_t i = 0; i < j->w->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(j->w->runs[i].id, j->w->runs[k].id) == 0) {
                ret->n_doubled++;
                break;
            }
}

static bool fits(const struct judge *j, const struct demands *d, usec_t at) {
    for (size_t i = 0; i < d->n; i++)
        if (used_at_most(j, d->items[i].pool, at) + d->items[i].permits > limit_at(j, d->items[i].pool, at))
            return false;
    return true;
}

/* A claim that needs more than a limit is parked until the limit rises (R2). */
static bool stands_aside(const struct judge *j, const struct demands *d, usec_t at) {
    for (size_t i = 0; i < d->n; i++)
        if (d->items[i].permits > limit_at(j, d->items[i].pool, at))
            return true;
    return false;
}

static bool waits_at(const struct judge_wait *w, usec_t at) {
    return w->from <= at && w->until > at;
}

static bool share_a_pool(const struct demands *a, const struct demands *b) {
    for (size_t i = 0; i < a->n; i++)
        if (demands_get(b, a->items[i].pool) > 0)
            return true;
    return false;
}

static usec_t asked(const struct judge_wait *w) {
    return usec_sub(w->from, w->head_start);
}

static uint64_t place(const struct judge_wait *w) {
    return usec_sub(w->ticket, w->head_start);
}

static bool has_ticket(const struct judge_wait *w, usec_t at) {
    return w->ticket > 0 && w->ticketed <= at;
}

/* Orders two waits by tickets. Without tickets the request times decide, which are known only to within the
 * duration of a call. */
static bool may_be_ahead(const struct judge_wait *a, const struct judge_wait *b, usec_t at) {
    if (has_ticket(a, at) && has_ticket(b, at))
        return place(a) < place(b);
    return asked(a) < asked(b) + TOLERANCE;
}

/* Returns whether a wait is held up: not all its permits are free, or a wait ahead of it in one of its
 * queues is held up (R2). seen: waits already visited, which are not held up or just being visited. */
static bool is_held_up(const struct judge *j, const struct judge_wait *w, usec_t at, bool *seen) {
    seen[w - j->waits] = true;
    if (!fits(j, &w->pools, at))
        return true;
    for (size_t i = 0; i < j->n_waits; i++) {
        const struct judge_wait *other = &j->waits[i];

        if (!seen[i] && waits_at(other, at) && may_be_ahead(other, w, at) && share_a_pool(&other->pools, &w->pools) &&
            !stands_aside(j, &other->pools, at) && is_held_up(j, other, at, seen))
            return true;
    }
    return false;
}

/* Returns whether a wait should have ended: all its permits are free, and no wait ahead of it holds it up
 * (R2). An excused wait with all its permits holds up nobody, because its host was broken. */
static bool is_due(const struct judge *j, const struct judge_wait *w, usec_t at) {
    _cleanup_free_ bool *seen = calloc(j->n_waits, sizeof(*seen));

    if (!seen)
        abort();
    return waits_at(w, at) && !is_held_up(j, w, at, seen);
}

/* Lists all times of changes. */
static usec_t *list_times(const struct judge *j, size_t *ret_n) {
    usec_t *times = calloc(2 * j->w->n + 3 * j->n_waits + j->n_limits + 1, sizeof(*times));
    size_t n = 0;

    if (!times)
        abort();
    for (size_t i = 0; i < j->w->n; i++) {
        times[n++] = j->w->runs[i].start;
        times[n++] = j->w->runs[i].gone;
    }
    for (size_t i = 0; i < j->n_waits; i++) {
        times[n++] = j->waits[i].from;
        times[n++] = j->waits[i].until;
        times[n++] = j->waits[i].ticketed;
    }
    for (size_t i = 0; i < j->n_limits; i++)
        times[n++] = j->limits[i].at;
    durations_sort(times, n);
    *ret_n = n;
    return times;
}

static void judge_idle_of(const struct judge *j, const struct judge_wait *w, const usec_t *times, size_t n, struct judgement *ret) {
    usec_t from = 0;

    for (size_t i = 0; i + 1 < n && times[i] < w->until; i++) {
        if (!is_due(j, w, times[i])) {
            from = 0;
            continue;
        }
        if (from == 0)
            from = times[i];
        if (times[i + 1] - from > ret->longest_idle) {
            ret->longest_idle = times[i + 1] - from;
            ret->idle_from = from;
            snprintf(ret->idle, sizeof(ret->idle), "%s", w->id);
        }
    }
}

static void judge_idle(const struct judge *j, struct judgement *ret) {
    size_t n = 0;
    _cleanup_free_ usec_t *times = list_times(j, &n);

    for (size_t i = 0; i < j->n_waits; i++)
        if (!j->waits[i].excused)
            judge_idle_of(j, &j->waits[i], times, n, ret);
}

/* The claim may have been parked at some time (R2). */
static bool stood_aside(const struct judge *j, const struct judge_wait *w) {
    if (stands_aside(j, &w->pools, w->from))
        return true;
    for (size_t i = 0; i < j->n_limits; i++)
        if (j->limits[i].at >= w->from && j->limits[i].at <= w->until && j->limits[i].limit < demands_get(&w->pools, j->limits[i].pool))
            return true;
    return false;
}

/* Tickets and tokens are numbers of one clock (R7): a claim whose ticket precedes another's token stood in the queue then. */
static bool is_overtaken_by_numbers(const struct judge_wait *w, const struct judge_wait *by) {
    return w->ticket > 0 && by->ticket > 0 && w->token > 0 && by->token > 0 && place(w) < place(by) && by->token < w->token &&
           w->ticket < by->token;
}

/* By times alone: requested long before the other, and started long after it. */
static bool is_overtaken_outside(const struct judge_wait *w, const struct judge_wait *by) {
    return by->token > 0 && asked(w) + LATE < asked(by) && w->from + LATE < by->until && by->until + LATE < w->until;
}

static void judge_order_of(const struct judge *j, const struct judge_wait *w, struct judgement *ret) {
    if (w->excused || w->displaced || stood_aside(j, w))
        return;
    for (size_t i = 0; i < j->n_waits; i++) {
        const struct judge_wait *by = &j->waits[i];

        if (by == w || by->excused || !share_a_pool(&w->pools, &by->pools) ||
            !(is_overtaken_by_numbers(w, by) || is_overtaken_outside(w, by)))
            continue;
        if (ret->n_overtaken++ == 0)
            snprintf(ret->overtaken, sizeof(ret->overtaken),
                     "%.40s (ticket %" PRIu64 ", token %" PRIu64 ") was overtaken by %.40s (%" PRIu64 ", %" PRIu64 ")", w->id, w->ticket,
                     w->token, by->id, by->ticket, by->token);
        return;
    }
}

static void judge_order(const struct judge *j, struct judgement *ret) {
    for (size_t i = 0; i < j->n_waits; i++)
        judge_order_of(j, &j->waits[i], ret);
}

void judge(const struct judge *j, struct judgement *ret) {
    *ret = (struct judgement) {0};
    judge_overlap(j, ret);
    judge_doubled(j, ret);
    judge_idle(j, ret);
    judge_order(j, ret);
    for (size_t i = 0; i < j->n_waits; i++)
        ret->n_served += witness_count(j->w, j->waits[i].id) > 0;
}
