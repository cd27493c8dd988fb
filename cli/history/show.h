/* SPDX-License-Identifier: MIT */
#pragma once

/* What `berth history` prints: on standard output, as a table or one JSON document. All return an exit
 * status. */

#include "cli/history/hosts.h"
#include "cli/history/past.h"
#include "cli/history/stats.h"
#include "cli/history/use.h"
#include "cli/output.h"

struct shown { /* what the options ask for */
    bool json, utc;
    bool merged; /* -m */
};

/* list.c: a line for each run */
int history_show_runs(const struct past *pasts, size_t n, const struct shown *shown);
/* stats-show.c: a line for each job, pool or host */
int history_show_stats(const struct stats *stats, const struct history_hosts *hosts,
                       const struct shown *shown);

/* use-show.c: a line for each pool */
int history_show_use(const struct uses *uses, const struct history_hosts *hosts, const struct shown *shown);

#define FIGURES_ENOUGH_FOR_P95 20   /* durations, below which the 95th percentile is not shown */
#define FIGURES_ENOUGH_TO_TRUST 100 /* below which it has a mark */

/* stats-show.c: which hosts the figures are of, and which have no journal here */
void history_print_hosts(const struct history_hosts *hosts, bool merged);
json_t *history_json_hosts(const struct history_hosts *hosts, bool wrote);
/* A time as JSON; 0: null. */
json_t *history_json_when(usec_t time);
/* null if it is negative */
json_t *history_json_number(int64_t value);
