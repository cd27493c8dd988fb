/* SPDX-License-Identifier: MIT */

/* Due times of schedules. A wake-up plans (daemon/jobs/due.h), notes the due times to begin with the ids of
 * their runs, and waits until these notes are on the disk. Then each due time begins, is queued, or is
 * skipped. If berthd is killed between any two steps, each still gets one run: the next berthd finds the
 * run's own record or the noted due time, or plans it again. */

#include <stdlib.h>

#include "base/failpoint.h"
#include "daemon/jobs/scheduler-internal.h"

#define SLICE (20 * USEC_PER_MSEC)                    /* thousands of jobs may be due at once */
#define WORK_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10) /* as calls of clients, answered between slices */
#define AT_ONCE 1                                     /* boottime */
#define LATER USEC_PER_SEC                            /* without memory */

static bool has_schedule(const struct job *job) {
    return !schedule_is_empty(&job->settings->triggers.schedule);
}

static bool is_active(const struct scheduler *scheduler) {
    return scheduler->is_started && !scheduler->is_drained;
}

static void move(struct list *list, struct list *link) {
    list_unlink(link);
    list_append(list, link);
}

/* --- planning --- */

static bool has_entry_of(const struct job *job, int64_t due) {
    list_foreach (entry, &job->schedule.entries, struct due_entry, link)
        if (entry->due == due)
            return true;
    return false;
}

/* Notes the due times to begin. On a negative errno, those not noted are planned again. */
static int note_begun(struct scheduler *scheduler, struct job *job, struct due_plan *plan) {
    bool joins = plan->n_begun > 1 || !list_is_empty(&job->schedule.entries);

    for (size_t i = 0; i < plan->n_begun; i++) {
        struct due_entry entry = {.due = plan->begun[i].at, .joins_backlog = joins};
        int r;

        if (scheduler->due_runs.is_first_plan && has_entry_of(job, entry.due)) /* of an earlier berthd */
            continue;
        if (turns_is_shared(job) && turns_is_asked(job, entry.due)) /* asked before the clock was set back */
            continue;
        id_make(entry.run);
        r = due_marks_add_entry(scheduler, job, &entry);
        if (r < 0) {
            plan->mark = plan->begun[i].at - 1;
            return r;
        }
    }
    return 0;
}

static void retry_later(struct scheduler *scheduler, struct job *job, struct run_time now) {
    journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, a due time begins later", job->name);
    job->schedule.next_begin = usec_add(now.realtime, LATER);
}

static void begin_when_synced(struct scheduler *scheduler, struct job *job) {
    struct due_runs *due_runs = &scheduler->due_runs;

    job->schedule.sync = jobs_file_sync(due_runs->jobs_file);
    move(job->schedule.sync > 0 ? &due_runs->syncing : &due_runs->beginning, &job->schedule.beginning);
}

void due_runs_on_synced(uint64_t sync, void *userdata) {
    struct scheduler *scheduler = userdata;

    FAILPOINT("due-synced");
    list_foreach_safe (job, &scheduler->due_runs.syncing, struct job, schedule.beginning)
        if (job->schedule.sync <= sync) {
            job->schedule.sync = 0;
            move(&scheduler->due_runs.beginning, &job->schedule.beginning);
        }
    /* A wake-up syncs. Without work, each write that fails would lead to the next one at once. */
    if (!list_is_empty(&scheduler->due_runs.beginning))
        timer_set(&scheduler->due_runs.work, AT_ONCE);
}

/* Notes missed due times of a shared job: another host may have begun them. */
static int note_missed(struct scheduler *scheduler, struct job *job, struct due_plan *plan, const char *reason) {
    int r = turns_note_missed(scheduler, job, &plan->missed, reason);

    return r < 0 ? r : turns_note_missed(scheduler, job, &plan->surplus, "backlog");
}

