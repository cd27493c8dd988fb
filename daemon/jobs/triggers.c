/* SPDX-License-Identifier: MIT */

/* Triggers: whether one begins a run, queues it behind another, or is skipped. */

#include "daemon/jobs/scheduler-internal.h"

/* --- runs of jobs --- */

size_t scheduler_count_runs(const struct scheduler *scheduler, const char *name, struct run **ret_oldest) {
    const struct job *job = scheduler_find(scheduler, name);
    size_t n = 0;

    *ret_oldest = NULL;
    if (!job)
        return 0;
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (run->state != RUN_STATE_RETRYING && !run->job.queued_by_overlap) {
            if (n++ == 0 || run->state > (*ret_oldest)->state) /* the furthest is the oldest */
                *ret_oldest = run;
        }
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

int triggers_add_run(struct scheduler *scheduler, struct job *job, const char *id, enum run_state state,
                     struct run_time now, struct run **ret) {
    struct run *run = NULL;
    int r = make_run(scheduler, job->settings, id, now, &run);

    if (r < 0)
        return r;
    r = run_table_add(scheduler->runs, run, state);
    if (r < 0) {
        run_free(run);
        return r;
    }
    list_append(&job->runs, &run->job.of_job);
    *ret = run;
    return 0;
}

/* --- triggers --- */

static void note_trigger(struct scheduler *scheduler, struct job *job, struct run_time now) {
    job->last_trigger_realtime = now.realtime;
    scheduler_arm(scheduler, job, now);
}

/* The run begins when the job's other run is over. */
static void note_queued(struct job *job, struct run *run) {
    run->job.queued_by_overlap = job->queued = true;
    memcpy(job->queued_run, run->id, sizeof(job->queued_run));
}

static void begin_or_defer(const struct scheduler *scheduler, const struct job *job, struct run *run) {
    if (scheduler->is_started) {
        scheduler_begin(scheduler, run);
        return;
    }
    state_save_run(scheduler->state, run); /* the caller has its id, also if the next berthd begins it */
    scheduler_save(scheduler, job);
}

void scheduler_note_begun(struct scheduler *scheduler, const struct run *run) {
    const struct job *job = scheduler_find(scheduler, run->name);

    if (job)
        scheduler_save(scheduler, job);
}

/* One trigger of any kind. */
static int trigger(struct scheduler *scheduler, struct job *job, enum run_trigger why,
                   struct run_time now, struct run **ret) {
    enum job_decision decision;
    struct run *run;
    size_t n = scheduler_count_runs(scheduler, job->name, &run);
    int r = SCHEDULER_E_SKIPPED;

    if (scheduler->is_drained)
        return SCHEDULER_E_DRAINED;
    decision = job_decide(job, job->settings->triggers.overlap, n);
    if (decision != JOB_DECISION_SKIP)
        r = triggers_add_run(scheduler, job, NULL, RUN_STATE_PENDING, now, &run);
    *ret = run;
    if (r == 0) {
        run->job.origin.trigger = why;
        note_trigger(scheduler, job, now);
        attempts_supersede(scheduler, job);
        job->attempts.is_stopped = false;
    }
    if (r == 0 && decision == JOB_DECISION_QUEUE)
        note_queued(job, run);
    if (r == 0 && decision == JOB_DECISION_BEGIN)
        begin_or_defer(scheduler, job, run);
    else
        scheduler_save(scheduler, job);
    return r;
}

int scheduler_trigger(struct scheduler *scheduler, const char *name, struct run_time now, struct run **ret) {
    struct job *job = scheduler_find(scheduler, name);
    int r = SCHEDULER_E_UNKNOWN;

    if (job)
        r = trigger(scheduler, job, RUN_TRIGGER_START, now, ret);
    return r;
}

void scheduler_begin_deferred(struct scheduler *scheduler, struct run *run) {
    struct job *job = scheduler_find(scheduler, run->name);
    size_t n = 0;

    if (job && job->queued &&
        strcmp(job->queued_run, run->id) == 0) /* berthd was killed before it removed the record */
        job->queued = false;
    if (job)
        list_foreach (other, &job->runs, struct run, job.of_job)
            n += other->state >= RUN_STATE_WAITING;
    if (run->job.origin.trigger == RUN_TRIGGER_HOOK) /* as if overlap = "allow" */
        n = 0;
    switch (job ? job_decide(job, job->settings->triggers.overlap, n) : JOB_DECISION_BEGIN) {
    case JOB_DECISION_BEGIN:
        scheduler_begin(scheduler, run);
        break;
    case JOB_DECISION_QUEUE:
        note_queued(job, run);
        scheduler_save(scheduler, job);
        state_remove_run(scheduler->state, run); /* now the job's record has it */
        break;
    case JOB_DECISION_SKIP:
        scheduler_withdraw(scheduler, run, "a run of the job is not over");
        break;
    }
}

void triggers_by_every(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    note_trigger(scheduler, job, now); /* also if the run is skipped */
    if (trigger(scheduler, job, RUN_TRIGGER_EVERY, now, &run) < 0)
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, skipped once", job->name);
}

/* --- overlap = "queue" --- */

/* The queued run; made if it was queued under an earlier berthd. NULL: no memory. */
static struct run *find_queued(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run = run_table_find(scheduler->runs, job->queued_run);

    if (run)
        return run;
    if (triggers_add_run(scheduler, job, job->queued_run, RUN_STATE_PENDING, now, &run) < 0)
        return NULL;
    run->job.queued_by_overlap = true;
    return run;
}

/* Begins the queued run with the job's present settings, not those at the time of queueing. Without memory
 * the run stays queued until the next end of a run or the next start. */
void triggers_begin_queued(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *queued = find_queued(scheduler, job, now), *run = NULL;

    if (queued &&
        !queued->job.queued_by_overlap) { /* begun, and berthd was killed before it could note that */
        job->queued = false;
        scheduler_save(scheduler, job);
        return;
    }
    if (!queued || make_run(scheduler, job->settings, job->queued_run, now, &run) < 0) {
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, its queued run begins later",
                    job->name);
        return;
    }
    run->job.origin.trigger = queued->job.origin.trigger;
    run_table_replace(scheduler->runs, queued, run);
    list_append(&job->runs, &run->job.of_job);
    job->queued = false;
    note_trigger(scheduler, job, now);
    scheduler_begin(scheduler, run);
}

