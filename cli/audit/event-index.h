/* SPDX-License-Identifier: MIT */
#pragma once

/* Events of one kind, grouped by owner (a host, or the process of a berthd), each group in log order. */

#include "cli/audit/index.h"
#include "base/journal/entries.h"

struct audit;

struct event_index {
    const struct entry *const **items; /* pointers into the audit's events */
    size_t *others;                    /* index of the next item that another process wrote */
    size_t n;
    size_t owner;                      /* the offset of the owner's name in an entry */
    struct maxima keys;
};

/* Indexes the events for which is_in() is true. key: returns the value that event_index_next() searches.
 * -ENOMEM. */
int event_index_make(struct event_index *t, const struct audit *a, bool by_process, bool (*is_in)(const struct entry *),
                     uint64_t (*key)(const struct audit *, const struct entry *));
/* Returns the index of the owner's first item. */
size_t event_index_begin(const struct event_index *t, const char *owner);
/* Returns the owner's first item from *at on whose key is at least `least`, and its index; NULL: none. */
const struct entry *event_index_next(const struct event_index *t, const char *owner, size_t *at, uint64_t least);
/* As event_index_next(), from the owner's first item on. */
const struct entry *event_index_first(const struct event_index *t, const char *owner, uint64_t least);
void event_index_done(struct event_index *t);

/* Keys. */
uint64_t event_key_time(const struct audit *a, const struct entry *e);   /* by its host's clock */
uint64_t event_key_clock(const struct audit *a, const struct entry *e);
uint64_t event_key_seq(const struct audit *a, const struct entry *e);
