/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs, made from their events. */

#include "base/journal/entries.h"

struct past { /* one run; texts are borrowed from entries */
    const char *run, *name, *host, *pools, *result;
    const char *due, *trigger, *first_run; /* NULL: of no schedule; of no job; it is a first attempt */
    const char *boot;                      /* of its last entry that its own host wrote; NULL: not logged */
    usec_t first, queued, granted, started, ended; /* realtime; 0: not logged */
    struct {             /* the last grant, without one that was given back before the start */
        usec_t from, to; /* realtime; 0: not logged */
        int64_t wait_ms; /* from the queue to the grant; -1: not logged */
    } hold;
    int64_t wait_ms, run_ms, exit_code, signal; /* -1: not logged */
    uint64_t token;
    int64_t attempt; /* 0: not logged */
};

/* Stores the runs by their first entries. The entries must outlive the runs. -ENOMEM. */
int pasts_make(const struct entries *e, struct past **ret, size_t *ret_n);

/* Returns whether no entry ends the run. */
bool past_is_open(const struct past *p);
/* The time at which the run was over; 0: it is open. */
usec_t past_end_time(const struct past *p);
/* Whether an open run has its permits or is started. */
bool past_is_running(const struct past *p);
/* Milliseconds in the queue until the grant; -1: not granted, or not known. */
int64_t past_waited_ms(const struct past *p);
/* Milliseconds from the grant to the release; of a run that ended without a grant, those that it ran. -1:
 * none, or not known. */
int64_t past_held_ms(const struct past *p);
/* Whether the run needs permits of the pool or of a key of it. */
bool past_uses(const struct past *p, const char *pool);
