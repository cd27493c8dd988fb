/* SPDX-License-Identifier: MIT */

/* Jobs as clients see, start and stop them. */

#include <string.h>

#include "base/job-name.h"
#include "daemon/coming.h"
#include "daemon/manager-internal.h"

int manager_open_job(struct manager *m, const char *job, struct settings_errors *errors) {
    return scheduler_open(m->scheduler, job, errors);
}

void manager_forget_open(struct manager *m) {
    scheduler_forget_open(m->scheduler);
}

int manager_start_job(struct manager *m, const char *job, char *const *set, struct run **ret) {
    int k;

    if (m->phase >= MANAGER_PHASE_STOPPING)
        return MANAGER_E_STOPPING;
    k = scheduler_trigger(m->scheduler, job, set, manager_now(), ret);
    switch (k) {
    case SCHEDULER_E_UNKNOWN:
        return MANAGER_E_UNKNOWN;
    case SCHEDULER_E_SKIPPED:
        return MANAGER_E_SKIPPED;
    case SCHEDULER_E_DRAINED:
        return MANAGER_E_DRAINED;
    default:
        return k;
    }
}

static void get_schedule(const struct job *job, struct manager_job *ret) {
    if (!job->schedule.zone || schedule_is_empty(&job->settings->triggers.schedule))
        return;
    ret->zone = shared_zone_get(job->schedule.zone);
    ret->zone_error = ret->zone ? NULL : job->schedule.zone->error;
    ret->n_missed = job->schedule.n_missed;
    ret->last_missed = job->schedule.last_missed;
    if (job->schedule.next_begin == USEC_INFINITY)
        return;
    ret->next_realtime = job->schedule.next_begin;
    ret->next_due = (int64_t) (usec_sub(job->schedule.next_begin, job->schedule.splay_usec) / USEC_PER_SEC);
}

const char *manager_state_error(const struct manager *m) {
    return scheduler_state_error(m->scheduler);
}

void manager_get_job(struct manager *m, const struct job_settings *settings, struct manager_job *ret) {
    const struct job *job = scheduler_find_job(m->scheduler, settings->name);

    *ret = (struct manager_job) {.settings = settings, .last_exit_code = -1, .last_signal = -1};
    ret->n_runs = scheduler_count_runs(m->scheduler, settings->name, &ret->run);
    if (!job)
        return;
    ret->n_queued = job_count_queued(job);
    ret->n_runs += ret->n_queued;
    if (!m->drained)
        get_schedule(job, ret);
    ret->last_started_realtime = job->last_started_realtime;
    ret->last_ended_realtime = job->last_ended_realtime;
    ret->last_result = job->last_result;
    memcpy(ret->last_run, job->last_run, sizeof(ret->last_run));
    ret->last_token = job->last_token;
    ret->last_exit_code = job->last_exit_code;
    ret->last_signal = job->last_signal;
    ret->is_broken = job->attempts.health.is_broken;
    ret->is_stopped = job->attempts.is_stopped && settings->retry.restart != JOB_RESTART_NO;
    ret->n_bad = job->attempts.health.n_bad;
    ret->last_success_realtime = job->attempts.health.last_good;
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (!ret->run && run->state == RUN_STATE_RETRYING)
            ret->run = run;
    if (settings->triggers.every_usec != USEC_INFINITY && schedule_is_empty(&settings->triggers.schedule) &&
        !m->drained)
        ret->next_realtime = coming_by_every(job, clock_realtime());
}

int manager_list_coming(struct manager *m, const char *name, usec_t from, size_t count, struct coming **ret, size_t *ret_n) {
    const struct job *job = name ? scheduler_find_job(m->scheduler, name) : NULL;

    if (name && !job)
        return MANAGER_E_UNKNOWN;
    return coming_list(m->scheduler, job, from, clock_realtime(), count, ret, ret_n);
}

static bool is_of(const struct run *r, const char *target) {
    return r->kind == RUN_KIND_JOB && (strcmp(r->name, target) == 0 || job_name_matches(target, r->name));
}

int manager_stop_target(struct manager *m, const char *target, void (*each)(struct run *run, void *userdata), void *userdata) {
    struct run *run = manager_find_run(m, target);

    if (run) {
        if (!run_is_over(run))
            each(run, userdata);
        manager_stop_run(run, "stopped");
        return 0;
    }
    if (!settings_find_job(m->settings, target) && !settings_find_instance(m->settings, target) &&
        !settings_find_open_template(m->settings, target))
        return id_is_valid(target) && manager_is_recovering(m) ? MANAGER_E_RECOVERING : MANAGER_E_UNKNOWN;
    run_table_foreach(r, &m->runs, RUN_STATE_STOPPING, RUN_STATE_STOPPING) /* before others enter this state */
        if (is_of(r, target))
            each(r, userdata);
    run_table_foreach(r, &m->runs, RUN_STATE_RETRYING, RUN_STATE_RUNNING)
        if (is_of(r, target)) {
            each(r, userdata);
            manager_stop_run(r, "stopped");
        }
    return manager_is_recovering(m) ? MANAGER_E_RECOVERING : 0;
}
