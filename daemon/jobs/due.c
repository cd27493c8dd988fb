/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/due.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_FIRST 3600 /* s */

/* An interval of seconds: after `after`, up to and including `until`. */
struct interval {
    int64_t after, until;
};

static bool next_in(const struct due_terms *terms, struct interval in, struct schedule_due *ret) {
    return in.after < in.until && schedule_next(terms->schedule, terms->zone, in.after, ret) &&
           ret->at <= in.until;
}

/* Keeps the last n items of a sequence. */
struct ring {
    struct schedule_due *items;
    size_t n, seen;
};

static void ring_add(struct ring *ring, const struct schedule_due *due) {
    ring->items[ring->seen++ % ring->n] = *due;
}

static void reverse(struct schedule_due *items, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        struct schedule_due item = items[i];

        items[i] = items[n - 1 - i];
        items[n - 1 - i] = item;
    }
}

/* Puts the oldest item first. Returns how many there are. */
static size_t ring_finish(struct ring *ring) {
    size_t oldest = ring->seen % ring->n;

    if (ring->seen <= ring->n)
        return ring->seen;
    reverse(ring->items, oldest);
    reverse(ring->items + oldest, ring->n - oldest);
    reverse(ring->items, ring->n);
    return ring->n;
}

/* Finds the newest n due times of the interval, oldest first, and returns how many there are. Looks back
 * from the end in windows that double, because ten years of minutes are five million due times. */
static size_t find_newest(const struct due_terms *terms, struct interval in, struct schedule_due *items,
                          size_t n) {
    int64_t length = in.until > in.after ? in.until - in.after : 0;

    for (int64_t window = WINDOW_FIRST;; window *= 2) {
        struct interval look = {.after = window < length ? in.until - window : in.after, .until = in.until};
        struct ring ring = {.items = items, .n = n};
        struct schedule_due due;

        for (; next_in(terms, look, &due); look.after = due.at)
            ring_add(&ring, &due);
        if (ring.seen >= n || window >= length)
            return ring_finish(&ring);
    }
}

/* Counts the due times of the interval. None of them is begun. */
static void count_missed(const struct due_terms *terms, struct interval in, struct due_missed *ret) {
    struct schedule_due due;

    for (; ret->count < DUE_COUNT_MAX && next_in(terms, in, &due); in.after = due.at) {
        if (ret->count++ == 0)
            ret->first = due.at;
        ret->last = due.at;
    }
    if (ret->count == DUE_COUNT_MAX && find_newest(terms, in, &due, 1) == 1)
        ret->last = due.at;
}

/* Returns the newest due second whose begin is not later than this; -1: none since 1970. */
static int64_t due_until(usec_t realtime, usec_t splay_usec) {
    return realtime < splay_usec ? -1 : (int64_t) ((realtime - splay_usec) / USEC_PER_SEC);
}

/* Returns the second after which due times are fresh. */
static int64_t fresh_after(const struct due_terms *terms, usec_t now) {
    usec_t age = terms->catch_up_usec > DUE_ALWAYS_FRESH ? terms->catch_up_usec : DUE_ALWAYS_FRESH;
    usec_t oldest = usec_sub(usec_sub(now, terms->splay_usec), age); /* is fresh itself */

    return oldest == 0 ? -1 : (int64_t) ((oldest - 1) / USEC_PER_SEC);
}

static int find_begun(const struct due_terms *terms, struct interval fresh, struct due_plan *plan) {
    struct schedule_due due;

    if (terms->backlog == 0 || !next_in(terms, fresh, &due))
        return 0;
    plan->begun = calloc(terms->backlog, sizeof(*plan->begun));
    if (!plan->begun)
        return -ENOMEM;
    plan->n_begun = find_newest(terms, fresh, plan->begun, terms->backlog);
    return 0;
}

static usec_t next_begin(const struct due_terms *terms, int64_t after) {
    struct schedule_due due;

    if (!schedule_next(terms->schedule, terms->zone, after, &due) || due.at < 0)
        return USEC_INFINITY;
    return usec_add((usec_t) due.at * USEC_PER_SEC, terms->splay_usec);
}

int due_plan(const struct due_terms *terms, int64_t mark, usec_t now, struct due_plan *ret) {
    int64_t now_seconds = (int64_t) (now / USEC_PER_SEC);
    struct due_plan plan = {.mark = mark};
    struct interval all, fresh, missed, surplus;
    int r;

    if (now_seconds < mark - DUE_CLOCK_SET) {
        plan.mark = now_seconds;
        plan.clock_was_set = true;
    }
    all = (struct interval){.after = plan.mark, .until = due_until(now, terms->splay_usec)};
    fresh = all;
    if (fresh_after(terms, now) > fresh.after)
        fresh.after = fresh_after(terms, now);
    r = find_begun(terms, fresh, &plan);
    if (r < 0)
        return r;
    missed =
        (struct interval){.after = all.after, .until = fresh.after < all.until ? fresh.after : all.until};
    count_missed(terms, missed, &plan.missed);
    surplus = (struct interval){.after = fresh.after, .until = plan.n_begun > 0 ? plan.begun[0].at - 1 : -1};
    count_missed(terms, surplus, &plan.surplus);
    if (plan.n_begun > 0)
        plan.mark = plan.begun[plan.n_begun - 1].at;
    else if (plan.missed.count > 0)
        plan.mark = plan.missed.last;
    plan.next = next_begin(terms, plan.mark > all.until ? plan.mark : all.until);
    *ret = plan;
    return 0;
}

void due_plan_done(struct due_plan *plan) {
    free(plan->begun);
    *plan = (struct due_plan){};
}
