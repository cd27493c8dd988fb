/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/job.h"

enum job_decision job_decide(const struct job_triggers *triggers, size_t n_runs, size_t n_queued) {
    if (n_runs == 0)
        return JOB_DECISION_BEGIN;
    switch (triggers->overlap) {
    case JOB_OVERLAP_ALLOW:
        return JOB_DECISION_BEGIN;
    case JOB_OVERLAP_QUEUE:
        return n_queued < triggers->backlog ? JOB_DECISION_QUEUE : JOB_DECISION_SKIP;
    case JOB_OVERLAP_REPLACE:
        return JOB_DECISION_REPLACE;
    case JOB_OVERLAP_SKIP:
        break;
    }
    return JOB_DECISION_SKIP;
}

usec_t job_next(const struct job *j, usec_t every_usec, usec_t now_realtime) {
    usec_t due;

    if (every_usec == USEC_INFINITY)
        return USEC_INFINITY;
    if (j->last_trigger_realtime == 0)
        return now_realtime;
    due = usec_add(j->last_trigger_realtime, every_usec);
    if (due < now_realtime || due > usec_add(now_realtime, every_usec))
        return now_realtime;
    return due;
}

void job_get_settled_mark(const struct job_schedule *schedule, int64_t *ret_mark, uint64_t *ret_serial) {
    const struct due_entry *oldest = list_first(&schedule->entries, struct due_entry, link);

    *ret_mark = oldest && oldest->due <= schedule->mark ? oldest->due - 1 : schedule->mark;
    *ret_serial = oldest ? schedule->settled_serial : schedule->serial;
}

size_t job_count_queued(const struct job *job) {
    size_t n = 0;

    list_foreach (run, &job->runs, struct run, job.of_job)
        n += run->job.queued_by_overlap;
    return n;
}
