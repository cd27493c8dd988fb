/* SPDX-License-Identifier: MIT */

/* Handles what executor and adhoc report about runs. */

#include "base/failpoint.h"
#include "daemon/manager-internal.h"

static usec_t run_get_deadline(const struct run *r, _unused_ void *userdata) {
    return manager_run_deadline(r);
}

static usec_t job_get_timeout(const struct run *r, void *userdata) {
    const struct manager *m = userdata;
    const struct job_settings *job = settings_find_job(m->settings, r->name);

    return job ? job->timeout_usec : USEC_INFINITY;
}

static void run_on_started(struct run *r, pid_t pid, usec_t started, _unused_ void *userdata) {
    manager_run_started(r, pid, started);
}

static void job_on_stopping(struct run *r, enum supervise_reason reason, _unused_ void *userdata) {
    run_set_reason(r, "%s", supervise_reason_name(reason));
    run_log_stopping(r, reason == SUPERVISE_REASON_LEASE_LOST ? EVENT_LEASE_LOST : EVENT_STOPPING);
    run_enter(r, RUN_STATE_STOPPING);
}

static void run_on_stuck(struct run *r, const char *what, _unused_ void *userdata) {
    run_set_stuck(r, what);
    run_log_stuck(r, what);
    run_changed(r);
}

static void job_on_silent(struct run *r, const char *what, _unused_ void *userdata) {
    run_set_stuck(r, what);
    if (what)
        run_log_guard_silent(r, what);
    run_changed(r);
}

static void adhoc_on_reaped(struct run *r, _unused_ void *userdata) {
    adhoc_reaped(r);
}

static bool run_on_not_begun(struct run *r, _unused_ void *userdata) {
    return manager_run_requeue(r);
}

static void job_on_cleared(struct run *r, _unused_ void *userdata) {
    manager_requeue_continue(r);
}

static void log_job_end(const struct run *r, const struct executor_end *end) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = run_event(r, EVENT_GUARD_DIED, pools);

    if (end->result == RUN_RESULT_GUARD_DIED)
        run_log(r, &e, "the guard of %s died; berth-runner killed the rest of its processes", r->name);
    if (end->is_fenced)
        run_log_fenced(r, end->spare_usec);
    run_log_exited(r, end->result);
}

static void job_on_ended(struct run *r, const struct executor_end *end, _unused_ void *userdata) {
    struct executor_end judged = *end;

    judged.result = scheduler_judge(manager_of(r)->scheduler, r, end->result);
    r->requeue = RUN_REQUEUE_NONE;
    if (!scheduler_is_end_logged(manager_of(r)->scheduler, r))
        log_job_end(r, &judged);
    FAILPOINT("exited-logged");
    manager_run_end(r, judged.result);
}

static void job_on_config_differs(void *userdata) {
    manager_config_differs(userdata);
}

const struct executor_handler manager_executor_handler = {
    .get_deadline = run_get_deadline,
    .get_timeout = job_get_timeout,
    .on_started = run_on_started,
    .on_stopping = job_on_stopping,
    .on_stuck = run_on_stuck,
    .on_reaped = adhoc_on_reaped,
    .on_silent = job_on_silent,
    .on_not_begun = run_on_not_begun,
    .on_cleared = job_on_cleared,
    .on_ended = job_on_ended,
    .on_recovered = manager_recover_job_run,
    .on_unrecoverable = manager_recover_run_failed,
    .on_recovery_progress = manager_recover_progress,
    .on_config_differs = job_on_config_differs,
};

static void adhoc_on_client_gone(struct run *r, _unused_ void *userdata) {
    manager_run_withdraw(r, RUN_RESULT_STOPPED, "its client has gone");
}

static void adhoc_on_ended(struct run *r, enum run_result result, _unused_ void *userdata) {
    manager_run_end(r, result);
}

const struct adhoc_handler manager_adhoc_handler = {
    .get_deadline = run_get_deadline,
    .on_started = run_on_started,
    .on_stuck = run_on_stuck,
    .on_not_begun = run_on_not_begun,
    .on_client_gone = adhoc_on_client_gone,
    .on_ended = adhoc_on_ended,
    .on_recovered = manager_recover_adhoc_run,
    .on_unrecoverable = manager_recover_hold_failed,
};
