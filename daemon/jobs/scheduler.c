/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/scheduler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

struct scheduler {
    struct list jobs; /* struct job: of the settings */
    const struct settings *settings;
    struct run_table *runs;
    const struct state *state;
    struct journal *journal;
    struct scheduler_handler handler;
    bool is_started; /* between scheduler_start() and scheduler_stop() */
    bool is_drained;
};

/* --- jobs --- */

static struct job *find_job(const struct scheduler *scheduler, const char *name) {
    list_foreach (job, &scheduler->jobs, struct job, link)
        if (strcmp(job->name, name) == 0)
            return job;
    return NULL;
}

const struct job *scheduler_find_job(const struct scheduler *scheduler, const char *name) {
    return find_job(scheduler, name);
}

static const struct job_settings *settings_of(const struct scheduler *scheduler, const struct job *job) {
    return settings_find_job(scheduler->settings, job->name);
}

static void job_free(struct job *job) {
    list_unlink(&job->link);
    free(job);
}

/* The time of the next trigger by `every`, from the last trigger, whether that was a timer, a client or a
 * start. */
static void schedule(const struct scheduler *scheduler, struct job *job, struct run_time now) {
    usec_t next = job_next(job, settings_of(scheduler, job)->triggers.every_usec, now.realtime);

    job->due = next == USEC_INFINITY || !scheduler->is_started
                   ? USEC_INFINITY
                   : usec_add(now.boottime, usec_sub(next, now.realtime));
}

static void arm(const struct scheduler *scheduler) {
    usec_t next = USEC_INFINITY;

    list_foreach (job, &scheduler->jobs, struct job, link)
        if (job->due < next)
            next = job->due;
    scheduler->handler.arm(next, scheduler->handler.userdata);
}

static void save(const struct scheduler *scheduler, const struct job *job) {
    state_save_job(scheduler->state, job);
}

static void begin(const struct scheduler *scheduler, struct run *run) {
    scheduler->handler.begin(run, scheduler->handler.userdata);
}

static void withdraw(const struct scheduler *scheduler, struct run *run, const char *reason) {
    scheduler->handler.withdraw(run, reason, scheduler->handler.userdata);
}

/* --- their runs --- */

size_t scheduler_count_runs(const struct scheduler *scheduler, const char *job, struct run **ret_oldest) {
    size_t n = 0;

    *ret_oldest = NULL;
    for (int state = RUN_STATE_DONE - 1; state >= RUN_STATE_PENDING;
         state--) /* the furthest is the oldest */
        list_foreach (run, &scheduler->runs->lists[state], struct run, link)
            if (run->kind == RUN_KIND_JOB && !run->job.queued_by_overlap && strcmp(run->name, job) == 0 &&
                n++ == 0)
                *ret_oldest = run;
    return n;
}

/* id: NULL for a fresh one. The run is in no table yet. */
static int make_run(const struct scheduler *scheduler, const struct job_settings *settings, const char *id,
                    struct run_time now, struct run **ret) {
    struct run_spec spec = {
        .kind = RUN_KIND_JOB, .id = id, .name = settings->name, .pools = &settings->pools};
    struct run *run = NULL;
    int r;

    r = run_new(&run, &spec, scheduler->settings);
    if (r < 0)
        return r;
    memcpy(run->job.hash, settings->hash, sizeof(run->job.hash));
    run->terms.on_lease_lost = settings->on_lease_lost;
    run->terms.head_start_usec = settings->head_start_usec;
    run->terms.stop_timeout_usec = settings->stop_timeout_usec;
    run->terms.queue_timeout_usec = settings->queue_timeout_usec;
    run->queued = now;
    *ret = run;
    return 0;
}

