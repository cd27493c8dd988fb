/* SPDX-License-Identifier: MIT */
#pragma once

/* Searches that keep the audit of n events below n² steps: in sorted numbers, and in two trees in arrays.
 * They know nothing of events. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns how many of n ascending numbers are below this one. The numbers are `stride` bytes apart. */
size_t index_count_below(const uint64_t *first, size_t stride, size_t n, uint64_t number);

/* Numbers, initially 0, with a search for the next one that is at least a given value. */
struct maxima {
    uint64_t *nodes; /* [1] is the maximum; the children of [i] are [2 * i] and [2 * i + 1]; the last `size` are the numbers */
    size_t size;
};
int maxima_make(struct maxima *m, size_t n); /* -ENOMEM */
void maxima_set(struct maxima *m, size_t i, uint64_t number);
size_t maxima_next(const struct maxima *m, size_t from, uint64_t least); /* returns an index of n or more if there is none */
void maxima_done(struct maxima *m);

/* A set of places that counts its members below a place. */
struct places {
    size_t *sums; /* a Fenwick tree, indexed from 1 */
    size_t n;
};
int places_make(struct places *p, size_t n); /* -ENOMEM */
void places_take(struct places *p, size_t i);
void places_leave(struct places *p, size_t i); /* must be in the set */
size_t places_before(const struct places *p, size_t i);
void places_done(struct places *p);
