/* SPDX-License-Identifier: MIT */

/* berthd's connection to berth-runner: to its socket, or to a child on a socketpair. It reconnects by itself
 * and begins with hello each time. It reads one message in each turn of the loop and calls its handler
 * last. */

#include "daemon/executor/runner-link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/file-limit.h"
#include "base/outbox.h"
#include "base/protocol.h"
#include "base/socket.h"
#include "base/text.h"
#include "base/timer.h"

#define RETRY_FIRST (50 * USEC_PER_MSEC)
#define RETRY_MAX USEC_PER_SEC
#define CHILD_END_TIME (5 * USEC_PER_SEC) /* for a child to end after its socket was closed */
#define CHILD_SOCKET 3

struct runner_link {
    sd_event *event;
    struct runner_link_handler handler;
    char *directory, *with_runner, *config;

    int fd;                        /* -1: not connected */
    sd_event_source *source;
    struct outbox outbox;
    bool is_up;                    /* the runner has answered hello */
    bool lost_sent;                /* on_lost was called */

    struct timer retry;
    usec_t retry_after;

    int child;                     /* pidfd; -1: none */
    sd_event_source *child_source;
    usec_t child_dropped;          /* boottime at which its socket was closed; 0: it is open */
};

static int runner_link_on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* --- the connection --- */

static void runner_link_retry(struct runner_link *l) {
    timer_set(&l->retry, usec_add(clock_boottime(), l->retry_after));
    l->retry_after = l->retry_after < RETRY_MAX / 2 ? 2 * l->retry_after : RETRY_MAX;
}

/* Drops the connection and schedules a retry. The caller must call on_lost last. */
static void runner_link_drop(struct runner_link *l) {
    l->source = sd_event_source_disable_unref(l->source);
    l->fd = close_fd(l->fd);
    outbox_done(&l->outbox);
    l->is_up = false;
    if (l->child >= 0)
        l->child_dropped = clock_boottime();
    runner_link_retry(l);
}

static void runner_link_report_lost(struct runner_link *l) {
    if (l->lost_sent)
        return;
    l->lost_sent = true;
    l->handler.on_lost(l->handler.userdata);
}

/* Sends a message now, or as soon as the runner reads. Drops the connection if that fails. */
static int runner_link_send(struct runner_link *l, const struct message_writer *w) {
    int r;

    if (l->fd < 0)
        return -ENOTCONN;
    r = outbox_send(&l->outbox, l->fd, w);
    if (r == OUTBOX_E_KEPT)
        (void) sd_event_source_set_io_events(l->source, EPOLLIN | EPOLLOUT);
    if (r == -EINVAL || r == -EMSGSIZE)
        return r; /* the message is invalid */
    if (r < 0)
        runner_link_drop(l);
    return r < 0 ? -ENOTCONN : 0;
}

static int runner_link_begin(struct runner_link *l, int fd) {
    struct message_writer w;
    int r;

    l->fd = fd;
    r = sd_event_add_io(l->event, &l->source, fd, EPOLLIN, runner_link_on_io, l);
    if (r < 0) {
        l->fd = close_fd(l->fd);
        return r;
    }
    message_begin(&w, PROTOCOL_HELLO);
    message_put_u64(&w, "version", PROTOCOL_VERSION);
    return runner_link_send(l, &w);
}

static int runner_link_connect(struct runner_link *l) {
    char path[128];
    int fd;

    if ((size_t) snprintf(path, sizeof(path), "%s/%s", l->directory, PROTOCOL_RUNNER_SOCKET) >= sizeof(path))
        return -ENAMETOOLONG;
    fd = socket_connect(path, SOCK_SEQPACKET);
    return fd < 0 ? fd : runner_link_begin(l, fd);
}

/* --- a runner as a child --- */

