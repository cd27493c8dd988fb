/* SPDX-License-Identifier: MIT */
#pragma once

/* What lets the audit of n events look at a few of them for each: a search in sorted numbers, and two trees in arrays. Nothing here knows
 * of events. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

/* How many of n ascending numbers are below this one; `first` is the first, each other one `stride` bytes after the one before. */
size_t index_count_below(const uint64_t *first, size_t stride, size_t n, uint64_t number);

/* Numbers, 0 at first, of which the next one from a place on is found that is not below another. */
struct maxima {
    uint64_t *nodes; /* [1] is the greatest of all; below [i] are [2 * i] and [2 * i + 1]; the numbers are the last `size` */
    size_t size;
};
int maxima_make(struct maxima *m, size_t n); /* -ENOMEM */
void maxima_set(struct maxima *m, size_t i, uint64_t number);
size_t maxima_next(const struct maxima *m, size_t from, uint64_t least); /* if none of n is, not below n */
void maxima_done(struct maxima *m);

/* Places that are taken or not; how many before one are is found. */
struct places {
    size_t *sums; /* [i]: of as many up to i as the lowest bit of i says, counted from 1 */
    size_t n;
};
int places_make(struct places *p, size_t n); /* -ENOMEM */
void places_take(struct places *p, size_t i);
void places_leave(struct places *p, size_t i); /* which was taken */
size_t places_before(const struct places *p, size_t i);
void places_done(struct places *p);
