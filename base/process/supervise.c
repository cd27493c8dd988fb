/* SPDX-License-Identifier: MIT */
/* One command and all its descendants, from fork to the end of the last process.
 *
 * No pid serves as an identity:
 *   exec succeeded        the CLOEXEC pipe from the child ends without data
 *   the command ended     waitid(P_PIDFD)
 *   the tree is empty     waitid fails with ECHILD: a subreaper without children has no descendants. A cgroup must not be
 *                         populated either; poll(2) reports that, because inotify would need one of the user's few
 *                         instances (128) for each run
 *   something is due      one timer, for the first of: deadline, time limit, kill, retry of the kill */

#include "base/process/supervise-internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/deadline.h"
#include "base/failpoint.h"
#include "base/process/process-describe.h"
#include "base/process/process-tree.h"
#include "base/process/supervise-child.h"

/* A kill that did not empty the tree (a fork race, a process in an uninterruptible wait) is repeated. */
#define KILL_RETRY_MIN (20 * USEC_PER_MSEC)
#define KILL_RETRY_MAX USEC_PER_SEC
/* The kernel reports that a cgroup has emptied with a delay (at most every 10 ms), so the cgroup is polled as well. */
#define RECHECK_MIN USEC_PER_MSEC
#define RECHECK_MAX USEC_PER_SEC

static usec_t supervise_deadline(const struct supervise *s) {
    return atomic_load(&s->term->deadline);
}

/* Returns when the kill is due after a stop has begun. */
static usec_t supervise_kill_at(const struct supervise *s) {
    usec_t latest = deadline_kill_at(supervise_deadline(s));
    usec_t at = usec_add(s->stop_begun, s->term->stop_timeout);

    return at < latest ? at : latest;
}

/* Returns when a stop is due because of the deadline. */
static usec_t supervise_stop_at(const struct supervise *s) {
    return deadline_stop_at(supervise_deadline(s), s->term->stop_timeout);
}

static usec_t supervise_timeout_at(const struct supervise *s) {
    return usec_add(s->result.started, s->timeout);
}

/* Returns when the next step towards the end of the tree is due. */
static usec_t supervise_due(const struct supervise *s) {
    usec_t stop_at, timeout_at;

    if (s->is_killing)
        return s->kill.due;
    if (s->is_stopping)
        return supervise_kill_at(s);
    stop_at = supervise_stop_at(s);
    timeout_at = supervise_timeout_at(s);
    return stop_at < timeout_at ? stop_at : timeout_at;
}

static usec_t supervise_next(const struct supervise *s) {
    usec_t due = supervise_due(s);

    return due < s->recheck.due ? due : s->recheck.due;
}

static bool supervise_is_running(const struct supervise *s) {
    return s->pidfd >= 0 && !s->gate && !s->is_done;
}

void supervise_set_timer(struct supervise *s) {
    timer_set(&s->timer, supervise_is_running(s) ? supervise_next(s) : USEC_INFINITY);
}

static void supervise_kill(struct supervise *s) {
    if (!s->is_killing) {
        s->is_killing = true;
        s->kill.pause = KILL_RETRY_MIN;
        s->stuck_due = usec_add(clock_boottime(), PROCESS_STUCK_AFTER);
    }
    supervise_tree_kill(&s->tree, s->pid > 0 ? s->pidfd : -1);
    s->kill.due = usec_add(clock_boottime(), s->kill.pause);
    if (s->kill.pause < KILL_RETRY_MAX)
        s->kill.pause *= 2;
}

static void supervise_begin_stop(struct supervise *s, enum supervise_reason reason) {
    s->is_stopping = true;
    s->stop_begun = clock_boottime();
    s->result.reason = reason;
    if (supervise_kill_at(s) <= s->stop_begun)
        supervise_kill(s);
    else {
        supervise_tree_signal(&s->tree, s->pidfd, s->stop_signal);
        /* A suspended process handles a signal only when it continues. */
        supervise_tree_signal(&s->tree, s->pidfd, SIGCONT);
    }
    supervise_set_timer(s);
    if (s->handler.on_stopping)
        s->handler.on_stopping(s, reason, s->handler.userdata);
}

void supervise_set_deadline(struct supervise *s, usec_t deadline) {
    atomic_store(&s->term->deadline, deadline);
    supervise_set_timer(s);
}

