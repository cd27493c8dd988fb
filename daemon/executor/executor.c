/* SPDX-License-Identifier: MIT */

/* The side towards berth-runner: starts, kills, and the messages of the runner. */

#include "daemon/executor/executor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/protocol.h"
#include "base/text.h"
#include "daemon/executor/executor-internal.h"

/* --- starting and stopping --- */

/* Gives up a start that the runner never confirmed. Safe after start_due: a guard does not exec past the
 * deadline it was sent, and one that did exec has killed its command, because no berthd extended its
 * deadline. So a host that cannot start runs keeps their permits no longer than a lease. Returns false if it
 * is too early, or if there is a guard. */
static bool give_up_start(struct run *run) {
    if (run->job.guard || run->started.pid > 0 || run->job.start_due == 0 ||
        clock_boottime() < run->job.start_due)
        return false;
    if (executor_call(run->job.executor, on_not_begun, run))
        return true;
    run_set_reason(run, "berth-runner did not start it within the lease");
    executor_call(run->job.executor, on_ended, run,
                  &(struct executor_end){.result = RUN_RESULT_NOT_STARTED});
    return true;
}

static void run_on_start_overdue(struct run *run) {
    if (run->state == RUN_STATE_STARTING && !give_up_start(run))
        executor_arm_start_timeout(run);
}

/* deadline: the latest that any guard of this run can have been given. */
static void note_deadline(struct run *run, usec_t deadline) {
    bool is_there = deadline > 0 && deadline != USEC_INFINITY;

    run->job.start_due = is_there ? usec_add(deadline, run->job.executor->margin_usec) : 0;
}

void executor_note_start(struct run *run, usec_t deadline) {
    note_deadline(run, deadline);
    if (run->job.start_due > 0)
        run_arm_after_io(run, run->job.start_due, run_on_start_overdue);
    else
        executor_arm_start_timeout(run);
}

void executor_put_run(const struct executor *executor, const struct run *run, struct message_writer *w) {
    char pools[DEMANDS_TEXT_SIZE], scopes[RUN_SCOPES_SIZE];

    message_put(w, "run", run->id);
    message_put(w, "job", run->name);
    message_put(w, "hash", run->job.hash);
    message_put(w, "pools", run_format_pools(run, pools));
    message_put(w, "scopes", run_format_scopes(run, scopes));
    message_put(w, "namespace", executor->namespace);
    message_put(w, "host", executor->host);
    message_put_u64(w, "queued", run->queued.realtime);
    message_put_u64(w, "queued-boot", run->queued.boottime);
    run_origin_put(&run->job.origin, w);
}

void executor_start(struct executor *executor, struct run *run) {
    struct message_writer w;
    usec_t deadline;

    run->job.executor = executor;
    if (executor_grant_prepared(executor, run))
        return;
    deadline = executor_call(executor, get_deadline, run);
    message_begin(&w, PROTOCOL_START);
    executor_put_run(executor, run, &w);
    message_put_u64(&w, "token", run_token(run));
    message_put_u64(&w, "ticket", run_ticket(run));
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    FAILPOINT("start-sending");
    /* If the runner is not connected, runner_on_recovered() sends it later. */
    run->job.start_sent = runner_link_start(executor->runner, &w) == 0;
    executor_note_start(run, deadline);
    FAILPOINT("start-sent");
}

bool executor_may_have_begun(const struct run *run) {
    return run->job.guard || run->job.start_sent;
}

/* Returns whether the start was sent, and no guard is known. */
static bool is_unconfirmed(const struct run *run) {
    return !run->job.guard && !run->job.guard_wanted && run->started.pid == 0 && run->job.start_due > 0;
}

/* A `berth run` that was requeued may begin again while the runner hangs, so only the processes of this grant are killed. One that
 * continues without its lease gets another token than its command has, and is never requeued. */
static void kill_left(const struct run *run) {
    uint64_t token = run->kind == RUN_KIND_JOB || run->terms.on_lease_lost == ON_LEASE_LOST_STOP ? run_token(run) : 0;

    (void) (run->kind == RUN_KIND_JOB ? runner_link_kill : runner_link_reap)(run->job.executor->runner, run->id, token);
}

/* The stop has not ended in time, because the guard or `berth run` hangs or was killed. The runner kills what is left. The kill
 * is repeated until the end of the run is known: the runner may not be connected, or end before it has killed. */
static void run_on_stop_overdue(struct run *run) {
    if (run_is_over(run) || give_up_start(run))
        return;
    if (is_unconfirmed(run)) { /* there may be nothing to kill, and nothing can begin after start_due */
        run_arm_after_io(run, run->job.start_due, run_on_stop_overdue);
        return;
    }
    kill_left(run);
    run_arm_after_io(run, usec_add(clock_boottime(), STOP_SLACK), run_on_stop_overdue);
}

void executor_arm_kill(struct run *run) {
    run_arm_after_io(run, usec_add(clock_boottime(), usec_add(run->terms.stop_timeout_usec, STOP_SLACK)), run_on_stop_overdue);
}

