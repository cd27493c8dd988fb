/* SPDX-License-Identifier: MIT */

/* Reports of guards and the runner about the ends of runs. Permits are released only after a report, because
 * only a report confirms that no process of the run is left. */

#include <errno.h>
#include <string.h>

#include "base/failpoint.h"
#include "daemon/executor/executor-internal.h"

/* Returns whether the run was stopped before its command began. */
static bool is_stopped_before(const struct message *report) {
    const char *stage = message_get(report, "stage"), *reason = message_get(report, "reason");

    return stage && strcmp(stage, "stop") == 0 && reason && strcmp(reason, "none") != 0;
}

static enum run_result result_of(const struct message *report, int exit_code) {
    const char *reason = message_get(report, "reason"), *stage = message_get(report, "stage");
    enum supervise_reason why = SUPERVISE_REASON_NONE;

    if (message_get(report, "lost"))
        return RUN_RESULT_GUARD_DIED;
    if (reason)
        (void) supervise_reason_parse(reason, &why);
    if (message_get(report, "errno") && stage && strcmp(stage, "deadline") == 0)
        return RUN_RESULT_LEASE_LOST;
    if (message_get(report, "errno") && !is_stopped_before(report))
        return RUN_RESULT_NOT_STARTED;
    switch (why) {
    case SUPERVISE_REASON_NONE:
        break;
    case SUPERVISE_REASON_TIMEOUT:
        return RUN_RESULT_TIMEOUT;
    case SUPERVISE_REASON_LEASE_LOST:
        return RUN_RESULT_LEASE_LOST;
    case SUPERVISE_REASON_STOPPED:
    case SUPERVISE_REASON_REVOKED:
    case SUPERVISE_REASON_SHUTDOWN:
        return RUN_RESULT_STOPPED;
    }
    return exit_code == 0 ? RUN_RESULT_SUCCESS : RUN_RESULT_FAILURE;
}

static void take_times(struct run *run, const struct message *report) {
    uint64_t value = 0;

    /* The run was over before its guard was connected. */
    if (message_get_u64(report, "started", &value) == 0 && run->started.realtime == 0)
        executor_call(run->job.executor, on_started, run, 0, value);
    if (value > 0)
        run->started.boottime = value; /* exact */
    if (message_get_u64(report, "ended-boot", &value) == 0)
        run->end.boottime = value;
    if (message_get_u64(report, "ended", &value) == 0)
        run->end.realtime = value;
}

static void take_end(struct run *run, const struct message *report) {
    const char *stage = message_get(report, "stage"), *reason = message_get(report, "reason");
    const char *text = message_get(report, "text");
    uint64_t value;

    if (message_get_u64(report, "code", &value) == 0)
        run->end.exit_code = (int) value;
    if (message_get_u64(report, "signal", &value) == 0)
        run->end.signal = (int) value;
    take_times(run, report);
    if (message_get(report, "errno") && text)
        run_set_reason(run, "%s", text);
    else if (message_get_u64(report, "errno", &value) == 0 && !is_stopped_before(report))
        run_set_reason(run, "%s: %s", stage ? stage : "start", strerror((int) value));
    else if (reason && strcmp(reason, "none") != 0)
        run_set_reason(run, "%s", reason);
}

/* Computes how long before the end of the lease the last process was gone. Returns false if the report lacks
 * it. */
static bool parse_fenced(const struct run *run, const struct message *report, int64_t *ret_spare_usec) {
    uint64_t before, after = 0;

    if (message_get_u64(report, "gone-before", &before) < 0)
        return false;
    (void) message_get_u64(report, "gone-after", &after);
    *ret_spare_usec = (int64_t) (before + run->job.executor->margin_usec - after);
    return true;
}

/* Returns whether the guard did not begin the command, because too little time was left or the lease was lost. */
static bool is_not_begun(const struct run *run, const struct message *report) {
    const char *stage = message_get(report, "stage");

    return message_get(report, "errno") && stage &&
           (strcmp(stage, "deadline") == 0 ||
            (strcmp(stage, "stop") == 0 &&
             (run->requeue != RUN_REQUEUE_NONE || run->stop_reason == SUPERVISE_REASON_LEASE_LOST)));
}

void executor_take_report(struct run *run, const struct message *report) {
    struct executor *executor = run->job.executor;
    struct executor_end end = {};

    FAILPOINT("report-seen");
    if (is_not_begun(run, report) && executor_call(executor, on_not_begun, run))
        return;
    take_end(run, report);
    end.result = result_of(report, run->end.exit_code);
    if (end.result == RUN_RESULT_LEASE_LOST)
        end.is_fenced = parse_fenced(run, report, &end.spare_usec);
    executor_call(executor, on_ended, run, &end);
}
