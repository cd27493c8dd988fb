/* SPDX-License-Identifier: MIT */
#include "runner/guard-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/connection.h"
#include "base/deadline.h"
#include "base/failpoint.h"
#include "base/file-limit.h"
#include "base/listener.h"
#include "base/outbox.h"
#include "base/protocol.h"
#include "base/process/supervise.h"
#include "base/timer.h"
#include "runner/exec/credentials.h"
#include "runner/exec/exec.h"
#include "runner/report.h"
#include "runner/resource-control.h"

#define REPORT_RETRY USEC_PER_SEC             /* after a report could not be written (disk full) */
#define DEADLINE_PATIENCE (10 * USEC_PER_SEC) /* that a guard with too little time waits for more */

static int guard_on_berthd(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* --- the end --- */

/* Returns whether the command has not begun because too little time was left. */
static bool guard_is_waiting(const struct guard *g) {
    return g->phase == PHASE_STARTING && (!g->supervise || supervise_is_prepared(g->supervise));
}

_Noreturn void guard_end(struct guard *g) {
    FAILPOINT("guard-ending");
    guard_file_remove(g->start->directory, g->record.run);
    _exit(0);
}

static void guard_on_again(void *userdata) {
    struct guard *g = userdata;

    if (g->phase == PHASE_PREPARED)
        guard_withdraw(g);
    if (guard_is_waiting(g))
        guard_fail(g, ETIME, "deadline"); /* the command did not run, and berthd must know */
    else if (g->fd < 0)
        guard_leave_report(g);
}

void guard_leave_report(struct guard *g) {
    FAILPOINT("guard-report-writing");
    if (report_write(&g->report, g->start->directory, g->record.run) == 0)
        guard_end(g);
    timer_set_in(&g->again, REPORT_RETRY);
}

/* Called before the guard reports the end or starts the command again. */
static void guard_remove_credentials(struct guard *g) {
    char *const *credentials = g->start->job->input.credentials;

    if (credentials && *credentials)
        credentials_remove(g->start->directory, g->record.run);
}

/* Sends the report, or leaves it as a file. The guard file has the end before that, because berthd may start
 * the job's next run as soon as it has the report. If the guard file cannot be written, berth-runner refuses
 * that run until this guard has ended. */
static void guard_report(struct guard *g) {
    g->phase = PHASE_DONE;
    (void) guard_file_add_over(GUARD_RECORD_FD);
    if (g->fd >= 0)
        guard_send(g, &g->report);
    guard_take_down(g); /* after the report: the permits need not wait for it */
    if (g->fd < 0)
        guard_leave_report(g);
}

void guard_fail(struct guard *g, int error, const char *stage) {
    if (g->supervise)
        supervise_withdraw(g->supervise);
    guard_remove_credentials(g);
    report_begin(&g->report, &g->record, supervise_reason_name(g->reason));
    report_put_failure(&g->report, error, stage, "");
    guard_report(g);
}

/* --- from supervise --- */

static void guard_on_started(_unused_ struct supervise *s, pid_t pid, void *userdata) {
    struct guard *g = userdata;
    struct message_writer w;

    FAILPOINT("guard-started-seen");
    g->pid = pid;
    g->started = clock_boottime();
    if (g->phase == PHASE_STARTING)
        g->phase = PHASE_RUNNING;
    message_begin(&w, PROTOCOL_STARTED);
    message_put(&w, "run", g->record.run);
    guard_put_started(g, &w);
    guard_send(g, &w);
}

static void guard_on_stopping(_unused_ struct supervise *s, enum supervise_reason reason, void *userdata) {
    struct guard *g = userdata;
    struct message_writer w;

    g->phase = PHASE_STOPPING;
    g->reason = reason;
    message_begin(&w, PROTOCOL_STOPPING);
    message_put(&w, "run", g->record.run);
    message_put(&w, "reason", supervise_reason_name(reason));
    guard_send(g, &w);
}

static void guard_on_done(_unused_ struct supervise *s, const struct supervise_result *result, void *userdata) {
    struct guard *g = userdata;

    guard_remove_credentials(g);
    if (g->phase == PHASE_STARTING && result->exec_errno == ETIME) { /* the exec was too late */
        guard_take_down(g);
        guard_begin(g);
        return;
    }
    FAILPOINT("guard-exit-seen");
    report_begin(&g->report, &g->record, supervise_reason_name(result->reason));
    if (result->exec_errno != 0)
        report_put_failure(&g->report, result->exec_errno, result->stage, result->text);
    else
        report_put_result(&g->report, result);
    guard_report(g);
}

/* --- from berthd --- */

static void guard_take_deadline(struct guard *g, const struct message *m) {
    struct message_writer w;
    usec_t deadline = USEC_INFINITY;

    (void) message_get_u64(m, "deadline", &deadline);
    if (g->start->job->on_lease_lost == ON_LEASE_LOST_CONTINUE)
        deadline = USEC_INFINITY;
    g->record.deadline = deadline;
    message_begin(&w, PROTOCOL_ACK);
    guard_put_deadline(g, &w);
    guard_send(g, &w);
    if (g->supervise)
        supervise_set_deadline(g->supervise, deadline);
    if (guard_is_waiting(g))
        guard_begin(g);
}

static void guard_take_stop(struct guard *g, enum supervise_reason reason) {
    if (guard_is_waiting(g)) {
        g->reason = reason;
        guard_fail(g, ECANCELED, "stop");
    } else if (g->supervise)
        supervise_stop(g->supervise, reason);
}

/* 0, or -EBADMSG: not a message to a guard. */
static int guard_take(struct guard *g, const struct message *m) {
    enum supervise_reason reason;
    const char *name = message_get(m, "reason");
    uint64_t deadline;

    if (message_is(m, PROTOCOL_GRANT) || g->phase == PHASE_PREPARED)
        return guard_take_grant(g, m);
    if (message_is(m, PROTOCOL_DEADLINE) && message_get_u64(m, "deadline", &deadline) != -EBADMSG)
        guard_take_deadline(g, m);
    else if (message_is(m, PROTOCOL_STOP) && name && supervise_reason_parse(name, &reason) == 0 &&
             reason != SUPERVISE_REASON_NONE) {
        guard_take_stop(g, reason);
    } else if (message_is(m, PROTOCOL_DONE)) {
        if (g->phase == PHASE_DONE)
            guard_end(g);
    } else
        return -EBADMSG;
    return 0;
}

static int guard_on_berthd(_unused_ sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    struct guard *g = userdata;
    struct message m;
    int r;

    if ((revents & EPOLLOUT) && outbox_flush(&g->outbox, fd) == 0)
        (void) sd_event_source_set_io_events(g->source, EPOLLIN);
    r = message_receive(fd, &m);
    if (r == 0)
        r = guard_take(g, &m);
    if (r < 0 && r != -EAGAIN)
        guard_drop_berthd(g);
    return 0;
}

/* The newest connection is berthd's. An older one belongs to a berthd that is gone. */
static void guard_accept(struct guard *g, int fd) {
    guard_hang_up(g);
    g->fd = fd;
    if (sd_event_add_io(g->event, &g->source, fd, EPOLLIN, guard_on_berthd, g) < 0) {
        guard_drop_berthd(g);
        return;
    }
    guard_send_state(g);
    if (g->phase == PHASE_DONE)
        guard_send(g, &g->report);
}

static void guard_on_connection(int fd, void *userdata) {
    struct guard *g = userdata;

    if (access_is_allowed(g->start->access, fd) && connection_prepare(fd) == 0)
        guard_accept(g, fd);
    else
        guard_give_up(fd);
}

/* --- the start --- */

/* Moves the socket, the guard file and the lifeline (if any) to their numbers, and closes all other
 * descriptors. */
static int guard_take_descriptors(const struct guard_start *start) {
    const int wanted[] = {start->listen_fd, start->record_fd, start->lifeline_fd};
    int fds[ELEMENTSOF(wanted)], last = GUARD_RECORD_FD;

    for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
        fds[i] = wanted[i] < 0 ? -1 : fcntl(wanted[i], F_DUPFD_CLOEXEC, GUARD_LIFELINE_FD + 1);
        if (wanted[i] >= 0 && fds[i] < 0)
            return -errno;
    }
    for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
        if (fds[i] >= 0) {
            last = GUARD_LISTEN_FD + (int) i;
            if (dup3(fds[i], last, O_CLOEXEC) < 0)
                return -errno;
        }
    return close_range((unsigned) last + 1, ~0U, 0) < 0 ? -errno : 0;
}