static int add_run(const struct scheduler *scheduler, const struct job_settings *settings, const char *id,
                   bool is_queued, struct run_time now, struct run **ret) {
    struct run *run = NULL;
    int r = make_run(scheduler, settings, id, now, &run);

    if (r < 0)
        return r;
    run->job.queued_by_overlap = is_queued;
    r = run_table_add(scheduler->runs, run, RUN_STATE_PENDING);
    if (r < 0) {
        run_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

/* --- triggers --- */

static void note_trigger(const struct scheduler *scheduler, struct job *job, struct run_time now) {
    job->last_trigger_realtime = now.realtime;
    schedule(scheduler, job, now);
}

/* The run begins when the job's other run is over. */
static void note_queued(struct job *job, struct run *run) {
    run->job.queued_by_overlap = job->queued = true;
    memcpy(job->queued_run, run->id, sizeof(job->queued_run));
}

static void begin_or_defer(const struct scheduler *scheduler, const struct job *job, struct run *run) {
    if (scheduler->is_started) {
        begin(scheduler, run);
        return;
    }
    state_save_run(scheduler->state, run); /* the caller has its id, also if the next berthd begins it */
    save(scheduler, job);
}

void scheduler_note_begun(struct scheduler *scheduler, const struct run *run) {
    const struct job *job = find_job(scheduler, run->name);

    if (job)
        save(scheduler, job);
}

/* One trigger of any kind. */
static int trigger(const struct scheduler *scheduler, struct job *job, struct run_time now,
                   struct run **ret) {
    const struct job_settings *settings = settings_of(scheduler, job);
    enum job_decision decision;
    struct run *run;
    size_t n = scheduler_count_runs(scheduler, job->name, &run);
    int r = SCHEDULER_E_SKIPPED;

    if (scheduler->is_drained)
        return SCHEDULER_E_DRAINED;
    decision = job_decide(job, settings->triggers.overlap, n);
    if (decision != JOB_DECISION_SKIP)
        r = add_run(scheduler, settings, NULL, decision == JOB_DECISION_QUEUE, now, &run);
    *ret = run;
    if (r == 0)
        note_trigger(scheduler, job, now);
    if (r == 0 && decision == JOB_DECISION_QUEUE)
        note_queued(job, run);
    if (r == 0 && decision == JOB_DECISION_BEGIN)
        begin_or_defer(scheduler, job, run);
    else
        save(scheduler, job);
    return r;
}

int scheduler_trigger(struct scheduler *scheduler, const char *name, struct run_time now, struct run **ret) {
    struct job *job = find_job(scheduler, name);
    int r = SCHEDULER_E_UNKNOWN;

    if (job)
        r = trigger(scheduler, job, now, ret);
    arm(scheduler);
    return r;
}

void scheduler_begin_deferred(struct scheduler *scheduler, struct run *run) {
    struct job *job = find_job(scheduler, run->name);
    size_t n = 0;

    if (job && job->queued &&
        strcmp(job->queued_run, run->id) == 0) /* berthd was killed before it removed the record */
        job->queued = false;
    run_table_foreach (other, scheduler->runs, RUN_STATE_WAITING, RUN_STATE_STOPPING)
        n += other->kind == RUN_KIND_JOB && strcmp(other->name, run->name) == 0;
    switch (job ? job_decide(job, settings_of(scheduler, job)->triggers.overlap, n) : JOB_DECISION_BEGIN) {
    case JOB_DECISION_BEGIN:
        begin(scheduler, run);
        break;
    case JOB_DECISION_QUEUE:
        note_queued(job, run);
        save(scheduler, job);
        state_remove_run(scheduler->state, run); /* now the job's record has it */
        break;
    case JOB_DECISION_SKIP:
        withdraw(scheduler, run, "a run of the job is not over");
        break;
    }
}

static void trigger_by_every(const struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    note_trigger(scheduler, job, now); /* also if the run is skipped */
    if (trigger(scheduler, job, now, &run) < 0)
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, skipped once", job->name);
}

void scheduler_run_due(struct scheduler *scheduler, struct run_time now) {
    list_foreach (job, &scheduler->jobs, struct job, link)
        if (scheduler->is_started && job->due <= now.boottime)
            trigger_by_every(scheduler, job, now);
    arm(scheduler);
}

/* --- overlap = "queue" --- */

/* The queued run; made if it was queued under an earlier berthd. NULL: no memory. */
static struct run *find_queued(const struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run = run_table_find(scheduler->runs, job->queued_run);

    if (run || add_run(scheduler, settings_of(scheduler, job), job->queued_run, true, now, &run) == 0)
        return run;
    return NULL;
}

/* Begins the queued run with the job's present settings, not those at the time of queueing. Without memory
 * the run stays queued until the next end of a run or the next start. */
static void begin_queued(const struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *queued = find_queued(scheduler, job, now), *run = NULL;

    if (queued &&
        !queued->job.queued_by_overlap) { /* begun, and berthd was killed before it could note that */
        job->queued = false;
        save(scheduler, job);
        return;
    }
    if (!queued || make_run(scheduler, settings_of(scheduler, job), job->queued_run, now, &run) < 0) {
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, its queued run begins later",
                    job->name);
        return;
    }
    run_table_replace(scheduler->runs, queued, run);
    job->queued = false;
    note_trigger(scheduler, job, now);
    begin(scheduler, run);
}

static void resume_queued(const struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run = find_queued(scheduler, job, now), *other; /* made, so that clients find it */

    if (scheduler->is_drained) {
        if (run && run->job.queued_by_overlap)
            withdraw(scheduler, run, "drained");
        return;
    }
    if ((run && !run->job.queued_by_overlap) || scheduler_count_runs(scheduler, job->name, &other) == 0)
        begin_queued(scheduler, job, now);
}

static void start_job(const struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    /* A drained host comes here again at its undrain. */
    if (!scheduler->is_drained && settings_of(scheduler, job)->triggers.at_start && !job->at_start_done) {
        job->at_start_done = true; /* before it is begun: once, even if berthd is killed */
        if (trigger(scheduler, job, now, &run) < 0) {
            job->at_start_done = false;
            save(scheduler, job);
        }
    }
    if (job->queued)
        resume_queued(scheduler, job, now);
    schedule(scheduler, job, now);
}

void scheduler_start(struct scheduler *scheduler, struct run_time now) {
    scheduler->is_started = true;
    list_foreach (job, &scheduler->jobs, struct job, link)
        start_job(scheduler, job, now);
    arm(scheduler);
}

void scheduler_stop(struct scheduler *scheduler) {
    scheduler->is_started = false;
}

void scheduler_set_drained(struct scheduler *scheduler, bool drained) {
    scheduler->is_drained = drained;
}

void scheduler_forget_service(struct scheduler *scheduler) {
    list_foreach (job, &scheduler->jobs, struct job, link) {
        job->at_start_done = job->queued = false;
        save(scheduler, job);
    }
}

/* --- ends --- */

void scheduler_run_over(struct scheduler *scheduler, struct run *run, struct run_time now) {
    struct job *job = run->kind == RUN_KIND_JOB ? find_job(scheduler, run->name) : NULL;
    struct run *other;

    if (!job)
        return;
    if (run->job.queued_by_overlap) /* withdrawn before its turn came */
        run->job.queued_by_overlap = job->queued = false;
    if (run->started.realtime > 0)
        job->last_started_realtime = run->started.realtime;
    job->last_ended_realtime = run->end.realtime;
    job->last_result = run->end.result;
    memcpy(job->last_run, run->id, sizeof(job->last_run));
    job->last_token = run_token(run);
    job->last_exit_code = run->end.exit_code;
    job->last_signal = run->end.signal;
    if (!job->queued || !scheduler->is_started || scheduler->is_drained ||
        scheduler_count_runs(scheduler, job->name, &other) > 0) {
        save(scheduler, job);
        return;
    }
    begin_queued(scheduler, job, now);
    arm(scheduler);
}

bool scheduler_is_end_logged(const struct scheduler *scheduler, const struct run *run) {
    const struct job *job = find_job(scheduler, run->name);

    return job && strcmp(job->last_run, run->id) == 0;
}

/* --- settings --- */

static int add_job(struct scheduler *scheduler, const char *name, struct run_time now) {
    struct job *job = calloc(1, sizeof(*job));
    int r;

    if (!job)
        return -ENOMEM;
    snprintf(job->name, sizeof(job->name), "%s", name);
    job->last_exit_code = job->last_signal = -1;
    list_append(&scheduler->jobs, &job->link);
    r = state_load_job(scheduler->state, job);
    if (r < 0) { /* unknown, and so not begun, rather than begun once more */
        job_free(job);
        return r;
    }
    /* A job that a reload brings was not there when the service started. The next berthd must know that,
     * too. */
    if (scheduler->is_started) {
        job->at_start_done = true;
        save(scheduler, job);
    }
    schedule(scheduler, job, now);
    return 0;
}

static void remove_old_jobs(struct scheduler *scheduler) {
    list_foreach_safe (job, &scheduler->jobs, struct job, link) {
        struct run *queued = job->queued ? run_table_find(scheduler->runs, job->queued_run) : NULL;

        if (settings_of(scheduler, job))
            continue;
        if (queued && queued->job.queued_by_overlap)
            withdraw(scheduler, queued, "its job is not defined any more");
        job_free(job);
    }
}

int scheduler_update(struct scheduler *scheduler, const struct settings *settings, struct run_time now) {
    int result = 0;

    scheduler->settings = settings;
    remove_old_jobs(scheduler);
    for (size_t i = 0; i < settings->n_jobs; i++) {
        const char *name = settings->jobs[i].name;
        struct job *job = find_job(scheduler, name);
        int r = 0;

        if (job)
            schedule(scheduler, job, now);
        else
            r = add_job(scheduler, name, now);
        if (r < 0) {
            journal_log(scheduler->journal, LOG_ERR,
                        "job %s is disabled until the next reload: cannot read its state: %s", name,
                        strerror(-r));
            result = r;
        }
    }
    arm(scheduler);
    return result;
}

/* --- made and freed --- */

int scheduler_new(struct scheduler **ret, struct run_table *runs, const struct state *state,
                  struct journal *journal, const struct scheduler_handler *handler) {
    struct scheduler *scheduler = calloc(1, sizeof(*scheduler));

    if (!scheduler)
        return -ENOMEM;
    list_init(&scheduler->jobs);
    scheduler->runs = runs;
    scheduler->state = state;
    scheduler->journal = journal;
    scheduler->handler = *handler;
    *ret = scheduler;
    return 0;
}

struct scheduler *scheduler_free(struct scheduler *scheduler) {
    if (!scheduler)
        return NULL;
    list_foreach_safe (job, &scheduler->jobs, struct job, link)
        job_free(job);
    free(scheduler);
    return NULL;
}
