/* SPDX-License-Identifier: MIT */

/* Triggers: each begins a run, queues one behind another, or is skipped. */

#include "base/text.h"
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
            if (n++ == 0 || run->state > (*ret_oldest)->state) /* the latest state is that of the oldest */
                *ret_oldest = run;
        }
    return n;
}

/* Makes a run that is in no table. id: NULL for a new one. */
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
    due_runs_note_trigger(scheduler, job);
    scheduler_arm(scheduler, job, now);
}

void triggers_queue(const struct scheduler *scheduler, struct run *run) {
    run->job.queued_by_overlap = true;
    state_save_run(scheduler->state, run);
}

void triggers_log_skipped(const struct scheduler *scheduler, const struct job *job, enum run_trigger why,
                          const char *due, const struct run *other) {
    struct event e = {.type = EVENT_SKIPPED,
                      .job = job->name,
                      .origin.trigger = run_trigger_name(why),
                      .origin.due = due,
                      .reason = "overlap",
                      .other.run = other ? other->id : NULL};

    event_emit(scheduler->runs->events, &e, "%s was not begun: a run of it is not over", job->name);
}

/* Returns a run that `by` replaces, or NULL. */
static struct run *find_replaced(const struct job *job, const char *by, bool is_queued) {
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (run->job.queued_by_overlap == is_queued && run->state != RUN_STATE_STOPPING &&
            run->state != RUN_STATE_RETRYING && strcmp(run->id, by) != 0)
            return run;
    return NULL;
}

void triggers_replace(const struct scheduler *scheduler, const struct job *job, const struct run *by) {
    char id[ID_TEXT_SIZE]; /* the last end of another run may begin `by`, and free it for that */
    struct run *run;

    memcpy(id, by->id, sizeof(id));
    while ((run = find_replaced(job, id, true)))
        scheduler_withdraw(scheduler, run, "replaced");
    while ((run = find_replaced(job, id, false)))
        scheduler->handler.stop(run, "replaced", scheduler->handler.userdata);
}

static void begin_or_defer(const struct scheduler *scheduler, const struct job *job, struct run *run) {
    if (scheduler->is_started) {
        scheduler_begin(scheduler, run);
        return;
    }
    state_save_run(scheduler->state, run); /* the client has its id, even if the next berthd begins it */
    scheduler_save(scheduler, job);
}

void scheduler_note_begun(struct scheduler *scheduler, const struct run *run) {
    const struct job *job = scheduler_find(scheduler, run->name);

    if (!job)
        return;
    if (!due_begin_is_proven_by(job, run))
        scheduler_save(scheduler, job);
    if (!run->job.turn) /* else after this host got the turn */
        attempts_note_run(scheduler, job, run);
}

/* Handles a trigger of any kind. *ret: the run that it began or queued, or the one that is not over. */
static int trigger(struct scheduler *scheduler, struct job *job, enum run_trigger why, char *const *set,
                   struct run_time now, struct run **ret) {
    enum job_decision decision;
    char **own_set;
    struct run *run;
    size_t n = scheduler_count_runs(scheduler, job->name, &run);
    char id[ID_TEXT_SIZE];
    int r;

    *ret = run;
    if (scheduler->is_drained)
        return SCHEDULER_E_DRAINED;
    decision = job_decide(&job->settings->triggers, n, job_count_queued(job));
    if (decision == JOB_DECISION_SKIP) {
        if (why != RUN_TRIGGER_EVERY || !run || strcmp(job->skipped_for, run->id) != 0) /* logged once a run */
            triggers_log_skipped(scheduler, job, why, NULL, run);
        if (why == RUN_TRIGGER_EVERY && run)
            memcpy(job->skipped_for, run->id, sizeof(job->skipped_for));
        scheduler_save(scheduler, job);
        return SCHEDULER_E_SKIPPED;
    }
    r = run_set_copy(set, &own_set);
    if (r == 0)
        r = triggers_add_run(scheduler, job, NULL, RUN_STATE_PENDING, now, &run);
    if (r < 0) {
        text_free_list(own_set);
        scheduler_save(scheduler, job);
        return r;
    }
    *ret = run;
    run->job.origin.set = own_set;
    run->job.queued_by_overlap = decision != JOB_DECISION_BEGIN;
    run->job.origin.trigger = why;
    if (why == RUN_TRIGGER_START && decision == JOB_DECISION_BEGIN)
        turns_attach_start(job, run);
    if (why != RUN_TRIGGER_EVERY) /* it is noted already */
        note_trigger(scheduler, job, now);
    attempts_supersede(scheduler, job);
    job->attempts.is_stopped = false;
    if (decision == JOB_DECISION_BEGIN) {
        begin_or_defer(scheduler, job, run);
        return 0;
    }
    triggers_queue(scheduler, run);
    scheduler_save(scheduler, job);
    if (decision == JOB_DECISION_REPLACE) {
        memcpy(id, run->id, sizeof(id));
        triggers_replace(scheduler, job, run);
        *ret = run_table_find(scheduler->runs, id); /* begun, perhaps */
    }
    return 0;
}