void triggers_begin_fresh(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now) {
    struct run *fresh = NULL;

    if (make_run(scheduler, job->settings, run->id, now, &fresh) < 0 ||
        run_origin_copy(&fresh->job.origin, &run->job.origin) < 0) {
        run_free(fresh);
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, its next attempt begins later", job->name);
        scheduler->handler.await(run, usec_add(now.boottime, USEC_PER_SEC), scheduler->handler.userdata);
        return;
    }
    run_enter(run, RUN_STATE_PENDING);
    fresh->has_waiting_record = run->has_waiting_record;
    run_table_replace(scheduler->runs, run, fresh);
    list_append(&job->runs, &fresh->job.of_job);
    scheduler_begin(scheduler, fresh);
}

void triggers_restart(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    if (trigger(scheduler, job, RUN_TRIGGER_RESTART, now, &run) < 0)
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, it is not begun", job->name);
}

static void resume_queued(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run = find_queued(scheduler, job, now), *other; /* made, so that clients find it */

    if (scheduler->is_drained) {
        if (run && run->job.queued_by_overlap)
            scheduler_withdraw(scheduler, run, "drained");
        return;
    }
    if ((run && !run->job.queued_by_overlap) || scheduler_count_runs(scheduler, job->name, &other) == 0)
        triggers_begin_queued(scheduler, job, now);
}

void triggers_start_job(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    /* A drained host comes here again at its undrain. */
    if (!scheduler->is_drained && job->settings->triggers.at_start && !job->at_start_done) {
        job->at_start_done = true; /* before it is begun: once, even if berthd is killed */
        if (trigger(scheduler, job, RUN_TRIGGER_AT_START, now, &run) < 0) {
            job->at_start_done = false;
            scheduler_save(scheduler, job);
        }
    }
    if (job->queued)
        resume_queued(scheduler, job, now);
    attempts_start_job(scheduler, job, now);
    scheduler_arm(scheduler, job, now);
}
