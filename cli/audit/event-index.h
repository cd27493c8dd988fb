/* SPDX-License-Identifier: MIT */
#pragma once

/* Events of one kind, of one owner (a host, or the process of a berthd) after the other, each owner's as they stand in the record. */

#include "cli/audit/index.h"
#include "base/journal/entries.h"

struct audit;

struct event_index {
    const struct entry *const **items; /* where they stand in the audit's events */
    size_t *others;                    /* of each: the place of the next one that another process wrote */
    size_t n;
    size_t owner;                      /* the offset of the owner's name in an entry */
    struct maxima keys;
};

/* Those for which is_in() is true. key: what event_index_next() asks for. -ENOMEM. */
int event_index_make(struct event_index *t, const struct audit *a, bool by_process, bool (*is_in)(const struct entry *),
                     uint64_t (*key)(const struct audit *, const struct entry *));
/* The place of the owner's first. */
size_t event_index_begin(const struct event_index *t, const char *owner);
/* The owner's first from *at on whose key is not below `least`, and its place; NULL: there is none. */
const struct entry *event_index_next(const struct event_index *t, const char *owner, size_t *at, uint64_t least);
/* The same from the owner's first on. */
const struct entry *event_index_first(const struct event_index *t, const char *owner, uint64_t least);
void event_index_done(struct event_index *t);

/* Keys. */
uint64_t event_key_time(const struct audit *a, const struct entry *e);   /* by its host's clock */
uint64_t event_key_latest(const struct audit *a, const struct entry *e); /* the latest that it can have been by Redis's */
uint64_t event_key_clock(const struct audit *a, const struct entry *e);
uint64_t event_key_seq(const struct audit *a, const struct entry *e);
