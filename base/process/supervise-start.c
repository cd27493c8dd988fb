/* SPDX-License-Identifier: MIT */
/* Forks, prepares, starts and withdraws the child of a supervise. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/failpoint.h"
#include "base/process/supervise-child.h"
#include "base/process/supervise-internal.h"

/* Takes the child, which still has its pid because it is not reaped yet. */
static int adopt(struct supervise *s, pid_t pid) {
    s->pidfd = pidfd_open(pid, 0);
    if (s->pidfd < 0) {
        int r = -errno;

        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        return r;
    }
    s->pid = pid;
    return 0;
}

static int fork_child(struct supervise *s, supervise_child_fn child, void *userdata) {
    _cleanup_close_ int reader = -1, writer = -1;
    const struct supervise_birth birth = {
        .cgroup = s->tree.cgroup, .term = s->term, .child = child, .text = s->text,
        .userdata = userdata};
    int fds[2], r;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    reader = fds[0], writer = fds[1];
    if (fcntl(reader, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    r = sd_event_add_io(sd_event_source_get_event(s->signal_source), &s->pipe_source, reader, EPOLLIN, supervise_on_pipe, s);
    if (r < 0)
        return r;
    pid = supervise_fork(&birth, writer);
    r = pid < 0 ? pid : adopt(s, pid);
    if (r < 0) {
        s->pipe_source = sd_event_source_disable_unref(s->pipe_source);
        return r;
    }
    s->pipe_fd = steal_fd(&reader);
    return 0;
}

static void begin(struct supervise *s, usec_t now) {
    s->result.started = now;
    supervise_set_timer(s);
}

int supervise_prepare(struct supervise *s, supervise_child_fn child, void *userdata, struct gate *gate) {
    int r;

    if (s->pidfd >= 0)
        return -EALREADY;
    r = gate_close(gate);
    if (r == 0)
        r = fork_child(s, child, userdata);
    if (r < 0) {
        gate_done(gate);
        return r;
    }
    gate_forget_child(gate);
    s->gate = gate;
    FAILPOINT("gate-forked");
    return 0;
}

bool supervise_is_prepared(const struct supervise *s) {
    return s->gate;
}

void supervise_withdraw(struct supervise *s) {
    siginfo_t info;

    if (!s->gate)
        return;
    gate_done(s->gate);
    s->gate = NULL;
    (void) pidfd_send_signal(s->pidfd, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t) s->pidfd, &info, WEXITED) < 0 && errno == EINTR)
        ;
    s->pid = 0;
    s->pidfd = close_fd(s->pidfd);
    s->pipe_source = sd_event_source_disable_unref(s->pipe_source);
    s->pipe_fd = close_fd(s->pipe_fd);
}

/* Opens the gate. False: the child has ended, and nothing of it is left. A terminal's Ctrl-Z may have stopped the child
 * there, so it is continued; before the gate opens, because the command itself must not receive this signal. */
static bool open_gate(struct supervise *s) {
    FAILPOINT("gate-opening");
    (void) pidfd_send_signal(s->pidfd, SIGCONT, NULL, 0);
    if (gate_open(s->gate) < 0) {
        supervise_withdraw(s);
        return false;
    }
    s->gate = NULL;
    FAILPOINT("gate-opened");
    return true;
}

int supervise_start(struct supervise *s, supervise_child_fn child, void *userdata) {
    usec_t now = clock_boottime(); /* the child may run before this process does */
    int r = 0;

    if (s->pidfd >= 0 && !s->gate)
        return -EALREADY;
    if (!s->gate || !open_gate(s))
        r = fork_child(s, child, userdata);
    if (r == 0)
        begin(s, now);
    return r;
}

void supervise_set_stop_timeout(struct supervise *s, usec_t stop_timeout) {
    s->term->stop_timeout = stop_timeout;
}
