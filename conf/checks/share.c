/* SPDX-License-Identifier: MIT */

/* Jobs that hosts share, with on = "any": checks that option against the others, and adds the pool of each
 * such job. */

#include <stdlib.h>
#include <string.h>

#include "conf/checks/checks.h"
#include "conf/options.h"
#include "conf/settings-read.h"

#define QUEUE_LIMIT 10000 /* of a job's pool: claims */

/* ---- options against each other ---- */

static void check_pool(const struct settings *s, const struct value_reader *reader, size_t index,
                       const struct demand *demand) {
    const struct pool_settings *pool = settings_find_pool(s, demand->pool);

    if (!pool)
        return;
    if (pool->scope == POOL_SCOPE_HOST)
        value_error(reader, "pools", index,
                    "is of scope \"host\", which on = \"any\" excludes: a host would take the due time and then "
                    "wait for its own permits; use a pool of scope \"cluster\"");
    else if (pool->host_limit > 0)
        value_error(
            reader, "pools", index,
            "has a host-limit, which on = \"any\" excludes: a host would take the due time and then wait "
            "for its own permits; use a pool without host-limit");
}

static void check_pools(const struct settings *s, const struct job_settings *job,
                        const struct value_reader *reader) {
    struct settings_place place = value_place(reader, "pools");
    uint32_t permits = 0;

    for (size_t i = 0; i < job->pools.n; i++) {
        permits += job->pools.items[i].permits;
        check_pool(s, reader, i, &job->pools.items[i]);
    }
    if (job->pools.n == DEMAND_POOLS_MAX || permits == DEMAND_PERMITS_MAX)
        value_note(reader, &place,
                   "pools with on = \"any\": the job's own pool is one more; ask for at most %d pools and "
                   "%d permits",
                   DEMAND_POOLS_MAX - 1, DEMAND_PERMITS_MAX - 1);
}

/* A claim that waits for the job's own pool also keeps its place at the head of its other queues (R2). */
static void check_standing_by(const struct job_settings *job, const struct value_reader *reader) {
    struct settings_place restart = value_place(reader, "restart"), overlap = value_place(reader, "overlap");

    if (job->pools.n == 0)
        return;
    if (job->retry.restart != JOB_RESTART_NO)
        value_note(
            reader, &restart,
            "on = \"any\" with restart and pools: a host that stands by would hold up the queues of these "
            "pools; remove pools");
    if (job->triggers.overlap == JOB_OVERLAP_QUEUE)
        value_note(reader, &overlap,
                   "on = \"any\" with overlap = \"queue\" and pools: the run that waits would hold up the "
                   "queues of these pools; remove pools, or overlap");
}

static void check_triggers(const struct job_triggers *triggers, const struct value_reader *reader) {
    struct settings_place on = value_place(reader, "on"), overlap = value_place(reader, "overlap");
    struct settings_place zone = value_place(reader, "zone"), backlog = value_place(reader, "backlog");
    struct settings_place every = value_place(reader, "every");

    if (triggers->at_start)
        value_note(reader, &on,
                   "on = \"any\" and at-start exclude each other; restart = \"always\" keeps one running "
                   "somewhere");
    if (triggers->every_usec != USEC_INFINITY && triggers->every_usec % USEC_PER_SEC != 0)
        value_note(reader, &every, "every with on = \"any\" must be whole seconds: hosts share due times");
    if (triggers->overlap == JOB_OVERLAP_REPLACE)
        value_note(reader, &overlap,
                   "on = \"any\" and overlap = \"replace\" exclude each other; write skip, queue or allow");
    if (triggers->backlog > 1)
        value_note(reader, &backlog, "on = \"any\" and backlog above 1 exclude each other; keep one");
    if (!schedule_is_empty(&triggers->schedule) && triggers->zone.name && strcmp(triggers->zone.name, "local") == 0)
        value_note(reader, &zone,
                   "on = \"any\" needs a zone that is the same on all hosts: write zone = \"Europe/Berlin\" "
                   "or \"UTC\"");
}

static void check_shared(const struct settings *s, const struct job_settings *job,
                         const struct value_reader *reader) {
    struct settings_place on = value_place(reader, "on"), lost = value_place(reader, "on-lease-lost");
    struct settings_place silence = value_place(reader, "max-silence");

    if (!s->redis && !reader->notes->incomplete)
        value_note(reader, &on, "on = \"any\" needs a redis section; add one, or remove on");
    if (job->on_lease_lost == ON_LEASE_LOST_CONTINUE && job->triggers.overlap != JOB_OVERLAP_ALLOW)
        value_note(reader, &lost,
                   "on = \"any\" with on-lease-lost = \"continue\" could run twice: add overlap = \"allow\" "
                   "if it may");
    if (job->hooks.max_silence_usec != USEC_INFINITY)
        value_note(reader, &silence,
                   "on = \"any\" and max-silence exclude each other: a host knows only its own runs; "
                   "name a hook in on-success that reports to a service outside");
    check_triggers(&job->triggers, reader);
    check_standing_by(job, reader);
    check_pools(s, job, reader);
}

void settings_check_sharing(const struct settings *s, const struct job_settings *job,
                            const struct value_reader *reader) {
    struct settings_place prefer = value_place(reader, "prefer");

    if (job->triggers.sharing.on == JOB_ON_ANY)
        check_shared(s, job, reader);
    else if (value_option(reader, "prefer")->n_values > 0)
        value_note(reader, &prefer, "prefer without on = \"any\"; add on = \"any\", or remove prefer");
}

/* ---- the pools of jobs ---- */

static int compare_pools(const void *a, const void *b) {
    return strcmp(((const struct pool_settings *) a)->name, ((const struct pool_settings *) b)->name);
}

static void add_pool(struct settings *s, struct job_settings *job) {
    struct pool_settings *pool = &s->pools[s->n_pools++];
    struct demand *first = job->pools.items; /* where the scripts have it in their records, too */

    *pool = (struct pool_settings){
        .limit = job->triggers.overlap == JOB_OVERLAP_ALLOW ? POOL_LIMIT_MAX : 1,
        .scope = POOL_SCOPE_CLUSTER,
        .queue_limit = QUEUE_LIMIT,
        .place = job->place,
    };
    (void) snprintf(pool->name, sizeof(pool->name), "@%s", job->name);
    memmove(first + 1, first, job->pools.n++ * sizeof(*first));
    *first = (struct demand){.permits = 1};
    memcpy(first->pool, pool->name, sizeof(first->pool));
}

void settings_add_job_pools(struct settings *s, struct notes *notes) {
    struct pool_settings *pools;
    size_t n = 0;

    if (notes->n > 0 || notes->out_of_memory)
        return;
    for (size_t i = 0; i < s->n_jobs; i++)
        n += s->jobs[i].triggers.sharing.on == JOB_ON_ANY;
    if (n == 0)
        return;
    pools = reallocarray(s->pools, s->n_pools + n, sizeof(*pools));
    if (!pools) {
        notes->out_of_memory = true;
        return;
    }
    s->pools = pools;
    for (size_t i = 0; i < s->n_jobs; i++)
        if (s->jobs[i].triggers.sharing.on == JOB_ON_ANY)
            add_pool(s, &s->jobs[i]);
    qsort(s->pools, s->n_pools, sizeof(*s->pools), compare_pools);
}