static _Noreturn void child_main(const struct runner_link *l, int fd) {
    char number[12];
    const char *argv[] = {"berth-runner", "--socket-fd", number, l->config ? "-c" : NULL, l->config, NULL};
    sigset_t none;

    snprintf(number, sizeof(number), "%d", CHILD_SOCKET);
    /* Leaves the terminal's process group, so that Ctrl-C reaches berthd alone. */
    (void) setsid();
    file_limit_restore();
    (void) sigemptyset(&none);
    if (fd == CHILD_SOCKET ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, CHILD_SOCKET) < 0)
        _exit(126);
    if (close_range(CHILD_SOCKET + 1, ~0U, 0) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        _exit(126);
    execv(l->with_runner, (char *const *) argv);
    (void) dprintf(STDERR_FILENO, "error: %s: %s\n", l->with_runner, strerror(errno));
    _exit(127);
}

static void child_reap(struct runner_link *l) {
    siginfo_t info;

    (void) waitid(P_PIDFD, (id_t) l->child, &info, WEXITED | WNOHANG);
    l->child_source = sd_event_source_disable_unref(l->child_source);
    l->child = close_fd(l->child);
}

static int child_on_end(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
    /* runner_link_on_io() handles the end of its socket. */
    child_reap(userdata);
    return 0;
}

static int child_adopt(struct runner_link *l, pid_t pid) {
    int r;

    l->child = pidfd_open(pid, 0);
    r = l->child < 0 ? -errno : sd_event_add_io(l->event, &l->child_source, l->child, EPOLLIN, child_on_end, l);
    if (r < 0) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        l->child = close_fd(l->child);
        return r;
    }
    l->child_dropped = 0;
    return 0;
}

static int child_start(struct runner_link *l) {
    _cleanup_close_ int ours = -1, theirs = -1;
    int fds[2], r;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return -errno;
    ours = fds[0], theirs = fds[1];
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        child_main(l, theirs);
    r = child_adopt(l, pid);
    return r < 0 ? r : runner_link_begin(l, steal_fd(&ours));
}

/* --- hello, and what the runner sends --- */

static void runner_link_on_retry(void *userdata) {
    struct runner_link *l = userdata;
    int r;

    if (l->fd >= 0)
        return;
    if (l->child >= 0) { /* that of the previous connection, which is about to end */
        if (clock_boottime() >= usec_add(l->child_dropped, CHILD_END_TIME))
            (void) pidfd_send_signal(l->child, SIGKILL, NULL, 0);
        runner_link_retry(l);
        return;
    }
    r = l->with_runner ? child_start(l) : runner_link_connect(l);
    if (r < 0) {
        if (r != -ENOTCONN) /* the connection was dropped, and a retry is set */
            runner_link_retry(l);
        runner_link_report_lost(l);
    }
}

static bool take_hello(struct runner_link *l, const struct message *m) {
    uint64_t version;

    if (message_get_u64(m, "version", &version) < 0 || version != PROTOCOL_VERSION)
        return false;
    l->is_up = true;
    l->lost_sent = false;
    l->retry_after = RETRY_FIRST;
    return true;
}

static void take_refused(struct runner_link *l, const char *run, const struct message *m) {
    const char *reason = message_get(m, "reason"), *text = message_get(m, "text");

    l->handler.on_refused(run, reason ? reason : "bad-request", text ? text : "", l->handler.userdata);
}

/* Returns false if no runner sends such a message. Ignores unknown ones, which a newer runner sends. */
static bool runner_link_take(struct runner_link *l, const struct message *m) {
    char run[ID_TEXT_SIZE];

    if (message_is(m, PROTOCOL_HELLO))
        return take_hello(l, m);
    if (!l->is_up)
        return false;
    if (message_is(m, PROTOCOL_RECOVERED)) {
        l->handler.on_recovered(l->handler.userdata);
        return true;
    }
    if (message_get_id(m, "run", run) < 0)
        return false;
    if (message_is(m, PROTOCOL_GUARD))
        l->handler.on_guard(run, l->handler.userdata);
    else if (message_is(m, PROTOCOL_STARTING) || message_is(m, PROTOCOL_EXISTS))
        l->handler.on_started(run, message_is(m, PROTOCOL_EXISTS), l->handler.userdata);
    else if (message_is(m, PROTOCOL_PREPARED))
        l->handler.on_prepared(run, l->handler.userdata);
    else if (message_is(m, PROTOCOL_REFUSED))
        take_refused(l, run, m);
    else if (message_is(m, PROTOCOL_REAPED))
        l->handler.on_reaped(run, l->handler.userdata);
    else if (message_is(m, PROTOCOL_STUCK) && message_get(m, "text"))
        l->handler.on_stuck(run, message_get(m, "text"), l->handler.userdata);
    else if (message_is(m, PROTOCOL_REPORT))
        l->handler.on_report(m, l->handler.userdata);
    return true;
}

