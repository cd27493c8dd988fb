/* SPDX-License-Identifier: MIT */
#pragma once

/* Counts for `berth metrics` since berthd started, besides those of events (base/journal/event.h). Plain
 * data that the manager feeds; it reads no clock and cannot fail. */

#include "base/histogram.h"
#include "daemon/runs/run.h"

#define TALLY_JOBS_MAX 256 /* more are counted together */
#define TALLY_POOLS_MAX 64 /* more are not counted */

enum tally_refusal {
    TALLY_REFUSAL_BUSY,
    TALLY_REFUSAL_QUEUE_FULL,
    TALLY_REFUSAL_NO_MEMORY,
    TALLY_REFUSAL_DRAINED,
    TALLY_REFUSAL_OTHER,
    TALLY_REFUSALS
};

struct tally_job {
    char name[NAME_MAX_LENGTH + 1];
    uint64_t finished[RUN_RESULTS];
};

struct tally_pool {
    char name[POOL_NAME_SIZE];   /* plain, or a pattern, which stands for its keys */
    struct histogram wait, hold; /* of tally_bounds */
};

struct tally {
    usec_t started_realtime, loaded_realtime; /* loaded: when the config in force was read */
    bool is_refused;                          /* the latest reload was refused */
    uint64_t refused[TALLY_REFUSALS];
    struct tally_job adhoc, others; /* of `berth run`, named ""; of jobs beyond the bound, "_other" */
    struct tally_job jobs[TALLY_JOBS_MAX];
    size_t n_jobs;
    struct tally_pool pools[TALLY_POOLS_MAX];
    size_t n_pools;
};

extern const struct histogram_bounds tally_bounds;

void tally_start(struct tally *t, usec_t realtime);
/* The config was read again. is_refused: it has errors. */
void tally_reload(struct tally *t, bool is_refused, usec_t realtime);
/* The run is over, with run->end.result. */
void tally_finish(struct tally *t, const struct run *run);
/* The run was granted its permits, or returned them, after that time. */
void tally_wait(struct tally *t, const struct run *run, usec_t usec);
void tally_hold(struct tally *t, const struct run *run, usec_t usec);
/* A run got no permits and was not queued. The names are those of the reasons in the journal. */
void tally_refuse(struct tally *t, enum tally_refusal refusal);
enum tally_refusal tally_refusal_parse(const char *reason); /* OTHER: any other text */
const char *tally_refusal_name(enum tally_refusal refusal);
