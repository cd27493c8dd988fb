/* SPDX-License-Identifier: MIT */
#pragma once

/* Output of `berth history`, as a table or one JSON document. All return an exit status. */

#include "cli/history/hosts.h"
#include "cli/history/past.h"
#include "cli/history/stats.h"
#include "cli/history/use.h"
#include "cli/output.h"

struct shown { /* options */
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

#define FIGURES_ENOUGH_FOR_P95 20   /* durations; with fewer the 95th percentile is not shown */
#define FIGURES_ENOUGH_TO_TRUST 100 /* durations; with fewer it has a mark */

/* stats-show.c: prints the hosts of the figures, and the hosts without a journal here. */
void history_print_hosts(const struct history_hosts *hosts, bool merged);
json_t *history_json_hosts(const struct history_hosts *hosts, bool wrote);
/* Returns a time as JSON; 0: null. */
json_t *history_json_when(usec_t time);
/* Returns a number as JSON; negative: null. */
json_t *history_json_number(int64_t value);
