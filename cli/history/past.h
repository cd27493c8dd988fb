/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs, made from their events. */

#include "base/journal/entries.h"

struct past { /* one run; texts are borrowed from entries */
    const char *run, *name, *host, *pools, *result;
    const char *due, *trigger, *first_run; /* NULL: no schedule; no job; a first attempt */
    const char *boot;                      /* of the last entry by its own host; NULL: not logged */
    usec_t first, queued, granted, started, ended; /* realtime; 0: not logged */
    struct {             /* the last grant that was not given back before the start */
        usec_t from, to; /* realtime; 0: not logged */
        int64_t wait_ms; /* from the queue to the grant; -1: not logged */
    } hold;
    int64_t wait_ms, run_ms, exit_code, signal; /* -1: not logged */
    uint64_t token;
    int64_t attempt; /* 0: not logged */
};

/* Stores the runs in the order of their first entries. The entries must outlive the runs. -ENOMEM. */
int pasts_make(const struct entries *e, struct past **ret, size_t *ret_n);

/* Returns whether no entry ends the run. */
bool past_is_open(const struct past *p);
/* Returns the time at which the run was over; 0: it is open. */
usec_t past_end_time(const struct past *p);
/* Returns whether the run is open and has its permits or is started. */
bool past_is_running(const struct past *p);
/* Returns the milliseconds from queue to grant; -1: not granted, or not known. */
int64_t past_waited_ms(const struct past *p);
/* Returns the milliseconds from grant to release, or the run time of a run that ended without a grant. -1:
 * none, or not known. */
int64_t past_held_ms(const struct past *p);
/* Returns whether the run needs permits of the pool or of a key of the pattern. */
bool past_uses(const struct past *p, const char *pool);
