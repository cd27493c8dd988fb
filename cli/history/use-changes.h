/* SPDX-License-Identifier: MIT */
#pragma once

/* What changed in the pools: limits, and the permits that runs hold or wait for. From entries and runs. */

#include "base/journal/entries.h"
#include "cli/history/hosts.h"
#include "cli/history/past.h"

enum change_kind {
    CHANGE_DECLARED,
    CHANGE_OVERRIDE,
    CHANGE_CONNECTED, /* a host connected: an override that it does not log after this has ended, also one of a key */
    CHANGE_HELD,
    CHANGE_WAITING,
    CHANGE_WAITED,
};

struct change { /* of a pool at a time */
    const char *name, *host; /* borrowed from entries; host: of a pool of scope host; else NULL */
    size_t name_length;
    usec_t time;
    size_t order; /* of two at one time */
    enum change_kind kind;
    int64_t value; /* the limit (-1: the override has ended); the difference in permits or runs; ms waited */
};

struct changes {
    struct change *items;
    size_t n;
    int error; /* 0 or -ENOMEM */
};

/* Stores all changes by pool and time, those of a pattern before those of its keys. Runs hold until `until` if they are
 * open. -ENOMEM. */
int changes_make(struct changes *ret, const struct entries *e, const struct past *pasts, size_t n,
                 const struct history_hosts *hosts, usec_t until);
/* Appends a change and sets its `order`. Without memory it sets `error`. */
void changes_add(struct changes *c, const struct change *change);
/* Returns how many changes are of earlier pools, or with `its_own` also of this one. The list is sorted by pool. */
size_t changes_count(const struct changes *c, const struct change *pool, bool its_own);
void changes_done(struct changes *c);
