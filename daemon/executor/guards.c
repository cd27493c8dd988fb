/* SPDX-License-Identifier: MIT */

/* Connections to the guards of known runs: messages of guards, and reconnecting. */

#include <errno.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/process/process-describe.h"
#include "daemon/executor/executor-internal.h"

#define ASK_PAUSE USEC_PER_SEC
#define ANSWER_TIME (10 * USEC_PER_SEC) /* of a guard, before it is reported; far above what a busy machine needs */

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

    run->job.executor->retry_usec = GUARD_RETRY_MIN;
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

/* The answer to a deadline. */
static void guard_on_ack(_unused_ struct guard_link *guard, _unused_ usec_t deadline, void *userdata) {
    struct run *run = userdata;

    if (run->end.stuck && run->state != RUN_STATE_STOPPING)
        executor_call(run->job.executor, on_silent, run, NULL);
}

static void guard_on_gone(struct guard_link *guard, void *userdata);

static const struct guard_link_handler guard_handler = {
    .on_state = guard_on_state,
    .on_started = guard_on_started,
    .on_stopping = guard_on_stopping,
    .on_ack = guard_on_ack,
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

/* Reports only the second failure: a guard whose command was short may leave its report and end before it accepts the connection. */
void executor_guard_retry(struct executor *executor, const char *run, int error) {
    if (executor->retry_usec == 2 * GUARD_RETRY_MIN)
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
    else if (r < 0) {
        executor->retry_usec = GUARD_RETRY_MIN;
        (void) runner_link_kill(executor->runner, run->id, run_token(run));
    }
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

/* --- guards that hang --- */

void executor_guard_check(struct run *run) {
    char what[PROCESS_TEXT_SIZE];

    if (!run->job.guard || run->end.stuck || run->state == RUN_STATE_STOPPING ||
        !guard_link_is_silent(run->job.guard, ANSWER_TIME))
        return;
    process_describe(guard_link_pid(run->job.guard), what);
    executor_call(run->job.executor, on_silent, run, *what ? what : "its guard");
}

static void executor_on_answers_due(void *userdata) {
    struct executor *executor = userdata;
    bool is_awaited = false;

    run_table_foreach (run, executor->runs, RUN_STATE_STARTING, RUN_STATE_RUNNING) {
        if (run->kind != RUN_KIND_JOB || !run->job.guard)
            continue;
        executor_guard_check(run);
        is_awaited = is_awaited || (guard_link_awaits_answer(run->job.guard) && !run->end.stuck);
    }
    if (is_awaited)
        timer_set_in(&executor->answers_timer, ASK_PAUSE);
}

void executor_ask_guards(struct executor *executor) {
    usec_t now = clock_boottime();
    bool is_asked = false;

    if (now < executor->ask_again)
        return;
    executor->ask_again = usec_add(now, ASK_PAUSE);
    run_table_foreach (run, executor->runs, RUN_STATE_STARTING, RUN_STATE_RUNNING) {
        if (run->kind != RUN_KIND_JOB || !run->job.guard || executor_call(executor, get_deadline, run) != USEC_INFINITY)
            continue;
        if (guard_link_awaits_answer(run->job.guard)) /* also of the first deadline, which follows its state */
            executor_guard_check(run);
        else
            executor_push_deadline(executor, run);
        is_asked = true;
    }
    if (is_asked && !timer_is_set(&executor->answers_timer))
        timer_set_in(&executor->answers_timer, ANSWER_TIME);
}

int executor_guards_init(struct executor *executor) {
    int r = timer_init(&executor->answers_timer, executor->event, SD_EVENT_PRIORITY_NORMAL, executor_on_answers_due, executor);

    executor->retry_usec = GUARD_RETRY_MIN;
    return r < 0 ? r
                 : timer_init(&executor->retry_timer, executor->event, SD_EVENT_PRIORITY_NORMAL, executor_on_retry, executor);
}
