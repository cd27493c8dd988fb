/* SPDX-License-Identifier: MIT */

/* Attempts over a reboot. For jobs that use attempts the state directory has the health of the job, and each
 * run from its begin to its end and between two attempts. The first berthd of a boot reads there what the
 * boot before left: a run that was retrying goes on, any other run was lost with its host. Later berthds of
 * the boot use the runtime directory alone. */

#include "daemon/jobs/scheduler-internal.h"

void attempts_save(struct scheduler *scheduler, const struct job *job) {
    scheduler_save(scheduler, job);
    due_marks_save(scheduler, job);
    (void) jobs_file_sync(scheduler->due_runs.jobs_file);
}

void attempts_note_run(struct scheduler *scheduler, const struct job *job, const struct run *run) {
    struct message_writer w;

    /* The next start of the service restarts such a job anyway. */
    if (!attempts_are_used(job->settings) ||
        (run->state == RUN_STATE_RETRYING && run->job.origin.trigger == RUN_TRIGGER_RESTART))
        return;
    message_begin(&w, "attempt");
    state_put_run(&w, run);
    due_marks_put_run(scheduler, job, run->id, &w);
    (void) jobs_file_sync(scheduler->due_runs.jobs_file);
}

void attempts_note_over(struct scheduler *scheduler, const struct job *job, const struct run *run) {
    due_marks_put_run(scheduler, job, run->id, NULL);
    attempts_save(scheduler, job);
}

void attempts_note_known(struct scheduler *scheduler, struct job *job, struct run_time now) {
    if (job->attempts.is_known || !attempts_are_used(job->settings))
        return;
    job->attempts.is_known = true;
    job->attempts.health.known_since = now.realtime;
    attempts_save(scheduler, job);
}

/* --- after a reboot --- */

void attempts_read_lost(struct scheduler *scheduler, const struct message *record) {
    struct run *run = NULL;

    if (state_parse_run(record, RUN_KIND_JOB, scheduler->settings, &run) == 0)
        list_append(&scheduler->lost, &run->job.of_job);
}

/* Limits the delay to retry-delay-max: the clock may have been set back, or be wrong after the reboot. */
static void limit_delay(struct run *run, const struct job *job, struct run_time now) {
    usec_t longest = job->settings->retry.delay_max_usec;

    if (usec_sub(run->job.begin_due, now.boottime) <= longest)
        return;
    run->job.begin_due = usec_add(now.boottime, longest);
    run->job.begin_realtime = usec_add(now.realtime, longest);
}

static void resume(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now) {
    bool is_retrying = run->job.begin_due > 0;

    run->queued.boottime = usec_sub(now.boottime, usec_sub(now.realtime, run->queued.realtime));
    if (run_table_add(scheduler->runs, run, is_retrying ? RUN_STATE_RETRYING : RUN_STATE_STARTING) < 0) {
        journal_log(scheduler->journal, LOG_ERR,
                    "job %s: out of memory, run %s from before the reboot is lost", job->name, run->id);
        run_free(run);
        return;
    }
    list_append(&job->runs, &run->job.of_job);
    if (!is_retrying) {
        (void) turns_attach(job, run, now); /* without a turn this host makes the next attempt */
        scheduler->handler.lost(run, scheduler->handler.userdata);
        return;
    }
    limit_delay(run, job, now);
    state_save_run(scheduler->state, run);
}

void attempts_resume_lost(struct scheduler *scheduler, struct run_time now) {
    struct run *run;

    while ((run = list_first(&scheduler->lost, struct run, job.of_job))) {
        struct job *job = scheduler_find(scheduler, run->name);

        list_unlink(&run->job.of_job);
        /* An earlier berthd of this boot may have been killed while it did this. */
        if (!job || run_table_find(scheduler->runs, run->id) || strcmp(job->last_run, run->id) == 0)
            run_free(run);
        else
            resume(scheduler, job, run, now);
    }
}

void attempts_free_lost(struct scheduler *scheduler) {
    list_foreach_safe (run, &scheduler->lost, struct run, job.of_job)
        run_free(run);
}
