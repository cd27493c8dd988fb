/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/scheduler.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/jobs/scheduler-internal.h"

/* --- jobs --- */

static int compare_name(const void *name, const void *job) {
    return strcmp(name, (*(struct job *const *) job)->name);
}

struct job *scheduler_find(const struct scheduler *scheduler, const char *name) {
    struct job **job = NULL;

    if (scheduler->n_jobs > 0)
        job = bsearch(name, scheduler->jobs, scheduler->n_jobs, sizeof(struct job *), compare_name);
    return job ? *job : NULL;
}

const struct job *scheduler_find_job(const struct scheduler *scheduler, const char *name) {
    return scheduler_find(scheduler, name);
}

void scheduler_save(const struct scheduler *scheduler, const struct job *job) {
    state_save_job(scheduler->state, job);
}

void scheduler_arm(struct scheduler *scheduler, struct job *job, struct run_time now) {
    usec_t next = !schedule_is_empty(&job->settings->triggers.schedule)
                      ? job->schedule.next_begin
                      : job_next(job, job->settings->triggers.every_usec, now.realtime);

    if (turns_is_shared(job)) {
        usec_t ask = turns_next(scheduler, job, now);

        next = ask < next ? ask : next;
    }
    if (!scheduler->is_started || scheduler->is_drained)
        next = USEC_INFINITY;
    if (next != USEC_INFINITY)
        next = usec_add(now.boottime, usec_sub(next, now.realtime));
    timer_heap_set(&scheduler->due, &job->due, next);
    hooks_arm(scheduler, job, now);
}

static void scheduler_on_silence(struct heap_timer *elapsed, void *userdata) {
    struct scheduler *scheduler = userdata;

    if (scheduler->is_started)
        hooks_note_time(scheduler, list_entry(elapsed, struct job, silence), scheduler->handler.now());
}

static void scheduler_on_due(struct heap_timer *elapsed, void *userdata) {
    struct scheduler *scheduler = userdata;
    struct job *job = list_entry(elapsed, struct job, due);

    if (!scheduler->is_started)
        return;
    if (!schedule_is_empty(&job->settings->triggers.schedule))
        due_runs_wake(scheduler, job);
    else
        triggers_by_every(scheduler, job, scheduler->handler.now());
}

static bool is_defined(const char *name, void *userdata) {
    return scheduler_find(userdata, name);
}

/* --- started and stopped --- */

/* Returns whether a recovered run cannot start, because the config no longer has its job. */
static bool is_useless(const struct scheduler *scheduler, const struct run *run) {
    if (run->kind != RUN_KIND_JOB || scheduler_find(scheduler, run->name))
        return false;
    if (run->state == RUN_STATE_WAITING) /* a job whose state cannot be read is still defined */
        return !settings_find_job(scheduler->settings, run->name);
    return run->state == RUN_STATE_RETRYING || run->job.queued_by_overlap;
}

void scheduler_start(struct scheduler *scheduler, struct run_time now) {
    scheduler->is_started = true;
    due_marks_settle(scheduler, now);
    scheduler_forget_open(scheduler);
    state_sweep_jobs(scheduler->state, is_defined, scheduler);
    run_table_foreach (run, scheduler->runs, RUN_STATE_RETRYING, RUN_STATE_WAITING)
        if (is_useless(scheduler, run))
            scheduler_withdraw(scheduler, run, SCHEDULER_UNDEFINED);
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        triggers_start_job(scheduler, scheduler->jobs[i], now);
}

void scheduler_stop(struct scheduler *scheduler) {
    scheduler->is_started = false;
    scheduler->is_stopped = true;
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        timer_heap_unset(&scheduler->jobs[i]->due);
        timer_heap_unset(&scheduler->jobs[i]->silence);
    }
}

void scheduler_set_drained(struct scheduler *scheduler, bool drained) {
    if (scheduler->is_drained && !drained)
        scheduler->due_runs.reason = "drained";
    scheduler->is_drained = drained;
    if (drained)
        due_runs_set_drained(scheduler);
}

void scheduler_forget_service(struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        struct job *job = scheduler->jobs[i];

        job->at_start_done = false;
        attempts_forget_service(scheduler, job);
        scheduler_save(scheduler, job);
    }
}

/* --- settings --- */

