/* SPDX-License-Identifier: MIT */

/* Ends of runs: their records, and the queued run that begins next. chain.c decides which end is good,
 * attempts.c makes retries and restarts, hooks.c starts hooks. */

#include "daemon/jobs/scheduler-internal.h"

void ends_note(struct job *job, const struct run *run) {
    if (run->started.realtime > 0)
        job->last_started_realtime = run->started.realtime;
    job->last_ended_realtime = run->end.realtime;
    job->last_result = run->end.result;
    memcpy(job->last_run, run->id, sizeof(job->last_run));
    job->last_token = run_token(run);
    job->last_exit_code = run->end.exit_code;
    job->last_signal = run->end.signal;
}

void scheduler_run_over(struct scheduler *scheduler, struct run *run, struct run_time now) {
    struct job *job = run->kind == RUN_KIND_JOB ? scheduler_find(scheduler, run->name) : NULL;

    if (!job)
        return;
    list_unlink(&run->job.of_job);
    if (run->job.queued_by_overlap) { /* withdrawn before it began */
        due_runs_log_dropped(scheduler, job, run);
        run->job.queued_by_overlap = false;
    }
    turn_attempts_ask_later(scheduler, job, run, now);
    if (!run->job.next_run)
        (void) triggers_begin_next(scheduler, job, now);
}

bool scheduler_is_end_logged(struct scheduler *scheduler, const struct run *run) {
    const struct job *job = open_find(scheduler, run->name);

    return job && strcmp(job->last_run, run->id) == 0;
}
