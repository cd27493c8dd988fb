/* SPDX-License-Identifier: MIT */

#include "daemon/counters.h"

#include <string.h>

const struct histogram_bounds counters_bounds = {
    .n = 12,
    .upper = {10 * USEC_PER_MSEC, 100 * USEC_PER_MSEC, 500 * USEC_PER_MSEC, 1 * USEC_PER_SEC,
              5 * USEC_PER_SEC, 15 * USEC_PER_SEC, 60 * USEC_PER_SEC, 300 * USEC_PER_SEC, 900 * USEC_PER_SEC,
              3600 * USEC_PER_SEC, 14400 * USEC_PER_SEC, 86400 * USEC_PER_SEC},
};

static const char *const refusals[COUNTERS_REFUSALS] = {
    [COUNTERS_REFUSAL_BUSY] = "busy",           [COUNTERS_REFUSAL_QUEUE_FULL] = "queue-full",
    [COUNTERS_REFUSAL_NO_MEMORY] = "no-memory", [COUNTERS_REFUSAL_DRAINED] = "drained",
    [COUNTERS_REFUSAL_OTHER] = "other",
};

void counters_start(struct counters *c, usec_t realtime) {
    c->started_realtime = c->loaded_realtime = realtime;
    strcpy(c->others.name, "_other");
}

void counters_reload(struct counters *c, bool is_refused, usec_t realtime) {
    c->is_refused = is_refused;
    if (!is_refused)
        c->loaded_realtime = realtime;
}

/* --- runs --- */

static struct counters_job *find_job(struct counters *c, const char *name) {
    struct counters_job *job;

    for (size_t i = 0; i < c->n_jobs; i++)
        if (strcmp(c->jobs[i].name, name) == 0)
            return &c->jobs[i];
    if (c->n_jobs == COUNTERS_JOBS_MAX)
        return &c->others;
    job = &c->jobs[c->n_jobs++];
    (void) snprintf(job->name, sizeof(job->name), "%s", name);
    return job;
}

/* Each count that is not 0 becomes a series, and counters never return to 0. */
void counters_finish(struct counters *c, const struct run *run) {
    bool is_adhoc = run->kind == RUN_KIND_ADHOC;
    struct counters_job *job = is_adhoc ? &c->adhoc : find_job(c, run->name);

    if (!is_adhoc && job != &c->others && job->finished[run->end.result] == 0) {
        if (c->n_results == COUNTERS_RESULTS_MAX)
            job = &c->others;
        else
            c->n_results++;
    }
    job->finished[run->end.result]++;
}

/* --- pools --- */

/* Returns NULL for the pool of a job, and for pools beyond COUNTERS_POOLS_MAX. */
static struct counters_pool *find_pool(struct counters *c, const char *pool) {
    char pattern[POOL_NAME_SIZE];
    const char *name = pool_name_pattern(pool, pattern);
    struct counters_pool *found;

    if (!name)
        name = pool;
    if (pool_name_parse(name) == POOL_NAME_JOB)
        return NULL;
    for (size_t i = 0; i < c->n_pools; i++)
        if (strcmp(c->pools[i].name, name) == 0)
            return &c->pools[i];
    if (c->n_pools == COUNTERS_POOLS_MAX)
        return NULL;
    found = &c->pools[c->n_pools++];
    (void) snprintf(found->name, sizeof(found->name), "%s", name);
    return found;
}

void counters_wait(struct counters *c, const struct run *run, usec_t usec) {
    for (size_t i = 0; i < run->n_demands; i++) {
        struct counters_pool *pool = find_pool(c, run->demands[i].pool);

        if (pool)
            histogram_add(&pool->wait, &counters_bounds, usec);
    }
}

void counters_hold(struct counters *c, const struct run *run, usec_t usec) {
    for (size_t i = 0; i < run->n_demands; i++) {
        struct counters_pool *pool = find_pool(c, run->demands[i].pool);

        if (pool)
            histogram_add(&pool->hold, &counters_bounds, usec);
    }
}

/* --- refusals --- */

void counters_refuse(struct counters *c, enum counters_refusal refusal) {
    c->refused[refusal]++;
}

enum counters_refusal counters_refusal_parse(const char *reason) {
    for (size_t i = 0; i < COUNTERS_REFUSAL_OTHER; i++) {
        size_t size = strlen(refusals[i]);

        if (strncmp(reason, refusals[i], size) == 0 && (reason[size] == '\0' || reason[size] == ':'))
            return (enum counters_refusal) i;
    }
    return COUNTERS_REFUSAL_OTHER;
}

const char *counters_refusal_name(enum counters_refusal refusal) {
    return refusals[refusal];
}