void scheduler_drop(struct scheduler *scheduler, struct job *job) {
    list_foreach_safe (run, &job->runs, struct run, job.of_job)
        list_unlink(&run->job.of_job);
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link)
        free(entry);
    list_unlink(&job->schedule.planning);
    list_unlink(&job->schedule.beginning);
    timer_heap_unset(&job->due);
    timer_heap_unset(&job->silence);
    timer_heap_unreserve(&scheduler->due);
    timer_heap_unreserve(&scheduler->silences);
    free(job);
}

/* Withdraws the runs of a job that is no longer defined, except those that have their permits. berth-runner would
 * refuse to start a waiting one, which meanwhile delays others in its queues. */
static void withdraw_unbegun(struct scheduler *scheduler, const struct job *job) {
    struct run *queued;

    while ((queued = triggers_first_queued(job)))
        scheduler_withdraw(scheduler, queued, SCHEDULER_UNDEFINED);
    list_foreach_safe (run, &job->runs, struct run, job.of_job)
        if (run->state == RUN_STATE_RETRYING || run->state == RUN_STATE_WAITING)
            scheduler_withdraw(scheduler, run, SCHEDULER_UNDEFINED);
}

static int make_job(struct scheduler *scheduler, const struct job_settings *settings, struct job **ret) {
    struct job *job = calloc(1, sizeof(*job));
    int r = job ? timer_heap_reserve(&scheduler->due) : -ENOMEM;

    if (r == 0 && (r = timer_heap_reserve(&scheduler->silences)) < 0)
        timer_heap_unreserve(&scheduler->due);
    if (r < 0) {
        free(job);
        return r;
    }
    list_init(&job->runs);
    list_init(&job->schedule.entries);
    list_init(&job->schedule.planning);
    list_init(&job->schedule.beginning);
    snprintf(job->name, sizeof(job->name), "%s", settings->name);
    job->settings = settings;
    job->last_exit_code = job->last_signal = -1;
    r = state_load_job(scheduler->state, job);
    if (r < 0) { /* the job stays unknown: it must not begin twice */
        scheduler_drop(scheduler, job);
        return r;
    }
    /* A reload brought the job, so it was not there when the service started. The next berthd must know
     * that. */
    if (scheduler->is_started) {
        job->at_start_done = settings->retry.restart == JOB_RESTART_NO;
        job->schedule.is_known = false;
        scheduler_save(scheduler, job);
    }
    *ret = job;
    return 0;
}

int scheduler_adopt(struct scheduler *scheduler, struct run *run) {
    struct job *job = run->kind == RUN_KIND_JOB ? open_find(scheduler, run->name) : NULL;

    if (job && !list_is_linked(&run->job.of_job))
        list_append(&job->runs, &run->job.of_job);
    if (job && !scheduler->is_started)
        due_begin_adopt(scheduler, job, run);
    return job ? turns_attach(job, run, scheduler->handler.now()) : 0;
}

/* Removes jobs that are no longer defined, and gives the others their new settings. */
static void keep_jobs(struct scheduler *scheduler, const struct settings *settings) {
    size_t n = 0;

    for (size_t i = 0; i < scheduler->n_jobs; i++) /* a withdrawal calls back and may look up any job */
        if (!settings_find_job(settings, scheduler->jobs[i]->name))
            withdraw_unbegun(scheduler, scheduler->jobs[i]);
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        struct job *job = scheduler->jobs[i];
        const struct job_settings *found = settings_find_job(settings, job->name);

        if (found) {
            if (job->settings->retry.restart == JOB_RESTART_NO && found->retry.restart != JOB_RESTART_NO)
                job->at_start_done = false;
            job->settings = found;
            scheduler->jobs[n++] = job;
        } else {
            due_marks_forget(scheduler, job);
            scheduler_drop(scheduler, job);
        }
    }
    scheduler->n_jobs = n;
}

/* Appends a job. */
static int add_job(struct scheduler *scheduler, const struct job_settings *settings) {
    struct job **jobs = scheduler->jobs;
    int r;

    if (scheduler->n_jobs == scheduler->n_allocated) {
        jobs = reallocarray(jobs, 2 * scheduler->n_allocated + 16, sizeof(struct job *));
        if (!jobs)
            return -ENOMEM;
        scheduler->jobs = jobs;
        scheduler->n_allocated = 2 * scheduler->n_allocated + 16;
    }
    r = make_job(scheduler, settings, &jobs[scheduler->n_jobs]);
    if (r == 0)
        scheduler->n_jobs++;
    return r;
}

