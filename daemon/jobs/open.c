/* SPDX-License-Identifier: MIT */

/* Instances that an open template does not list (open-instances). Such a job is made when a run of it is
 * requested, or found at start, and is forgotten with the last of its runs. */

#include "base/job-name.h"
#include "daemon/jobs/scheduler-internal.h"

static bool is_listed(const struct scheduler *scheduler, const struct job *job) {
    const struct settings *settings = scheduler->settings;

    return job->settings >= settings->jobs && job->settings < settings->jobs + settings->n_jobs;
}

int scheduler_open(struct scheduler *scheduler, const char *name, struct settings_errors *errors) {
    const struct job_settings *settings;
    int r;

    if (scheduler_find(scheduler, name))
        return 0;
    if (!settings_find_open_template(scheduler->settings, name))
        return SETTINGS_E_UNKNOWN;
    scheduler_forget_open(scheduler);
    r = settings_open_job(scheduler->settings, name, &settings, errors);
    if (r != 0)
        return r;
    r = scheduler_add(scheduler, settings);
    if (r < 0) {
        settings_close_job(scheduler->settings, name);
        return r;
    }
    due_marks_open(scheduler);
    attempts_note_known(scheduler, scheduler_find(scheduler, name), scheduler->handler.now());
    return 0;
}

static void log_errors(const struct scheduler *scheduler, const char *name, struct settings_errors *errors) {
    for (size_t i = 0; i < errors->n; i++)
        journal_log(scheduler->journal, LOG_ERR, "%s; %s is not defined any more", errors->lines[i], name);
    settings_errors_done(errors);
}

struct job *open_find(struct scheduler *scheduler, const char *name) {
    struct settings_errors errors = {};
    int r = scheduler_open(scheduler, name, &errors);

    log_errors(scheduler, name, &errors);
    if (r < 0)
        journal_log(scheduler->journal, LOG_ERR, "job %s is not known: %s", name, strerror(-r));
    return scheduler_find(scheduler, name);
}

bool open_may_be(const struct scheduler *scheduler, const char *name) {
    return job_name_instance(name) && settings_find_open_template(scheduler->settings, name);
}

void open_use_settings(struct scheduler *scheduler, struct settings *settings) {
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        struct job *job = scheduler->jobs[i];
        struct settings_errors errors = {};
        const struct job_settings *found;

        if (is_listed(scheduler, job) && list_is_empty(&job->runs))
            continue;
        if (settings_open_job(settings, job->name, &found, &errors) < 0)
            journal_log(scheduler->journal, LOG_ERR, "job %s: out of memory, it is not known any more",
                        job->name);
        log_errors(scheduler, job->name, &errors);
    }
}

/* --- forgotten --- */

static void mark_kept(const struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        scheduler->jobs[i]->is_kept = is_listed(scheduler, scheduler->jobs[i]);
    run_table_foreach (run, scheduler->runs, RUN_STATE_RETRYING, RUN_STATE_DONE) {
        struct job *job = run->kind == RUN_KIND_JOB ? scheduler_find(scheduler, run->name) : NULL;

        if (job)
            job->is_kept = true;
    }
}

static void forget(struct scheduler *scheduler, struct job *job) {
    char name[NAME_MAX_LENGTH + 1];

    memcpy(name, job->name, sizeof(name));
    due_marks_forget(scheduler, job);
    scheduler_drop(scheduler, job);
    state_remove_job(scheduler->state, name);
    settings_close_job(scheduler->settings, name);
}

void scheduler_forget_open(struct scheduler *scheduler) {
    size_t n = 0;

    if (!scheduler->is_started || scheduler->settings->open.n_jobs == 0)
        return; /* before the start it is not known what runs */
    mark_kept(scheduler);
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        if (scheduler->jobs[i]->is_kept)
            scheduler->jobs[n++] = scheduler->jobs[i];
        else
            forget(scheduler, scheduler->jobs[i]);
    }
    scheduler->n_jobs = n;
}