static void use_plan(struct scheduler *scheduler, struct job *job, struct due_plan *plan,
                     struct run_time now) {
    const char *reason = scheduler->due_runs.reason;
    int r = 0;

    if (plan->clock_was_set)
        due_runs_log_clock_set(scheduler, job, now.realtime);
    if (turns_is_shared(job)) {
        r = note_missed(scheduler, job, plan, reason);
    } else {
        due_runs_log_missed(scheduler, job, &plan->missed, reason);
        due_runs_log_missed(scheduler, job, &plan->surplus, "backlog");
    }
    job->schedule.next_begin = plan->next;
    if (r == 0)
        r = note_begun(scheduler, job, plan);
    else
        plan->mark = job->schedule.mark;
    if (plan->mark != job->schedule.mark)
        due_zones_set_mark(scheduler, job, plan->mark);
    if (r < 0)
        retry_later(scheduler, job, now);
    if (!list_is_empty(&job->schedule.entries))
        begin_when_synced(scheduler, job);
    else if (plan->missed.count > 0 || plan->clock_was_set)
        scheduler_save(scheduler, job);
}

static void plan_job(struct scheduler *scheduler, struct job *job, struct run_time now) {
    const struct job_triggers *triggers = &job->settings->triggers;
    struct due_terms terms = {
        .schedule = &triggers->schedule,
        .splay_usec = job->schedule.splay_usec,
        .catch_up_usec = triggers->catch_up_usec,
        .backlog = triggers->backlog,
    };
    struct due_plan plan;

    terms.zone = shared_zone_get(job->schedule.zone);
    if (!terms.zone || !job->schedule.is_known)
        return;
    due_zones_check_mark(scheduler, job);
    if (due_plan(&terms, job->schedule.mark, now.realtime, &plan) < 0) {
        retry_later(scheduler, job, now);
    } else {
        use_plan(scheduler, job, &plan, now);
        due_plan_done(&plan);
    }
    scheduler_arm(scheduler, job, now);
}

/* --- the work of a wake-up --- */

static void begin_job(struct scheduler *scheduler, struct job *job, struct run_time now) {
    if (!shared_zone_get(job->schedule.zone)) /* since a reload it cannot be read; the entries wait for it */
        return;
    if (!(turns_is_shared(job) ? turns_begin(scheduler, job, now) : due_begin_entries(scheduler, job, now))) {
        retry_later(scheduler, job, now);
        scheduler_arm(scheduler, job, now);
    }
}

static void due_runs_on_work(void *userdata) {
    struct scheduler *scheduler = userdata;
    struct due_runs *due_runs = &scheduler->due_runs;
    struct run_time now = scheduler->handler.now();
    usec_t end = usec_add(now.boottime, SLICE);
    struct job *job;

    while (is_active(scheduler) && scheduler->handler.now().boottime < end &&
           (job = list_first(&due_runs->planning, struct job, schedule.planning))) {
        list_unlink(&job->schedule.planning);
        plan_job(scheduler, job, now);
    }
    if (list_is_empty(&due_runs->planning)) {
        due_runs->reason = "late";
        due_runs->is_first_plan = due_runs->is_clock_logged = false;
    }
    while (is_active(scheduler) && scheduler->handler.now().boottime < end &&
           (job = list_first(&due_runs->beginning, struct job, schedule.beginning))) {
        list_unlink(&job->schedule.beginning);
        begin_job(scheduler, job, now);
    }
    (void) jobs_file_sync(due_runs->jobs_file);
    if (is_active(scheduler) &&
        (!list_is_empty(&due_runs->planning) || !list_is_empty(&due_runs->beginning)))
        timer_set(&due_runs->work, AT_ONCE);
}

void due_runs_wake(struct scheduler *scheduler, struct job *job) {
    move(&scheduler->due_runs.planning, &job->schedule.planning);
    timer_set(&scheduler->due_runs.work, AT_ONCE);
}

void due_runs_wake_all(struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        if (has_schedule(scheduler->jobs[i]))
            due_runs_wake(scheduler, scheduler->jobs[i]);
}

/* Timers are on CLOCK_BOOTTIME, so those of times on the wall clock are set again. */
static void due_runs_on_clock(void *userdata) {
    struct scheduler *scheduler = userdata;

    scheduler->due_runs.reason = "clock-set";
    due_runs_wake_all(scheduler);
    for (size_t i = 0; scheduler->is_started && i < scheduler->n_jobs; i++)
        hooks_note_time(scheduler, scheduler->jobs[i], scheduler->handler.now());
}

/* --- started and drained --- */