static int guard_supervise(struct guard *g, const char *cgroup, const char *text) {
    const struct job_settings *job = g->start->job;
    const struct supervise_options options = {
        .stop_signal = job->stop_signal,
        .stop_timeout = job->stop_timeout_usec,
        .timeout = job->timeout_usec,
        .deadline = g->record.deadline,
        .cgroup = cgroup,
        .text = text,
    };
    const struct supervise_handler handler = {
        .on_started = guard_on_started, .on_stopping = guard_on_stopping, .on_done = guard_on_done, .userdata = g};

    return supervise_new(&g->supervise, g->event, &options, &handler);
}

int guard_set_up(struct guard *g, const char **ret_stage) {
    const char *cgroup = NULL;
    int r;

    if (g->supervise)
        return 0;
    *ret_stage = "cgroup";
    r = resource_control_begin(g->record.cgroup, g->start->job, &cgroup);
    FAILPOINT("guard-cgroup-made");
    if (r == 0) {
        *ret_stage = "guard";
        r = -guard_supervise(g, cgroup, g->plan.text);
    }
    g->has_cgroup = cgroup;
    if (r == 0) {
        exec_plan_init(&g->plan, g->start->job, &g->record, g->start->directory);
        g->plan.term = supervise_get_term(g->supervise);
        g->plan.gate = &g->gate;
        g->gate = GATE_OPEN(.facts = &g->record.token, .size = sizeof(g->record.token));
    } else if (cgroup)
        (void) cgroup_remove(cgroup);
    return r;
}

