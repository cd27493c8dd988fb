/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads the records of tests/tools/witness, without knowing anything of berth: how much of each pool was in
 * use at once, and what started when. */

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/demand.h"

struct witness_run {
    char id[64], name[NAME_MAX_LENGTH + 1], host[NAME_MAX_LENGTH + 1];
    int pid;
    usec_t start, end; /* boottime; end 0: it wrote none (yet, or it was killed) */
    int signal;        /* that ended it; 0: none */
    unsigned n_ignored;
    usec_t ignored; /* boottime of the last signal that it ignored */
    uint64_t token;
    struct demands pools;
    usec_t alive, gone; /* last time known alive, first time known gone (witness_watch_apply()); gone 0: alive */
    struct demands seen; /* use at its start by all held locks, itself included */
};

struct witness {
    struct witness_run *runs; /* in order of their starts */
    size_t n;
};

/* Makes an empty folder for the commands. */
void witness_prepare(const char *folder);
/* Reads all records so far; a line that makes no sense is a failed assertion. */
void witness_read(struct witness *w, const char *folder);
void witness_done(struct witness *w);

/* Most permits of the pool in use at any instant: by starts and ends (of runs that wrote both), and by kernel locks. */
unsigned witness_max(const struct witness *w, const char *pool);
/* Return the number of runs with this id; the newest one, or NULL. */
size_t witness_count(const struct witness *w, const char *id);
const struct witness_run *witness_find(const struct witness *w, const char *id);
/* Returns whether a process of this run is alive, by its lock. */
bool witness_is_alive(const char *folder, const struct witness_run *run);
/* Returns how many locks are held. */
size_t witness_count_alive(const char *folder);

/* Watches the locks while commands run, so that the end of one that could not write it (SIGKILL) is known, too: called
 * every few milliseconds, it notes which locks are held, and removes those that are free. */
struct witness_watch {
    struct witness_lock {
        int pid;
        usec_t first, last, gone; /* seen held; seen free (0: not yet) */
    } *locks;
    size_t n;
};
void witness_watch_turn(struct witness_watch *watch, const char *folder);
/* Fills in `alive` and `gone` of all runs, from their own records and from what was watched. */
void witness_watch_apply(const struct witness_watch *watch, struct witness *w);
void witness_watch_done(struct witness_watch *watch);

/* Awaits that there are so many, all with their records, or that a run with this id has started; fatal after 20 s. */
void witness_await_alive(const char *folder, size_t n);
void witness_await_start(const char *folder, const char *id);
