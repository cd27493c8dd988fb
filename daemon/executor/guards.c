/* SPDX-License-Identifier: MIT */

/* Connections to the guards of known runs: messages of guards, and reconnecting. */

#include <errno.h>
#include <string.h>

#include "base/failpoint.h"
#include "daemon/executor/executor-internal.h"

void executor_guard_drop(struct run *run) {
    run->job.guard = guard_link_free(run->job.guard);
    run->job.guard_wanted = false;
}

/* --- what guards send --- */

static void guard_on_started(_unused_ struct guard_link *guard, const struct message *started,
                             void *userdata) {
    struct run *run = userdata;
    uint64_t pid = 0, at = 0;

    if (run->started.pid == 0 && !run_is_over(run) && message_get_u64(started, "pid", &pid) == 0 &&
        message_get_u64(started, "started", &at) == 0) {
        executor_call(run->job.executor, on_started, run, (pid_t) pid, at);
        executor_arm_timeout(run, started);
    }
}

static void guard_on_state(struct guard_link *guard, const struct message *state, void *userdata) {
    struct run *run = userdata;
    bool is_requeued = run->requeue != RUN_REQUEUE_NONE;

    /* The state repeats a `started` that was sent before this connection. */
    guard_on_started(guard, state, run);
    /* The stop comes before the deadline: a guard that waits for a deadline would start the command. */
    if (run->stop_reason != SUPERVISE_REASON_NONE || is_requeued)
        guard_link_stop(guard, is_requeued ? SUPERVISE_REASON_LEASE_LOST : run->stop_reason);
    executor_push_deadline(run->job.executor, run);
}

static void guard_on_stopping(_unused_ struct guard_link *guard, enum supervise_reason reason,
                              void *userdata) {
    struct run *run = userdata;

    if (run->state != RUN_STATE_RUNNING && run->state != RUN_STATE_STARTING)
        return; /* berthd requested the stop and has logged it */
    executor_call(run->job.executor, on_stopping, run, reason);
    executor_arm_kill(run);
}

static void guard_on_report(struct guard_link *guard, const struct message *report, void *userdata) {
    struct run *run = userdata;

    if (!run_is_over(run))
        executor_take_report(run, report);
    FAILPOINT("done-sending");
    guard_link_done(guard);
    executor_guard_drop(run);
    executor_clear(run);
}

static void guard_on_gone(struct guard_link *guard, void *userdata);

static const struct guard_link_handler guard_handler = {
    .on_state = guard_on_state,
    .on_started = guard_on_started,
    .on_stopping = guard_on_stopping,
    .on_report = guard_on_report,
    .on_gone = guard_on_gone,
};

void executor_guard_take(struct run *run, struct guard_link *guard) {
    struct guard_link_handler handler = guard_handler;

    handler.userdata = run;
    guard_link_set_handler(guard, &handler);
    run->job.guard = guard;
    run->job.guard_wanted = false;
}

/* --- connecting --- */

bool executor_guard_is_gone(int error) {
    return error == -ENOENT || error == -ECONNREFUSED;
}

void executor_guard_retry(struct executor *executor, const char *run, int error) {
    if (executor->retry_usec == GUARD_RETRY_MIN)
        journal_log(executor->journal, LOG_WARNING, "run %s: cannot connect to its guard, retrying: %s", run,
                    strerror(-error));
    if (timer_is_set(&executor->retry_timer))
        return;
    timer_set_in(&executor->retry_timer, executor->retry_usec);
    executor->retry_usec =
        executor->retry_usec < GUARD_RETRY_MAX / 2 ? 2 * executor->retry_usec : GUARD_RETRY_MAX;
}

/* If the guard is gone, the runner reports the end. Any other error is transient and must not end the run:
 * if it lasts, the guard stops the run at its deadline. */
static void connect_known(struct executor *executor, struct run *run) {
    struct guard_link_handler handler = guard_handler;
    int r;

    handler.userdata = run;
    run->job.executor = executor;
    r = guard_link_new(&run->job.guard, executor->event, executor->directory, run->id, &handler);
    run->job.guard_wanted = r < 0 && !executor_guard_is_gone(r);
    if (run->job.guard_wanted)
        executor_guard_retry(executor, run->id, r);
    else if (r < 0)
        (void) runner_link_kill(executor->runner, run->id, run_token(run));
    else
        executor->retry_usec = GUARD_RETRY_MIN;
}

/* A guard without memory may close a connection and live on. Connecting again shows whether it has ended. */
static void guard_on_gone(struct guard_link *guard, void *userdata) {
    struct run *run = userdata;
    bool had_state = guard_link_pid(guard) > 0; /* sent on this connection */

    executor_guard_drop(run);
    /* The guard may not have read the grant; the runner knows. */
    if (run->job.was_prepared && run->state == RUN_STATE_STARTING) {
        executor_start(run->job.executor, run);
        return;
    }
    if (had_state) {
        connect_known(run->job.executor, run);
        return;
    }
    run->job.guard_wanted = true;
    executor_guard_retry(run->job.executor, run->id, -ECONNRESET);
}

void executor_guard_connect(struct executor *executor, const char *id) {
    struct run *run = run_table_find(executor->runs, id);

    if (!run)
        unidentified_guard_add(executor, id);
    else if (!run->job.guard && !run_is_over(run))
        connect_known(executor, run);
}

static void executor_on_retry(void *userdata) {
    struct executor *executor = userdata;

    run_table_foreach (run, executor->runs, RUN_STATE_STARTING, RUN_STATE_STOPPING)
        if (run->job.guard_wanted)
            connect_known(executor, run);
    unidentified_guards_retry(executor);
}

int executor_guards_init(struct executor *executor) {
    executor->retry_usec = GUARD_RETRY_MIN;
    return timer_init(&executor->retry_timer, executor->event, SD_EVENT_PRIORITY_NORMAL, executor_on_retry,
                      executor);
}