int scheduler_add(struct scheduler *scheduler, const struct job_settings *settings) {
    int r = add_job(scheduler, settings);
    struct job *job;
    size_t i;

    if (r < 0)
        return r;
    i = scheduler->n_jobs - 1;
    job = scheduler->jobs[i];
    for (; i > 0 && strcmp(scheduler->jobs[i - 1]->name, job->name) > 0; i--)
        scheduler->jobs[i] = scheduler->jobs[i - 1];
    scheduler->jobs[i] = job;
    return 0;
}

static int compare_jobs(const void *a, const void *b) {
    return strcmp((*(struct job *const *) a)->name, (*(struct job *const *) b)->name);
}

static int add_jobs(struct scheduler *scheduler, const struct settings *settings) {
    size_t n_known = scheduler->n_jobs;
    int result = 0;

    for (size_t i = 0; i < settings->n_jobs; i++) {
        const struct job_settings *job = &settings->jobs[i];
        int r = 0;

        if (n_known == 0 || !bsearch(job->name, scheduler->jobs, n_known, sizeof(struct job *), compare_name))
            r = add_job(scheduler, job);
        if (r < 0) {
            journal_log(scheduler->journal, LOG_ERR,
                        "job %s is disabled until the next reload: cannot read its state: %s", job->name,
                        strerror(-r));
            result = r;
        }
    }
    if (scheduler->n_jobs > 0)
        qsort(scheduler->jobs, scheduler->n_jobs, sizeof(struct job *), compare_jobs);
    return result;
}

/* Until it is known what runs, each instance of an open template may have a run. */
static bool may_be_defined(const char *name, void *userdata) {
    const struct scheduler *scheduler = userdata;

    return scheduler_find(scheduler, name) || (!scheduler->is_started && open_may_be(scheduler, name));
}

int scheduler_update(struct scheduler *scheduler, struct settings *settings, struct run_time now) {
    int r;

    open_use_settings(scheduler, settings);
    scheduler->settings = settings;
    keep_jobs(scheduler, settings);
    r = add_jobs(scheduler, settings);
    run_table_foreach (run, scheduler->runs, RUN_STATE_RETRYING, RUN_STATE_STOPPING)
        if (scheduler_adopt(scheduler, run) < 0)
            r = -ENOMEM;
    state_sweep_jobs(scheduler->state, may_be_defined, scheduler);
    due_marks_open(scheduler);
    due_runs_use_settings(scheduler, now);
    if (scheduler->is_started)
        due_marks_settle(scheduler, now);
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        attempts_note_known(scheduler, scheduler->jobs[i], now);
        scheduler_arm(scheduler, scheduler->jobs[i], now);
        if (scheduler->is_started) /* `restart` may be new */
            attempts_start_job(scheduler, scheduler->jobs[i], now);
    }
    return r;
}

/* --- new and free --- */

int scheduler_new(struct scheduler **ret, sd_event *event, struct run_table *runs, const struct state *state,
                  struct journal *journal, const struct scheduler_handler *handler) {
    struct scheduler *scheduler = calloc(1, sizeof(*scheduler));
    int r;

    if (!scheduler)
        return -ENOMEM;
    list_init(&scheduler->lost);
    list_init(&scheduler->due_runs.doubtful);
    scheduler->event = event;
    scheduler->runs = runs;
    scheduler->state = state;
    scheduler->journal = journal;
    scheduler->handler = *handler;
    r = timer_heap_init(&scheduler->due, event, SD_EVENT_PRIORITY_NORMAL, scheduler_on_due, scheduler);
    if (r >= 0)
        r = timer_heap_init(&scheduler->silences, event, SD_EVENT_PRIORITY_NORMAL, scheduler_on_silence, scheduler);
    if (r >= 0)
        r = due_runs_init(scheduler);
    if (r < 0) {
        scheduler_free(scheduler);
        return r;
    }
    *ret = scheduler;
    return 0;
}

struct scheduler *scheduler_free(struct scheduler *scheduler) {
    if (!scheduler)
        return NULL;
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        scheduler_drop(scheduler, scheduler->jobs[i]);
    attempts_free_lost(scheduler);
    due_runs_done(scheduler);
    timer_heap_done(&scheduler->due);
    timer_heap_done(&scheduler->silences);
    free(scheduler->jobs);
    free(scheduler);
    return NULL;
}