void executor_stop(struct executor *executor, struct run *run) {
    run->job.executor = executor;
    executor_arm_kill(run);
    if (run->job.guard)
        guard_link_stop(run->job.guard, run->stop_reason);
}

void executor_kill_after(struct executor *executor, struct run *run, usec_t usec) {
    run->job.executor = executor;
    run_arm(run, usec_add(clock_boottime(), usec), run_on_stop_overdue);
}

void executor_push_deadline(struct executor *executor, struct run *run) {
    usec_t deadline = executor_call(executor, get_deadline, run);

    if (!run->job.guard || deadline == 0) /* 0: no heartbeat was answered since start */
        return;
    if (run->requeue != RUN_REQUEUE_NONE || run->stop_reason == SUPERVISE_REASON_LEASE_LOST)
        return; /* the deadline is that of another session */
    executor_guard_check(run);
    guard_link_set_deadline(run->job.guard, deadline);
    note_deadline(run, deadline);
}

pid_t executor_guard_pid(const struct run *run) {
    return run->job.guard ? guard_link_pid(run->job.guard) : 0;
}

void executor_detach(struct run *run) {
    run->job.guard = guard_link_free(run->job.guard);
}

/* --- requeued runs: one guard at a time --- */

void executor_clear(struct run *run) {
    if (run->requeue == RUN_REQUEUE_NONE)
        return;
    run->requeue = RUN_REQUEUE_CLEARING;
    run->job.start_sent = true;
    /* runner_on_recovered() sends it again to the next runner. */
    (void) runner_link_kill(run->job.executor->runner, run->id, run_token(run));
}

static void cleared(struct run *run) {
    if (run->requeue == RUN_REQUEUE_CLEARING)
        run->requeue = RUN_REQUEUE_RETURNING;
    run->job.start_sent = false;
    executor_call(run->job.executor, on_cleared, run);
}

/* --- what the runner sends --- */

static void runner_on_guard(const char *run, void *userdata) {
    executor_guard_connect(userdata, run);
}

static void runner_on_prepared(const char *run, void *userdata) {
    executor_prepared_is_there(userdata, run);
}

static void runner_on_started(const char *run, bool existed, void *userdata) {
    struct executor *executor = userdata;

    if (existed && executor_prepared_refused(executor, run))
        return;
    /* If the run has a report and no guard, the connection fails, and the runner sends the report. */
    if (run_table_find(executor->runs, run))
        executor_guard_connect(executor, run);
}

/* The runner hung and did not start the run. Starts it now, or requeues it. Returns false if it must not
 * run. */
static bool start_later(struct executor *executor, struct run *run) {
    if (run->state == RUN_STATE_STARTING && executor_call(executor, get_deadline, run) > clock_boottime()) {
        executor_start(executor, run); /* the run still holds its permits */
        return true;
    }
    if (!executor_call(executor, on_not_begun, run))
        return false;
    cleared(run);
    return true;
}

static void runner_on_refused(const char *id, const char *reason, const char *text, void *userdata) {
    struct executor *executor = userdata;
    struct run *run = run_table_find(executor->runs, id);

    if (executor_prepared_refused(executor, id) || !run || run_is_over(run))
        return;
    run->job.executor = executor;
    if (strcmp(reason, "late") == 0 && start_later(executor, run))
        return;
    run_set_reason(run, "%s: %s", reason, text);
    executor_call(executor, on_ended, run, &(struct executor_end){.result = RUN_RESULT_NOT_STARTED});
    if (strcmp(reason, "config-differs") == 0)
        executor->handler.on_config_differs(executor->handler.userdata);
}

/* Returns whether the report answers a kill of an earlier attempt. One attempt can be killed twice, because both the
 * socket and the report show that its guard is gone. */
static bool is_of_older_attempt(const struct run *run, const struct message *report) {
    uint64_t killed;

    return message_get_u64(report, "killed", &killed) == 0 &&
           (killed != run_token(run) ||
            (run->state == RUN_STATE_WAITING && run->requeue != RUN_REQUEUE_CLEARING));
}

static void runner_on_report(const struct message *report, void *userdata) {
    struct executor *executor = userdata;
    char id[ID_TEXT_SIZE];
    struct run *run;
    int r = 0;

    if (message_get_id(report, "run", id) < 0)
        return;
    run = run_table_find(executor->runs, id);
    if (run && is_of_older_attempt(run, report))
        return;
    if (!run) /* an earlier berthd was killed before it recorded the end */
        r = executor_call(executor, on_recovered, report, id, &run);
    if (r < 0 && r != -EBADMSG) { /* without an acknowledgement the runner sends the report again */
        (void) executor_call(executor, on_unrecoverable, id, r);
        return;
    }
    if (run) {
        run->job.executor = executor;
        executor_guard_drop(run);
        if (!run_is_over(run) && run->requeue != RUN_REQUEUE_CLEARING)
            executor_take_report(run, report);
    }
    (void) runner_link_forget(executor->runner, id);
    if (run && run->requeue == RUN_REQUEUE_CLEARING)
        cleared(run);
    else if (run)
        executor_clear(run);
    unidentified_guards_forget(executor, id);
    executor->handler.on_recovery_progress(executor->handler.userdata);
}

