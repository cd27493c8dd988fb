/* SPDX-License-Identifier: MIT */
#pragma once

/* Counts for `berth metrics` since berthd started, besides those of events (base/journal/event.h). Plain
 * data that the manager feeds; it reads no clock and cannot fail. */

#include "base/histogram.h"
#include "daemon/runs/run.h"

#define COUNTERS_JOBS_MAX 256 /* more are counted together */
#define COUNTERS_RESULTS_MAX 2048 /* results of jobs, of each job by its kind; more are counted together */
#define COUNTERS_POOLS_MAX 64 /* more are not counted */

enum counters_refusal {
    COUNTERS_REFUSAL_BUSY,
    COUNTERS_REFUSAL_QUEUE_FULL,
    COUNTERS_REFUSAL_NO_MEMORY,
    COUNTERS_REFUSAL_DRAINED,
    COUNTERS_REFUSAL_OTHER,
    COUNTERS_REFUSALS
};

struct counters_job {
    char name[NAME_MAX_LENGTH + 1];
    uint64_t finished[RUN_RESULTS];
};

struct counters_pool {
    char name[POOL_NAME_SIZE];   /* plain, or a pattern, which stands for its keys */
    struct histogram wait, hold; /* of counters_bounds */
};

struct counters {
    usec_t started_realtime, loaded_realtime; /* loaded: when the config in force was read */
    bool is_refused;                          /* the latest reload was refused */
    uint64_t refused[COUNTERS_REFUSALS];
    struct counters_job adhoc, others; /* of `berth run`, named ""; of jobs beyond the bound, "_other" */
    struct counters_job jobs[COUNTERS_JOBS_MAX];
    size_t n_jobs;
    size_t n_results; /* those of `jobs` that are not 0 */
    struct counters_pool pools[COUNTERS_POOLS_MAX];
    size_t n_pools;
};

extern const struct histogram_bounds counters_bounds;

void counters_start(struct counters *c, usec_t realtime);
/* Counts a reload. is_refused: the config has errors. */
void counters_reload(struct counters *c, bool is_refused, usec_t realtime);
/* Counts a run that is over, with run->end.result. */
void counters_finish(struct counters *c, const struct run *run);
/* Count a run that was granted its permits, or returned them, after that time. */
void counters_wait(struct counters *c, const struct run *run, usec_t usec);
void counters_hold(struct counters *c, const struct run *run, usec_t usec);
/* Counts a run that got no permits and was not queued. The names are those of the reasons in the journal. */
void counters_refuse(struct counters *c, enum counters_refusal refusal);
enum counters_refusal counters_refusal_parse(const char *reason); /* OTHER: any other text */
const char *counters_refusal_name(enum counters_refusal refusal);