/* Drops due times that an earlier berthd noted and that are no longer fresh. */
static void check_entries(struct scheduler *scheduler, struct job *job, struct run_time now) {
    usec_t age = job->settings->triggers.catch_up_usec;

    if (turns_is_shared(job)) { /* another host may have begun them: Redis decides */
        turns_note_known(scheduler, job, job->schedule.begun);
        return;
    }
    if (age < DUE_ALWAYS_FRESH)
        age = DUE_ALWAYS_FRESH;
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link) {
        usec_t begin = usec_add((usec_t) entry->due * USEC_PER_SEC, job->schedule.splay_usec);

        entry->joins_backlog = job->schedule.entries.next != job->schedule.entries.prev;
        if (now.realtime > begin && now.realtime - begin > age &&
            !run_table_find(scheduler->runs, entry->run)) {
            due_runs_log_one_missed(scheduler, job, entry->due, "late");
            due_begin_take_entry(scheduler, job, entry, false);
        }
    }
}

void due_runs_start_job(struct scheduler *scheduler, struct job *job) {
    if (!has_schedule(job) || scheduler->is_drained)
        return;
    check_entries(scheduler, job, scheduler->handler.now());
    if (!list_is_empty(&job->schedule.entries) && shared_zone_get(job->schedule.zone) &&
        job->schedule.sync == 0)
        move(&scheduler->due_runs.beginning, &job->schedule.beginning);
    due_runs_wake(scheduler, job);
}

void due_runs_set_drained(struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        struct job *job = scheduler->jobs[i];
        bool has_entries = !list_is_empty(&job->schedule.entries);

        if (turns_is_shared(job)) { /* this host asks for them at the undrain */
            turns_hold_back(job, "drained");
            continue;
        }
        list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link) {
            due_runs_log_one_missed(scheduler, job, entry->due, "drained");
            due_begin_take_entry(scheduler, job, entry, false);
        }
        list_unlink(&job->schedule.beginning);
        if (has_entries)
            scheduler_save(scheduler, job);
    }
}

/* --- settings --- */

static void prepare(struct scheduler *scheduler) {
    struct due_runs *due_runs = &scheduler->due_runs;

    if (due_runs->clock.source)
        return;
    if (clock_watch_init(&due_runs->clock, scheduler->event, due_runs_on_clock, scheduler) < 0)
        journal_log(scheduler->journal, LOG_ERR,
                    "cannot watch the clock: after it is set, due times and max-silence may come late");
}

void due_runs_use_settings(struct scheduler *scheduler, struct run_time now) {
    due_zones_use_settings(scheduler, now);
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        struct job *job = scheduler->jobs[i];

        if (has_schedule(job) || job->settings->hooks.max_silence_usec != USEC_INFINITY)
            prepare(scheduler);
        if (has_schedule(job)) {
            due_runs_wake(scheduler, job);
        } else if (job->schedule.is_known) { /* the job has no schedule any more */
            list_unlink(&job->schedule.planning);
            list_unlink(&job->schedule.beginning);
            due_marks_forget_schedule(scheduler, job);
            scheduler_save(scheduler, job);
        }
    }
    (void) jobs_file_sync(scheduler->due_runs.jobs_file);
}

/* --- new and free --- */

int due_runs_init(struct scheduler *scheduler) {
    struct due_runs *due_runs = &scheduler->due_runs;
    int r;

    list_init(&due_runs->planning);
    list_init(&due_runs->beginning);
    list_init(&due_runs->syncing);
    due_runs->reason = "late";
    due_runs->is_first_plan = true;
    r = timer_init(&due_runs->work, scheduler->event, WORK_PRIORITY, due_runs_on_work, scheduler);
    if (r == 0)
        r = timer_init(&due_runs->hourly, scheduler->event, SD_EVENT_PRIORITY_NORMAL, due_zones_on_hour,
                       scheduler);
    return r;
}

void due_runs_done(struct scheduler *scheduler) {
    struct due_runs *due_runs = &scheduler->due_runs;

    due_runs->jobs_file = jobs_file_close(due_runs->jobs_file);
    list_foreach_safe (doubtful, &due_runs->doubtful, struct doubtful_key, link)
        free(doubtful);
    clock_watch_done(&due_runs->clock);
    timer_done(&due_runs->hourly);
    timer_done(&due_runs->work);
    zones_done(&due_runs->zones);
}
