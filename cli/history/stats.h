/* SPDX-License-Identifier: MIT */
#pragma once

/* Statistics of the runs that ended in a span of time. stats-show.c prints them. */

#include "cli/history/hosts.h"
#include "cli/history/past.h"

#define STATS_CELLS 16

enum stats_by { STATS_BY_JOB, STATS_BY_POOL, STATS_BY_HOST };

struct figures { /* of n durations in ms; all 0 if n is 0 */
    size_t n;
    int64_t p50, p90, p95, p99, max, sum;
};

struct stats_line {
    char *name;
    size_t runs, failed, lost;
    struct figures wait, held;
    size_t cells[STATS_CELLS]; /* runs that ended in each part of the time */
};

struct stats {
    enum stats_by by;
    usec_t since, until;      /* realtime */
    struct stats_line *lines; /* by name */
    size_t n;
    size_t waiting, running; /* runs that are not over; they count in no line */
    size_t unlogged;         /* runs that ended unlogged with a boot of their host */
};

/* Counts the runs that ended from `since` until `until`, which is later. By pool, a run counts in each of
 * its pools. -ENOMEM. */
int stats_make(const struct past *pasts, size_t n, const struct history_hosts *hosts, enum stats_by by,
               usec_t since, usec_t until, struct stats *ret);
void stats_done(struct stats *s);

/* Sorts the durations. Percentile p is the ceil(p*n/100)-th smallest. */
struct figures figures_make(int64_t *durations, size_t n);
/* Returns whether the end of the run is not logged, but a later boot of its host is. */
bool past_ended_with_boot(const struct past *p, const struct history_hosts *hosts);