static int runner_link_on_io(_unused_ sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    struct runner_link *l = userdata;
    struct message m;
    int r = 0;

    if (revents & EPOLLOUT) {
        r = outbox_flush(&l->outbox, fd);
        if (r == 0)
            (void) sd_event_source_set_io_events(l->source, EPOLLIN);
    }
    if (r >= 0)
        r = message_receive(fd, &m);
    if (r == -EAGAIN || (r == 0 && runner_link_take(l, &m)))
        return 0;
    runner_link_drop(l);
    runner_link_report_lost(l);
    return 0;
}

bool runner_link_is_up(const struct runner_link *l) {
    return l->is_up;
}

int runner_link_start(struct runner_link *l, const struct message_writer *start) {
    return l->is_up ? runner_link_send(l, start) : -ENOTCONN;
}

int runner_link_prepare(struct runner_link *l, const struct message_writer *prepare) {
    return runner_link_start(l, prepare);
}

static int runner_link_send_run(struct runner_link *l, const char *verb, const char *run, uint64_t token) {
    struct message_writer w;

    if (!l->is_up)
        return -ENOTCONN;
    message_begin(&w, verb);
    message_put(&w, "run", run);
    if (token > 0)
        message_put_u64(&w, "token", token);
    return runner_link_send(l, &w);
}

int runner_link_kill(struct runner_link *l, const char *run, uint64_t token) {
    return runner_link_send_run(l, PROTOCOL_KILL, run, token);
}

int runner_link_reap(struct runner_link *l, const char *run, uint64_t token) {
    return runner_link_send_run(l, PROTOCOL_REAP, run, token);
}

int runner_link_forget(struct runner_link *l, const char *run) {
    return runner_link_send_run(l, PROTOCOL_FORGET, run, 0);
}

/* --- the module --- */

int runner_link_new(struct runner_link **ret, sd_event *event, const char *directory, const char *with_runner, const char *config,
                    const struct runner_link_handler *handler) {
    _cleanup_(runner_link_freep) struct runner_link *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return -ENOMEM;
    l->fd = l->child = -1;
    l->event = sd_event_ref(event);
    l->handler = *handler;
    l->retry_after = RETRY_FIRST;
    outbox_init(&l->outbox);
    if (text_copy(&l->directory, directory) < 0 || text_copy(&l->with_runner, with_runner) < 0 || text_copy(&l->config, config) < 0)
        return -ENOMEM;
    /* The loop's first turn makes the first attempt, so that no handler is called from here. */
    r = timer_init(&l->retry, event, SD_EVENT_PRIORITY_NORMAL, runner_link_on_retry, l);
    if (r < 0)
        return r;
    timer_set(&l->retry, 0);
    *ret = steal_pointer(&l);
    return 0;
}

static void child_wait(struct runner_link *l) {
    struct pollfd p = {.fd = l->child, .events = POLLIN};

    if (poll(&p, 1, (int) (CHILD_END_TIME / USEC_PER_MSEC)) == 0)
        (void) pidfd_send_signal(l->child, SIGKILL, NULL, 0);
    (void) poll(&p, 1, (int) (CHILD_END_TIME / USEC_PER_MSEC));
    child_reap(l);
}

struct runner_link *runner_link_free(struct runner_link *l) {
    if (!l)
        return NULL;
    sd_event_source_disable_unref(l->source);
    timer_done(&l->retry);
    close_fd(l->fd);
    if (l->child >= 0)
        child_wait(l);
    outbox_done(&l->outbox);
    free(l->directory);
    free(l->with_runner);
    free(l->config);
    sd_event_unref(l->event);
    free(l);
    return NULL;
}
