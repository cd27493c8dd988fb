/* SPDX-License-Identifier: MIT */

/* Noted due times of jobs that are not shared: each begins a run, queues one, or is skipped. */

#include <stdlib.h>

#include "base/failpoint.h"
#include "base/text.h"
#include "daemon/jobs/scheduler-internal.h"

void due_begin_take_entry(struct scheduler *scheduler, struct job *job, struct due_entry *entry,
                          bool is_queued) {
    if (entry->due > job->schedule.begun)
        job->schedule.begun = entry->due;
    if (!is_queued) /* a queued one is remembered over a reboot */
        due_marks_put_run(scheduler, job, entry->run, NULL);
    list_unlink(&entry->link);
    free(entry);
}

static struct run *find_run(const struct job *job, const char *id) {
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (strcmp(run->id, id) == 0)
            return run;
    return NULL;
}

/* --- runs of an earlier berthd --- */

bool due_begin_is_proven_by(const struct job *job, const struct run *run) {
    enum run_trigger trigger = run->job.origin.trigger;

    return (trigger == RUN_TRIGGER_SCHEDULE || trigger == RUN_TRIGGER_BACKLOG) && run->job.origin.due[0] &&
           !turns_is_shared(job);
}

void due_begin_adopt(struct scheduler *scheduler, struct job *job, const struct run *run) {
    int64_t due;

    if (!job->schedule.is_known || !due_begin_is_proven_by(job, run) ||
        schedule_parse_time(run->job.origin.due, &due) < 0)
        return;
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link)
        if (strcmp(entry->run, run->id) == 0)
            due_begin_take_entry(scheduler, job, entry, run->job.queued_by_overlap);
    if (due > job->schedule.mark) /* the disk was broken when it began */
        due_zones_set_mark(scheduler, job, due);
    if (due > job->schedule.begun)
        job->schedule.begun = due;
}

/* --- begun --- */

/* Makes room for the due time that was queued last. */
static void drop_oldest(struct scheduler *scheduler, const struct job *job) {
    struct run *oldest;

    if (job_count_queued(job) > job->settings->triggers.backlog && (oldest = triggers_first_queued(job)))
        scheduler_withdraw(scheduler, oldest, "backlog");
}

static enum job_decision decide(const struct job *job, const struct due_entry *entry, size_t n) {
    size_t n_queued = job_count_queued(job);

    if (entry->joins_backlog || (n_queued > 0 && job->settings->triggers.overlap == JOB_OVERLAP_SKIP))
        return n + n_queued == 0 && !triggers_has_retrying(job) ? JOB_DECISION_BEGIN : JOB_DECISION_QUEUE;
    return job_decide(&job->settings->triggers, n, n_queued);
}

enum run_trigger due_trigger(const struct job *job) {
    return job->settings->triggers.schedule.period > 0 ? RUN_TRIGGER_EVERY : RUN_TRIGGER_SCHEDULE;
}

/* Returns what the schedule's entry of this due time sets, or NULL. */
static char *const *find_set(const struct job *job, int64_t due) {
    const struct schedule *schedule = &job->settings->triggers.schedule;
    struct schedule_due next;

    for (size_t i = 0; i < schedule->n_entries; i++)
        if (schedule->entries[i].set)
            return schedule_next(schedule, job->schedule.zone->zone, due - 1, &next) && next.at == due
                       ? schedule->entries[next.entry].set
                       : NULL;
    return NULL;
}

bool due_begin_make_run(struct scheduler *scheduler, struct job *job, const struct due_entry *entry,
                        struct run_time now, struct run **ret) {
    char **set;

    if (run_set_copy(find_set(job, entry->due), &set) < 0)
        return false;
    if (triggers_add_run(scheduler, job, entry->run, RUN_STATE_PENDING, now, ret) < 0) {
        text_free_list(set);
        return false;
    }
    (*ret)->job.origin.set = set;
    (*ret)->job.origin.trigger = due_trigger(job);
    schedule_format(job->schedule.zone->zone, entry->due, (*ret)->job.origin.due);
    (*ret)->job.due_realtime = usec_add((usec_t) entry->due * USEC_PER_SEC, job->schedule.splay_usec);
    return true;
}

/* Returns false without memory; then the entry stays. */
static bool begin_entry(struct scheduler *scheduler, struct job *job, struct due_entry *entry,
                        struct run_time now) {
    bool joins = entry->joins_backlog || job_count_queued(job) > 0;
    enum job_decision decision;
    char due[SCHEDULE_TEXT_SIZE];
    struct run *other, *run;

    decision = decide(job, entry, scheduler_count_runs(scheduler, job->name, &other));
    schedule_format(job->schedule.zone->zone, entry->due, due);
    if (decision == JOB_DECISION_SKIP) {
        triggers_log_skipped(scheduler, job, RUN_TRIGGER_SCHEDULE, due, other);
        due_begin_take_entry(scheduler, job, entry, false);
        scheduler_save(scheduler, job);
        return true;
    }
    if (!due_begin_make_run(scheduler, job, entry, now, &run))
        return false;
    run->job.queued_by_overlap = decision != JOB_DECISION_BEGIN;
    if (!joins)
        attempts_supersede(scheduler, job);
    if (joins)
        run->job.origin.trigger = RUN_TRIGGER_BACKLOG;
    job->last_trigger_realtime = now.realtime;
    due_begin_take_entry(scheduler, job, entry, decision != JOB_DECISION_BEGIN);
    if (decision == JOB_DECISION_BEGIN) {
        scheduler_begin(scheduler, run);
        FAILPOINT(joins ? "backlog-begun" : "due-begun");
        return true;
    }
    if (decision == JOB_DECISION_QUEUE)
        drop_oldest(scheduler, job);
    triggers_queue(scheduler, run);
    scheduler_save(scheduler, job);
    if (decision == JOB_DECISION_REPLACE)
        triggers_replace(scheduler, job, run);
    return true;
}

bool due_begin_entries(struct scheduler *scheduler, struct job *job, struct run_time now) {
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link) {
        if (entry->missed.count > 0 || entry->is_open) { /* the job was shared before a reload */
            due_runs_log_missed(scheduler, job, &entry->missed, "late");
            due_begin_take_entry(scheduler, job, entry, false);
        } else if (find_run(job, entry->run)) { /* it asked for its turn before a reload */
            due_begin_take_entry(scheduler, job, entry, false);
        } else if (!begin_entry(scheduler, job, entry, now)) {
            return false;
        }
    }
    return true;
}
