/* SPDX-License-Identifier: MIT */

/* berthd's connection to one guard. It reads one message in each turn of the loop and calls the handler
 * last, so that a handler may free the link. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/protocol.h"
#include "base/socket.h"
#include "daemon/executor/runner-link.h"

struct guard_link {
    struct guard_link_handler handler;
    sd_event_source *source;
    int fd;
    pid_t pid;
    /* To be sent when the guard reads again. */
    bool has_deadline, has_stop, has_done;
    usec_t deadline;
    usec_t asked; /* boottime of the oldest deadline without an answer; 0: none */
    enum supervise_reason stop_reason;
};

/* --- to the guard --- */

static int send_deadline(struct guard_link *g) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_DEADLINE);
    if (g->deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", g->deadline);
    return message_send(g->fd, &w);
}

static int send_stop(struct guard_link *g) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_STOP);
    message_put(&w, "reason", supervise_reason_name(g->stop_reason));
    return message_send(g->fd, &w);
}

static int send_done(struct guard_link *g) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_DONE);
    return message_send(g->fd, &w);
}

int guard_link_grant(struct guard_link *g, uint64_t token, uint64_t ticket, usec_t deadline) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_GRANT);
    message_put_u64(&w, "token", token);
    message_put_u64(&w, "ticket", ticket);
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    return message_send(g->fd, &w);
}

void guard_link_set_handler(struct guard_link *g, const struct guard_link_handler *handler) {
    g->handler = *handler;
}

/* Only a full socket makes a message wait. After any other error it is dropped, because the end of the
 * connection follows. */
static bool must_wait(bool *pending, int (*send)(struct guard_link *g), struct guard_link *g) {
    if (*pending && send(g) == -EAGAIN)
        return true;
    *pending = false;
    return false;
}

static void guard_link_flush(struct guard_link *g) {
    bool waits = must_wait(&g->has_stop, send_stop, g) || must_wait(&g->has_deadline, send_deadline, g) ||
                 must_wait(&g->has_done, send_done, g);

    (void) sd_event_source_set_io_events(g->source, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void guard_link_set_deadline(struct guard_link *g, usec_t deadline) {
    g->deadline = deadline;
    g->has_deadline = true;
    if (g->asked == 0)
        g->asked = clock_boottime();
    guard_link_flush(g);
}

void guard_link_stop(struct guard_link *g, enum supervise_reason reason) {
    g->stop_reason = reason;
    g->has_stop = true;
    guard_link_flush(g);
}

void guard_link_done(struct guard_link *g) {
    g->has_done = true;
    guard_link_flush(g);
}

/* --- from the guard --- */

static void take_ack(struct guard_link *g, const struct message *m) {
    usec_t deadline = USEC_INFINITY;

    (void) message_get_u64(m, "deadline", &deadline);
    g->handler.on_ack(g, deadline, g->handler.userdata);
}

static void take_stopping(struct guard_link *g, const struct message *m) {
    enum supervise_reason reason = SUPERVISE_REASON_STOPPED;
    const char *name = message_get(m, "reason");

    if (name)
        (void) supervise_reason_parse(name, &reason);
    g->handler.on_stopping(g, reason, g->handler.userdata);
}

static void take_state(struct guard_link *g, const struct message *m) {
    uint64_t pid;

    if (message_get_u64(m, "guard", &pid) == 0 && pid > 0 && pid <= INT32_MAX)
        g->pid = (pid_t) pid;
    g->handler.on_state(g, m, g->handler.userdata);
}

static void guard_link_gone(struct guard_link *g) {
    g->source = sd_event_source_disable_unref(g->source);
    g->handler.on_gone(g, g->handler.userdata);
}

/* Ignores unknown messages, which a newer guard sends, and those without a handler. */
static void guard_link_take(struct guard_link *g, const struct message *m) {
    g->asked = 0;
    if (message_is(m, PROTOCOL_STATE))
        take_state(g, m);
    else if (message_is(m, PROTOCOL_STARTED) && g->handler.on_started)
        g->handler.on_started(g, m, g->handler.userdata);
    else if (message_is(m, PROTOCOL_STOPPING) && g->handler.on_stopping)
        take_stopping(g, m);
    else if (message_is(m, PROTOCOL_ACK) && g->handler.on_ack)
        take_ack(g, m);
    else if (message_is(m, PROTOCOL_REPORT) && g->handler.on_report)
        g->handler.on_report(g, m, g->handler.userdata);
}

static int guard_link_on_io(_unused_ sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    struct guard_link *g = userdata;
    struct message m;
    int r;

    if (revents & EPOLLOUT)
        guard_link_flush(g);
    r = message_receive(fd, &m);
    if (r == 0)
        guard_link_take(g, &m);
    else if (r != -EAGAIN)
        guard_link_gone(g);
    return 0;
}

pid_t guard_link_pid(const struct guard_link *g) {
    return g->pid;
}

bool guard_link_awaits_answer(const struct guard_link *g) {
    return g->asked > 0;
}

bool guard_link_is_silent(const struct guard_link *g, usec_t time) {
    char byte;

    return g->asked > 0 && clock_boottime() >= usec_add(g->asked, time) &&
           recv(g->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

int guard_link_new(struct guard_link **ret, sd_event *event, const char *directory, const char *run,
                   const struct guard_link_handler *handler) {
    _cleanup_(guard_link_freep) struct guard_link *g = calloc(1, sizeof(*g));
    char path[128];
    int r;

    if (!g)
        return -ENOMEM;
    g->fd = -1;
    g->handler = *handler;
    if ((size_t) snprintf(path, sizeof(path), "%s/%s/%s%s", directory, PROTOCOL_RUNS, run, PROTOCOL_SOCKET_SUFFIX) >= sizeof(path))
        return -ENAMETOOLONG;
    g->fd = socket_connect(path, SOCK_SEQPACKET);
    if (g->fd < 0)
        return g->fd;
    r = sd_event_add_io(event, &g->source, g->fd, EPOLLIN, guard_link_on_io, g);
    if (r < 0)
        return r;
    *ret = steal_pointer(&g);
    return 0;
}

struct guard_link *guard_link_free(struct guard_link *g) {
    if (!g)
        return NULL;
    sd_event_source_disable_unref(g->source);
    close_fd(g->fd);
    free(g);
    return NULL;
}
