/* SPDX-License-Identifier: MIT */

#include "daemon/tally.h"

#include <string.h>

const struct histogram_bounds tally_bounds = {
    .n = 12,
    .upper = {10 * USEC_PER_MSEC, 100 * USEC_PER_MSEC, 500 * USEC_PER_MSEC, 1 * USEC_PER_SEC,
              5 * USEC_PER_SEC, 15 * USEC_PER_SEC, 60 * USEC_PER_SEC, 300 * USEC_PER_SEC, 900 * USEC_PER_SEC,
              3600 * USEC_PER_SEC, 14400 * USEC_PER_SEC, 86400 * USEC_PER_SEC},
};

static const char *const refusals[TALLY_REFUSALS] = {
    [TALLY_REFUSAL_BUSY] = "busy",           [TALLY_REFUSAL_QUEUE_FULL] = "queue-full",
    [TALLY_REFUSAL_NO_MEMORY] = "no-memory", [TALLY_REFUSAL_DRAINED] = "drained",
    [TALLY_REFUSAL_OTHER] = "other",
};

void tally_start(struct tally *t, usec_t realtime) {
    t->started_realtime = t->loaded_realtime = realtime;
    strcpy(t->others.name, "_other");
}

void tally_reload(struct tally *t, bool is_refused, usec_t realtime) {
    t->is_refused = is_refused;
    if (!is_refused)
        t->loaded_realtime = realtime;
}

/* --- runs --- */

static struct tally_job *find_job(struct tally *t, const struct run *run) {
    struct tally_job *job;

    if (run->kind == RUN_KIND_ADHOC)
        return &t->adhoc;
    for (size_t i = 0; i < t->n_jobs; i++)
        if (strcmp(t->jobs[i].name, run->name) == 0)
            return &t->jobs[i];
    if (t->n_jobs == TALLY_JOBS_MAX)
        return &t->others;
    job = &t->jobs[t->n_jobs++];
    (void) snprintf(job->name, sizeof(job->name), "%s", run->name);
    return job;
}

void tally_finish(struct tally *t, const struct run *run) {
    find_job(t, run)->finished[run->end.result]++;
}

/* --- pools --- */

/* Returns NULL for the pool of a job, and for pools beyond TALLY_POOLS_MAX. */
static struct tally_pool *find_pool(struct tally *t, const char *pool) {
    char pattern[POOL_NAME_SIZE];
    const char *name = pool_name_pattern(pool, pattern);
    struct tally_pool *found;

    if (!name)
        name = pool;
    if (pool_name_parse(name) == POOL_NAME_JOB)
        return NULL;
    for (size_t i = 0; i < t->n_pools; i++)
        if (strcmp(t->pools[i].name, name) == 0)
            return &t->pools[i];
    if (t->n_pools == TALLY_POOLS_MAX)
        return NULL;
    found = &t->pools[t->n_pools++];
    (void) snprintf(found->name, sizeof(found->name), "%s", name);
    return found;
}

void tally_wait(struct tally *t, const struct run *run, usec_t usec) {
    for (size_t i = 0; i < run->n_demands; i++) {
        struct tally_pool *pool = find_pool(t, run->demands[i].pool);

        if (pool)
            histogram_add(&pool->wait, &tally_bounds, usec);
    }
}

void tally_hold(struct tally *t, const struct run *run, usec_t usec) {
    for (size_t i = 0; i < run->n_demands; i++) {
        struct tally_pool *pool = find_pool(t, run->demands[i].pool);

        if (pool)
            histogram_add(&pool->hold, &tally_bounds, usec);
    }
}

/* --- refusals --- */

void tally_refuse(struct tally *t, enum tally_refusal refusal) {
    t->refused[refusal]++;
}

enum tally_refusal tally_refusal_parse(const char *reason) {
    for (size_t i = 0; i < TALLY_REFUSAL_OTHER; i++) {
        size_t size = strlen(refusals[i]);

        if (strncmp(reason, refusals[i], size) == 0 && (reason[size] == '\0' || reason[size] == ':'))
            return (enum tally_refusal) i;
    }
    return TALLY_REFUSAL_OTHER;
}

const char *tally_refusal_name(enum tally_refusal refusal) {
    return refusals[refusal];
}