static void runner_on_reaped(const char *id, void *userdata) {
    struct executor *executor = userdata;
    struct run *run = run_table_find(executor->runs, id);

    if (!run || run->state != RUN_STATE_STOPPING || run->kind != RUN_KIND_ADHOC)
        return;
    run_disarm(run);
    executor_call(executor, on_reaped, run);
}

/* A run of an earlier berthd is unknown until its report comes. */
static void runner_on_stuck(const char *id, const char *what, void *userdata) {
    struct executor *executor = userdata;
    struct run *run = run_table_find(executor->runs, id);

    if (run && !run_is_over(run))
        executor_call(executor, on_stuck, run, what);
    else
        journal_log(executor->journal, LOG_WARNING, "run %s: killed and does not end: %s", id, what);
}

/* A guard counts even if the connection to it fails at the moment. */
static bool is_without_guard(const struct run *run) {
    return run->kind == RUN_KIND_JOB && !run->job.guard && !run->job.guard_wanted;
}

static void resume_requeued(struct run *run) {
    if (run->requeue == RUN_REQUEUE_CLEARING)
        executor_clear(run);
    else
        cleared(run); /* the start was not delivered */
}

/* The runner is connected and has sent all guards and reports. If a run should have a guard and has none,
 * its start was not delivered, or its guard ended unseen. `start` and `kill` are idempotent. */
static void runner_on_recovered(void *userdata) {
    struct executor *executor = userdata;

    executor_prepared_forget(executor);
    run_table_foreach (run, executor->runs, RUN_STATE_WAITING, RUN_STATE_WAITING)
        if (run->requeue != RUN_REQUEUE_NONE && is_without_guard(run))
            resume_requeued(run);
    run_table_foreach (run, executor->runs, RUN_STATE_STARTING, RUN_STATE_STARTING)
        if (is_without_guard(run))
            executor_start(executor, run);
    run_table_foreach (run, executor->runs, RUN_STATE_RUNNING, RUN_STATE_STOPPING)
        if (is_without_guard(run))
            (void) runner_link_kill(executor->runner, run->id, run_token(run));
    executor->is_runner_recovered = true;
    executor->handler.on_recovery_progress(executor->handler.userdata);
}

static void runner_on_lost(void *userdata) {
    struct executor *executor = userdata;

    executor_prepared_forget(executor);
    journal_log(executor->journal, LOG_WARNING,
                "berth-runner: not reachable; running jobs go on, new ones wait");
}

/* --- new and free --- */

int executor_new(struct executor **ret, sd_event *event, struct journal *journal, struct run_table *runs,
                 const struct executor_options *options, const struct executor_handler *handler) {
    _cleanup_(executor_freep) struct executor *executor = calloc(1, sizeof(*executor));
    int r;

    if (!executor)
        return -ENOMEM;
    list_init(&executor->unidentified_guards);
    list_init(&executor->prepared);
    executor->event = sd_event_ref(event);
    executor->journal = journal;
    executor->runs = runs;
    executor->handler = *handler;
    executor->margin_usec = options->margin_usec;
    executor->silence_usec = options->silence_usec;
    snprintf(executor->namespace, sizeof(executor->namespace), "%s", options->namespace);
    snprintf(executor->host, sizeof(executor->host), "%s", options->host);
    if (text_copy(&executor->directory, options->directory) < 0 ||
        text_copy(&executor->with_runner, options->with_runner) < 0 ||
        text_copy(&executor->config, options->config) < 0)
        return -ENOMEM;
    r = executor_guards_init(executor);
    if (r >= 0)
        r = executor_prepared_init(executor);
    if (r < 0)
        return r;
    *ret = steal_pointer(&executor);
    return 0;
}

struct executor *executor_free(struct executor *executor) {
    if (!executor)
        return NULL;
    executor->runner = runner_link_free(executor->runner);
    unidentified_guards_free(executor);
    executor_prepared_forget(executor);
    defer_done(&executor->prepare);
    timer_done(&executor->retry_timer);
    timer_done(&executor->answers_timer);
    sd_event_unref(executor->event);
    free(executor->directory);
    free(executor->with_runner);
    free(executor->config);
    free(executor);
    return NULL;
}

int executor_connect(struct executor *executor) {
    const struct runner_link_handler handler = {
        .on_recovered = runner_on_recovered,
        .on_guard = runner_on_guard,
        .on_started = runner_on_started,
        .on_prepared = runner_on_prepared,
        .on_refused = runner_on_refused,
        .on_stuck = runner_on_stuck,
        .on_reaped = runner_on_reaped,
        .on_report = runner_on_report,
        .on_lost = runner_on_lost,
        .userdata = executor,
    };

    return runner_link_new(&executor->runner, executor->event, executor->directory, executor->with_runner,
                           executor->with_runner ? executor->config : NULL, &handler);
}

bool executor_is_recovered(const struct executor *executor) {
    return executor->is_runner_recovered && list_is_empty(&executor->unidentified_guards);
}

bool executor_is_connected(const struct executor *executor) {
    return runner_link_is_up(executor->runner);
}
