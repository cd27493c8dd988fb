/* SPDX-License-Identifier: MIT */

/* The clients of runs: they connect, leave, and report about their commands. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <syslog.h>

#include "base/failpoint.h"
#include "base/process/process-describe.h"
#include "daemon/adhoc/adhoc-internal.h"
#include "daemon/adhoc/hold.h"
#include "daemon/runs/run-log.h"

#define NO_COMMAND 127 /* the status of `berth run` if its command or interpreter does not exist: berth(1), EXIT STATUS */

void adhoc_set_clients_due(struct adhoc *adhoc, usec_t boottime) {
    adhoc->clients_due = boottime;
}

static void run_on_client_overdue(struct run *run) {
    if (run->adhoc.client_pid == 0)
        adhoc_client_gone(run->adhoc.owner, run);
}

void adhoc_arm_client_due(struct adhoc *adhoc, struct run *run) {
    run_arm(run, adhoc->clients_due, run_on_client_overdue);
}

void adhoc_await_client(struct adhoc *adhoc, struct run *run) {
    run->adhoc.owner = adhoc;
    adhoc_arm_client_due(adhoc, run);
}

bool adhoc_is_client_due(const struct run *run) {
    return run->kind == RUN_KIND_ADHOC && run->adhoc.awaits_client && !run->adhoc.end_reported && !run_is_over(run) &&
           clock_boottime() < run->adhoc.owner->clients_due;
}

/* A client asks for a hold that was released. Its run is over, and the client begins another one. */
static void finish_lost(struct adhoc *adhoc, struct run *run) {
    run->adhoc.awaits_client = false;
    run_set_reason(run, "its client did not get the hold");
    adhoc_finish(adhoc, run);
}

int adhoc_attach(struct adhoc *adhoc, struct run *run, uid_t uid, pid_t pid) {
    if (run->kind != RUN_KIND_ADHOC || run_is_over(run) || (uid != run->adhoc.uid && uid != 0) ||
        run->adhoc.end_reported)
        return ADHOC_E_UNKNOWN;
    if (run->adhoc.hold_state == HOLD_STATE_RELEASED || (run->adhoc.hold && hold_is_released(run->adhoc.hold))) {
        finish_lost(adhoc, run);
        return ADHOC_E_UNKNOWN;
    }
    run->adhoc.client_pid = pid;
    run->adhoc.awaits_client = false;
    return 0;
}

void adhoc_client_gone(struct adhoc *adhoc, struct run *run) {
    run->adhoc.client_pid = 0;
    switch (run->state) {
    case RUN_STATE_RETRYING: /* only runs of jobs */
    case RUN_STATE_PENDING:
    case RUN_STATE_WAITING:
        adhoc_call(adhoc, on_client_gone, run);
        break;
    case RUN_STATE_STARTING:
    case RUN_STATE_STOPPING:
        run->adhoc.hold_fd = close_fd(run->adhoc.hold_fd); /* releases a hold that no client received */
        break;
    case RUN_STATE_RUNNING:
    case RUN_STATE_DONE:
        break;
    }
}

/* --- reports --- */

static void report_start(struct adhoc *adhoc, struct run *run, pid_t pid, usec_t reported) {
    usec_t now = clock_boottime(), at = reported >= run->queued.boottime && reported <= now ? reported : now;

    adhoc_call(adhoc, on_started, run, pid, at);
}

void adhoc_client_started(struct adhoc *adhoc, struct run *run, pid_t pid, usec_t started) {
    int r;

    if (run->state < RUN_STATE_STARTING || run_is_over(run) || run->started.pid > 0 || !run->adhoc.hold)
        return;
    r = hold_watch_command(run->adhoc.hold, run->adhoc.client_pid, pid);
    if (r == -EPERM)
        journal_log(adhoc->journal, LOG_INFO, "run %s: its command is not process %d of this host (a container has its own numbers)",
                    run->id, (int) pid);
    else if (r < 0 && r != -ESRCH)
        journal_log(adhoc->journal, LOG_WARNING, "run %s: process %d cannot be watched: %s", run->id,
                    (int) pid, strerror(-r));
    report_start(adhoc, run, pid, started);
    FAILPOINT("hold-started-seen");
    adhoc_write_record(adhoc, run);
}

void adhoc_client_stuck(struct adhoc *adhoc, struct run *run, const char *what) {
    if (run->state == RUN_STATE_RUNNING || run->state == RUN_STATE_STOPPING)
        adhoc_call(adhoc, on_stuck, run, what);
}

