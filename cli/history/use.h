/* SPDX-License-Identifier: MIT */
#pragma once

/* The use of each pool in a span of time: permits held, and the limit in force. use-show.c prints it. Times
 * are those of the journals. */

#include "base/journal/entries.h"
#include "cli/history/hosts.h"
#include "cli/history/past.h"
#include "cli/history/stats.h"

struct use_cell {
    double held, allowed; /* permits times µs; allowed: while the limit was known and above 0 */
};

struct use_pool {
    const char *name, *host; /* borrowed from entries; host: of a pool of scope host; else NULL */
    size_t name_length;
    bool has_limit; /* some limit was in force and is known */
    uint32_t limit_min, limit_max;
    struct use_cell all, *cells;
    usec_t full, shut;        /* time in which a run waited; in which the limit was 0 */
    uint32_t peak;            /* permits held at once */
    struct figures wait;      /* of runs that waited and were granted in that time */
};

struct uses {
    usec_t since, until;
    size_t n_cells;
    struct use_pool *pools; /* by name and host, without the pools of jobs */
    size_t n;
};

/* Returns whether the pool has this name. */
bool use_pool_is(const struct use_pool *p, const char *name);
/* since: the earlier. n_cells: at least one. -ENOMEM. */
int uses_make(struct uses *ret, const struct entries *e, const struct past *pasts, size_t n,
              const struct history_hosts *hosts, usec_t since, usec_t until, size_t n_cells);
void uses_done(struct uses *u);
