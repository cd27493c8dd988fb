/* SPDX-License-Identifier: MIT */

/* Logs and counts due times that are not begun. */

#include "daemon/jobs/scheduler-internal.h"

void due_runs_log_missed(struct scheduler *scheduler, struct job *job, const struct due_missed *missed,
                         const char *reason) {
    const struct zone *zone = shared_zone_get(job->schedule.zone);
    char first[SCHEDULE_TEXT_SIZE], last[SCHEDULE_TEXT_SIZE];
    struct event e = {.type = EVENT_MISSED, .job = job->name, .reason = reason, .missed.count = missed->count};

    if (missed->count == 0 || !zone)
        return;
    job->schedule.n_missed += missed->count;
    job->schedule.last_missed = missed->last;
    e.origin.due = schedule_format(zone, missed->first, first);
    e.missed.until = schedule_format(zone, missed->last, last);
    if (missed->count == 1)
        event_emit(scheduler->runs->events, &e, "%s was not begun: it was due at %s (%s)", job->name, first,
                   reason);
    else
        event_emit(scheduler->runs->events, &e,
                   "%s was not begun %s%llu times: it was due from %s to %s (%s)", job->name,
                   missed->count == DUE_COUNT_MAX ? "at least " : "", (unsigned long long) missed->count,
                   first, last, reason);
}

void due_runs_log_one_missed(struct scheduler *scheduler, struct job *job, int64_t due, const char *reason) {
    struct due_missed missed = {.count = 1, .first = due, .last = due};

    due_runs_log_missed(scheduler, job, &missed, reason);
}

void due_runs_log_dropped(struct scheduler *scheduler, struct job *job, const struct run *run) {
    int64_t due;

    if (!run->job.origin.due[0])
        return;
    due_marks_put_run(scheduler, job, run->id, NULL);
    if ((strcmp(run->reason, "drained") == 0 || strcmp(run->reason, "backlog") == 0) &&
        schedule_parse_time(run->job.origin.due, &due) == 0)
        due_runs_log_one_missed(scheduler, job, due, run->reason);
}

void due_runs_log_clock_set(struct scheduler *scheduler, const struct job *job, usec_t now) {
    usec_t mark = (usec_t) job->schedule.mark * USEC_PER_SEC;
    struct event e = {.type = EVENT_CLOCK_SET, .step_usec = usec_sub(mark, now)};

    if (scheduler->due_runs.is_clock_logged)
        return;
    scheduler->due_runs.is_clock_logged = true;
    event_emit(scheduler->runs->events, &e,
               "the clock is %llu s behind due times that were begun: they come again",
               (unsigned long long) (e.step_usec / USEC_PER_SEC));
}
