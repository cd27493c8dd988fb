/* SPDX-License-Identifier: MIT */

/* The time limit of a job (`timeout`), in case that the guard hangs and does not stop its run. */

#include "daemon/executor/executor-internal.h"

#define START_SLACK (10 * USEC_PER_SEC) /* from the grant to the report of the start; far above what a busy machine needs */

/* A start that was not sent begins nothing. It is sent again, and then has another time limit. */
static bool may_run(const struct run *run) {
    return run->state == RUN_STATE_RUNNING || (run->state == RUN_STATE_STARTING && executor_may_have_begun(run));
}

static void run_on_timeout_overdue(struct run *run) {
    if (!may_run(run))
        return;
    if (run->state == RUN_STATE_STARTING)
        run_set_reason(run, "its guard did not report the start within the timeout");
    run->stop_reason = SUPERVISE_REASON_TIMEOUT;
    executor_call(run->job.executor, on_stopping, run, run->stop_reason);
    executor_stop(run->job.executor, run);
}

void executor_arm_start_timeout(struct run *run) {
    usec_t timeout = executor_call(run->job.executor, get_timeout, run);

    if (timeout != USEC_INFINITY)
        run_arm_after_io(run, usec_add(clock_boottime(), usec_add(timeout, START_SLACK)), run_on_timeout_overdue);
}

void executor_arm_timeout(struct run *run, const struct message *started) {
    uint64_t timeout;

    if (run->state == RUN_STATE_RUNNING && message_get_u64(started, "timeout", &timeout) == 0)
        run_arm_after_io(run, usec_add(usec_add(run->started.boottime, timeout), STOP_SLACK), run_on_timeout_overdue);
}