void guard_take_down(struct guard *g) {
    if (!g->supervise)
        return;
    supervise_withdraw(g->supervise);
    g->supervise = supervise_free(g->supervise);
    if (g->has_cgroup)
        (void) cgroup_remove(g->record.cgroup);
    guard_remove_credentials(g);
}

/* Starts the command, or reports why it cannot. */
static void guard_exec(struct guard *g) {
    const char *stage = "";
    int r = guard_set_up(g, &stage);

    if (r == 0) {
        stage = "fork";
        r = -supervise_start(g->supervise, exec_child, &g->plan);
    }
    FAILPOINT("guard-command-forked");
    if (r != 0)
        guard_fail(g, r, stage);
}

/* While the guard waits, berthd extends the deadline with each answered heartbeat, or stops the run
 * (R12). */
void guard_begin(struct guard *g) {
    if (deadline_leaves_time(g->record.deadline, g->start->job->stop_timeout_usec, clock_boottime())) {
        timer_off(&g->again);
        guard_exec(g);
        return;
    }
    timer_set_in(&g->again, DEADLINE_PATIENCE);
}

/* Nothing that kill(2) sends ends the guard but SIGKILL: the exit status would be lost. The exec of the
 * command unblocks all. A fault of the guard itself ends it nevertheless. */
static void guard_block_signals(void) {
    sigset_t all;

    (void) sigfillset(&all);
    (void) sigprocmask(SIG_BLOCK, &all, NULL);
}

static int guard_run(struct guard *g) {
    int r;

    FAILPOINT("guard-begun");
    (void) prctl(PR_SET_NAME, "berth-guard", 0, 0, 0);
    guard_block_signals();
    r = guard_take_descriptors(g->start);
    file_limit_restore(); /* the command's; not before the descriptors have small numbers */
    if (r == 0)
        r = sd_event_new(&g->event);
    if (r >= 0)
        r = listener_new(&g->listener, g->event, GUARD_LISTEN_FD, SD_EVENT_PRIORITY_NORMAL, guard_on_connection, g);
    if (r >= 0)
        /* Messages of berthd that arrived during a freeze come first. */
        r = timer_init(&g->again, g->event, SD_EVENT_PRIORITY_NORMAL + 10, guard_on_again, g);
    if (r < 0)
        return r;
    r = guard_file_add_guard(GUARD_RECORD_FD, getpid());
    FAILPOINT("guard-pid-written");
    if (r == 0 && g->record.is_prepared)
        guard_prepare(g);
    else if (r == 0)
        guard_begin(g);
    else /* without the pid a restarted runner could not kill this guard */
        guard_fail(g, -r, "record");
    /* Signals to the runner's process group must not reach the guard. The command has its own session and
     * does not wait for this one: with autogroups (sched(7)) a new session gets its first turn late, by
     * milliseconds on a busy machine. */
    (void) setsid();
    return sd_event_loop(g->event);
}

_Noreturn void guard_main(const struct guard_start *start) {
    static struct guard guard; /* lives as long as the process */

    guard = (struct guard) {.start = start, .record = *start->record, .fd = -1,
                            .phase = start->record->is_prepared ? PHASE_PREPARED : PHASE_STARTING};
    outbox_init(&guard.outbox);
    if (start->job->on_lease_lost == ON_LEASE_LOST_CONTINUE)
        guard.record.deadline = USEC_INFINITY;
    (void) guard_run(&guard);
    /* Only a broken guard gets here. The runner sees that it left no report, kills the run's processes and
     * reports it. */
    _exit(70);
}