int supervise_signal(struct supervise *s, int signal) {
    if (s->pid == 0)
        return -ESRCH;
    return pidfd_send_signal(s->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int supervise_list(const struct supervise *s, pid_t *ret, size_t n) {
    return process_tree_list(getpid(), s->tree.others, s->tree.n_others, ret, n);
}

bool supervise_has(const struct supervise *s, pid_t pid) {
    return process_tree_contains(getpid(), s->tree.others, s->tree.n_others, pid) == 1;
}

usec_t supervise_started(const struct supervise *s) {
    return s->result.started;
}

/* Handles the end of a pipe without data: exec took place, or the child was killed before it. */
static void supervise_pipe_ended(struct supervise *s) {
    if (process_has_execed(s->pid) != 0) {
        if (s->handler.on_started)
            s->handler.on_started(s, s->pid, s->handler.userdata);
        return;
    }
    s->result.exec_errno = s->result.reason == SUPERVISE_REASON_LEASE_LOST ? ETIME : ECANCELED;
    snprintf(s->result.stage, sizeof(s->result.stage), "%s",
             s->result.reason == SUPERVISE_REASON_LEASE_LOST ? "deadline" : "stop");
}

/* Reads why the child could not exec, if it could not. */
static void supervise_read_pipe(struct supervise *s) {
    int r = s->pipe_fd >= 0 ? supervise_read_failure(s->pipe_fd, &s->result) : -EAGAIN;

    if (r < 0)
        return;
    s->pipe_source = sd_event_source_disable_unref(s->pipe_source);
    s->pipe_fd = close_fd(s->pipe_fd);
    if (r == 0)
        supervise_pipe_ended(s);
}

static void supervise_command_ended(struct supervise *s) {
    siginfo_t info = {0};

    supervise_read_pipe(s);
    if (waitid(P_PIDFD, (id_t) s->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return;
    s->result.code = info.si_code;
    s->result.status = info.si_status;
    s->pid = 0;
}

static void supervise_check_suspended(struct supervise *s) {
    siginfo_t info = {0};

    if (s->pid > 0 && waitid(P_PIDFD, (id_t) s->pidfd, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0 &&
        s->handler.on_suspended && !s->is_stopping)
        s->handler.on_suspended(s, s->handler.userdata);
}

/* Reaps all children that have ended: the command, and orphans of this subreaper. Returns whether no process of the tree is
 * left. */
static bool supervise_reap(struct supervise *s) {
    for (;;) {
        siginfo_t info = {0};

        /* A child that is not reaped yet keeps its pid. */
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
            return errno == ECHILD;
        if (info.si_pid == 0)
            return s->pid == 0 && supervise_tree_is_of_others(&s->tree);
        if (info.si_pid == s->pid)
            supervise_command_ended(s);
        else {
            supervise_tree_reaped(&s->tree, info.si_pid);
            (void) waitid(P_PID, (id_t) info.si_pid, &info, WEXITED | WNOHANG);
        }
    }
}

/* Calls on_done, after which s may be gone. */
static void supervise_finish(struct supervise *s) {
    FAILPOINT("command-over");
    s->is_done = true;
    s->result.ended = clock_boottime();
    s->result.deadline = supervise_deadline(s);
    (void) getrusage(RUSAGE_CHILDREN, &s->result.usage);
    supervise_set_timer(s);
    s->handler.on_done(s, &s->result, s->handler.userdata);
}

/* Checks again later: without descendants the cgroup can have a process that is just ending, or was moved there. And with
 * others it may be unknown whether there are descendants. */
static void supervise_recheck_later(struct supervise *s) {
    s->recheck.due = usec_add(clock_boottime(), s->recheck.pause);
    s->recheck.pause = s->recheck.pause < RECHECK_MAX / 2 ? 2 * s->recheck.pause : RECHECK_MAX;
    supervise_set_timer(s);
}

/* Returns whether the tree is empty: then s may be gone. */
static bool supervise_check(struct supervise *s) {
    bool is_alone;

    if (!supervise_is_running(s))
        return false;
    supervise_check_suspended(s);
    is_alone = supervise_reap(s);
    if (s->pid > 0)
        return false;
    if (is_alone && supervise_tree_is_cgroup_empty(&s->tree)) {
        supervise_finish(s);
        return true;
    }
    if (is_alone || s->tree.n_others > 0)
        supervise_recheck_later(s);
    if (!s->left_sent && s->handler.on_left)
        s->handler.on_left(s, s->handler.userdata);
    s->left_sent = true;
    return false;
}

/* A process that stood still may receive a stop before it notices that its command has ended. That is checked first. */
void supervise_stop(struct supervise *s, enum supervise_reason reason) {
    if (supervise_is_running(s) && !s->is_stopping && !supervise_check(s))
        supervise_begin_stop(s, reason);
}

static int supervise_on_sigchld(_unused_ sd_event_source *source, _unused_ const struct signalfd_siginfo *info, void *userdata) {
    (void) supervise_check(userdata);
    return 0;
}

static int supervise_on_cgroup(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
    struct supervise *s = userdata;

    (void) supervise_tree_is_cgroup_empty(&s->tree); /* reading makes the file not ready any more */
    (void) supervise_check(s);
    return 0;
}

int supervise_on_pipe(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
    struct supervise *s = userdata;

    if (s->gate)
        supervise_withdraw(s); /* the child failed before its gate or was killed there; another one is forked at the start */
    else
        supervise_read_pipe(s);
    return 0;
}

static void supervise_report_stuck(struct supervise *s) {
    char text[PROCESS_TEXT_SIZE] = "";
    pid_t pid = process_tree_find(getpid(), s->tree.others, s->tree.n_others);

    if (pid > 0)
        process_describe(pid, text);
    if (!text[0])
        (void) snprintf(text, sizeof(text), "a process that cannot be read");
    s->stuck_due = usec_add(clock_boottime(), PROCESS_STUCK_AGAIN);
    s->handler.on_stuck(s, text, s->handler.userdata);
}

static void supervise_on_timer(void *userdata) {
    struct supervise *s = userdata;
    usec_t now = clock_boottime();

    s->recheck.due = USEC_INFINITY; /* supervise_check() sets the next one */
    /* A process that stood still wakes up with both: the end of its command, and the time for a stop. The end is checked
     * first. */
    if (!s->is_stopping && now >= supervise_due(s) && supervise_check(s))
        return;
    if (s->is_stopping) {
        if (now >= supervise_due(s))
            supervise_kill(s);
        supervise_set_timer(s);
    } else if (now >= supervise_stop_at(s))
        supervise_begin_stop(s, SUPERVISE_REASON_LEASE_LOST);
    else if (now >= supervise_timeout_at(s))
        supervise_begin_stop(s, SUPERVISE_REASON_TIMEOUT);
    else
        supervise_set_timer(s);
    if (!supervise_check(s) && s->is_killing && s->handler.on_stuck && now >= s->stuck_due)
        supervise_report_stuck(s);
}

static int supervise_add_sources(struct supervise *s, sd_event *event) {
    sigset_t mask;
    int r;

    if (sigemptyset(&mask) < 0 || sigaddset(&mask, SIGCHLD) < 0 || sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return -errno;
    r = sd_event_add_signal(event, &s->signal_source, SIGCHLD, supervise_on_sigchld, s);
    if (r < 0)
        return r;
    /* Deadlines come before all else in a turn of the loop. */
    return timer_init(&s->timer, event, SD_EVENT_PRIORITY_IMPORTANT, supervise_on_timer, s);
}

const struct supervise_term *supervise_get_term(const struct supervise *s) {
    return s->term;
}

int supervise_new(struct supervise **ret, sd_event *event, const struct supervise_options *options,
                  const struct supervise_handler *handler) {
    _cleanup_(supervise_freep) struct supervise *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return -ENOMEM;
    s->pidfd = s->pipe_fd = s->tree.events_fd = -1;
    s->handler = *handler;
    s->stop_signal = options->stop_signal;
    s->timeout = options->timeout;
    s->text = options->text;
    s->recheck.due = USEC_INFINITY;
    s->recheck.pause = RECHECK_MIN;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return -errno;
    r = supervise_term_new(&s->term, options);
    if (r >= 0)
        r = supervise_add_sources(s, event);
    if (r >= 0)
        r = supervise_tree_init(&s->tree, event, options->cgroup, supervise_on_cgroup, s);
    if (r < 0)
        return r;
    *ret = steal_pointer(&s);
    return 0;
}

struct supervise *supervise_free(struct supervise *s) {
    if (!s)
        return NULL;
    supervise_withdraw(s);
    if (s->is_done)
        supervise_tree_remove(&s->tree); /* after on_done, so that the report of the end does not wait for it */
    sd_event_source_disable_unref(s->signal_source);
    sd_event_source_disable_unref(s->pipe_source);
    timer_done(&s->timer);
    supervise_tree_done(&s->tree);
    close_fd(s->pipe_fd);
    close_fd(s->pidfd);
    if (s->term)
        (void) munmap(s->term, sizeof(*s->term));
    free(s);
    return NULL;
}