int scheduler_trigger(struct scheduler *scheduler, const char *name, char *const *set, struct run_time now,
                      struct run **ret) {
    struct job *job = scheduler_find(scheduler, name);
    int r = SCHEDULER_E_UNKNOWN;

    if (job)
        r = trigger(scheduler, job, RUN_TRIGGER_START, set, now, ret);
    return r;
}

void scheduler_begin_deferred(struct scheduler *scheduler, struct run *run) {
    struct job *job = scheduler_find(scheduler, run->name);
    enum job_decision decision = JOB_DECISION_BEGIN;
    size_t n = 0;

    if (job) {
        list_foreach (other, &job->runs, struct run, job.of_job)
            n += other->state >= RUN_STATE_WAITING;
    }
    if (job && (run->job.origin.trigger == RUN_TRIGGER_HOOK || run->job.turn))
        n = 0; /* hooks may overlap; for a turn Redis decides */
    if (job)
        decision = job_decide(&job->settings->triggers, n, job_count_queued(job));
    switch (decision) {
    case JOB_DECISION_BEGIN:
        scheduler_begin(scheduler, run);
        break;
    case JOB_DECISION_QUEUE:
        triggers_queue(scheduler, run);
        break;
    case JOB_DECISION_REPLACE:
        triggers_queue(scheduler, run);
        triggers_replace(scheduler, job, run);
        break;
    case JOB_DECISION_SKIP:
        scheduler_withdraw(scheduler, run, "a run of the job is not over");
        break;
    }
}

void triggers_by_every(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    note_trigger(scheduler, job, now); /* even if it is skipped */
    if (trigger(scheduler, job, RUN_TRIGGER_EVERY, NULL, now, &run) < 0)
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, skipped once", job->name);
}

/* --- queued runs --- */

static int64_t due_of(const struct run *run) {
    int64_t due;

    return run->job.origin.due[0] && schedule_parse_time(run->job.origin.due, &due) == 0 ? due : INT64_MAX;
}

struct run *triggers_first_queued(const struct job *job) {
    struct run *first = NULL;

    list_foreach (run, &job->runs, struct run, job.of_job) {
        if (!run->job.queued_by_overlap)
            continue;
        if (!first || run->queued.boottime < first->queued.boottime ||
            (run->queued.boottime == first->queued.boottime && due_of(run) < due_of(first)))
            first = run;
    }
    return first;
}

/* Begins a queued run with the job's present settings, not those at the time of queueing. Without memory the
 * run stays queued until the next run of the job ends, or berthd starts. */
static void begin_queued(struct scheduler *scheduler, struct job *job, struct run *queued, struct run_time now) {
    struct run *run = NULL;

    if (make_run(scheduler, job->settings, queued->id, now, &run) < 0 ||
        run_origin_copy(&run->job.origin, &queued->job.origin) < 0) {
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, its queued run begins later",
                    job->name);
        run_free(run);
        return;
    }
    run->recorded.waiting = queued->recorded.waiting;
    if (queued->job.origin.due[0])
        due_marks_put_run(scheduler, job, queued->id, NULL);
    run_table_replace(scheduler->runs, queued, run);
    list_append(&job->runs, &run->job.of_job);
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
    fresh->recorded.waiting = run->recorded.waiting;
    run_table_replace(scheduler->runs, run, fresh);
    list_append(&job->runs, &fresh->job.of_job);
    scheduler_begin(scheduler, fresh);
}

void triggers_restart(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    if (trigger(scheduler, job, RUN_TRIGGER_RESTART, NULL, now, &run) < 0)
        journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, it is not begun", job->name);
}

bool triggers_has_retrying(const struct job *job) {
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (run->state == RUN_STATE_RETRYING && run->job.origin.depth == 0)
            return true;
    return false;
}

bool triggers_begin_next(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *next = triggers_first_queued(job), *other;

    if (!next || !scheduler->is_started || scheduler->is_drained || triggers_has_retrying(job) ||
        scheduler_count_runs(scheduler, job->name, &other) > 0)
        return false;
    begin_queued(scheduler, job, next, now);
    return true;
}

void triggers_start_job(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *run;

    while (scheduler->is_drained && (run = triggers_first_queued(job)))
        scheduler_withdraw(scheduler, run, "drained");
    /* A drained host does this at its undrain. */
    if (!scheduler->is_drained && job->settings->triggers.at_start && !job->at_start_done) {
        job->at_start_done = true; /* before the run begins: at most once, even if berthd is killed */
        if (trigger(scheduler, job, RUN_TRIGGER_AT_START, NULL, now, &run) < 0) {
            job->at_start_done = false;
            scheduler_save(scheduler, job);
        }
    }
    (void) triggers_begin_next(scheduler, job, now);
    due_runs_start_job(scheduler, job);
    attempts_start_job(scheduler, job, now);
    scheduler_arm(scheduler, job, now);
}