/* Its client still has the hold. */
static void run_on_report_overdue(struct run *run) {
    char text[PROCESS_TEXT_SIZE] = "";

    if (run->adhoc.client_pid > 0)
        process_describe(run->adhoc.client_pid, text);
    if (*text)
        adhoc_call(run->adhoc.owner, on_stuck, run, text);
    run_arm(run, usec_add(clock_boottime(), PROCESS_STUCK_AGAIN), run_on_report_overdue);
}

void adhoc_reaped(struct run *run) {
    if (run->adhoc.end_reported || run->adhoc.is_reaped)
        return;
    run->adhoc.is_reaped = true;
    run->end.boottime = clock_boottime();
    run->end.realtime = clock_realtime();
    run_arm(run, usec_add(clock_boottime(), PROCESS_STUCK_AFTER), run_on_report_overdue);
}

/* Returns the deadline that the client enforced. It may be older than ours, if the client missed
 * extensions. */
static usec_t sanitize_reported_deadline(struct adhoc *adhoc, const struct run *run, usec_t reported) {
    usec_t latest =
        usec_sub(usec_add(clock_boottime(), adhoc->options.lease_usec), adhoc->options.margin_usec);

    return reported > 0 && reported <= latest ? reported : adhoc_call(adhoc, get_deadline, run);
}

static usec_t sanitize_reported_end(const struct run *run, usec_t reported) {
    usec_t now = clock_boottime();
    usec_t begin = run->started.boottime > 0 ? run->started.boottime : run->queued.boottime;

    return reported > 0 && reported <= now && reported >= begin ? reported : now;
}

static void log_fenced(const struct adhoc *adhoc, const struct run *run, usec_t deadline) {
    usec_t lease_end = usec_add(deadline, adhoc->options.margin_usec);

    if (deadline == 0) /* an earlier berthd had it */
        run_log_fenced(run, RUN_SPARE_UNKNOWN);
    else if (deadline != USEC_INFINITY)
        run_log_fenced(run, (int64_t) (lease_end - run->end.boottime));
}

static void take_report(struct run *run, const struct adhoc_report *report) {
    run->adhoc.end_reported = true;
    run->end.exit_code = report->code;
    run->end.signal = report->signal;
    run->end.result = report->result;
    /* berth-runner killed the command of a client that was frozen. The client does not know why, and saw it later. */
    if (report->result == RUN_RESULT_NONE && report->signal == SIGKILL && run->stop_reason != SUPERVISE_REASON_NONE)
        run->end.result = run->stop_reason == SUPERVISE_REASON_LEASE_LOST ? RUN_RESULT_LEASE_LOST : RUN_RESULT_STOPPED;
    if (report->result != RUN_RESULT_NONE || !run->adhoc.is_reaped) {
        run->end.boottime = sanitize_reported_end(run, report->at);
        run->end.realtime = usec_sub(clock_realtime(), usec_sub(clock_boottime(), run->end.boottime));
    }
    if (report->result == RUN_RESULT_NOT_STARTED && report->code >= 0) {
        run->end.exit_code = -1;
        run_set_reason(run, "%s", report->code == NO_COMMAND ? "its command or its interpreter does not exist" : "its command cannot be executed");
    }
    if (run->end.result == RUN_RESULT_NONE)
        run->end.result = report->code == 0 ? RUN_RESULT_SUCCESS : RUN_RESULT_FAILURE;
}

void adhoc_client_ended(struct adhoc *adhoc, struct run *run, const struct adhoc_report *report) {
    if (run_is_over(run) || run->adhoc.end_reported || run->state < RUN_STATE_STARTING)
        return;
    if (report->result == RUN_RESULT_NOT_STARTED && run->stop_reason == SUPERVISE_REASON_LEASE_LOST &&
        adhoc_call(adhoc, on_not_begun, run))
        return;
    FAILPOINT("hold-ended-seen");
    if (report->pid > 0 && run->started.pid == 0 && run->started.realtime == 0)
        report_start(adhoc, run, report->pid, report->started);
    take_report(run, report);
    if (run->end.result == RUN_RESULT_LEASE_LOST)
        log_fenced(adhoc, run, sanitize_reported_deadline(adhoc, run, report->deadline));
    run_log_exited(run, run->end.result); /* before the release, so that the exit status is never lost */
    FAILPOINT("hold-ended-logged");
    run->adhoc.hold_fd = close_fd(run->adhoc.hold_fd);
    run->adhoc.client_pid = 0; /* the client reports nothing more */
    if (run->adhoc.hold && hold_is_released(run->adhoc.hold))
        run->adhoc.hold_state = HOLD_STATE_RELEASED; /* usual: the client closes it right after its report */
    if (run->adhoc.hold_state == HOLD_STATE_RELEASED) {
        adhoc_finish(adhoc, run);
        return;
    }
    adhoc_write_record(adhoc, run); /* processes of the run may keep the hold until the next berthd */
    run_changed(run);
}
