/* SPDX-License-Identifier: MIT */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/connection.h"
#include "base/protocol.h"
#include "runner/guard-internal.h"

static const char *const phase_names[] = {"prepared", "starting", "running", "stopping", "done"};

void guard_give_up(int fd) {
    if (fd >= 0 && connection_end(fd))
        close_fd(fd);
}

void guard_hang_up(struct guard *g) {
    g->source = sd_event_source_disable_unref(g->source);
    guard_give_up(steal_fd(&g->fd));
    outbox_done(&g->outbox);
}

void guard_drop_berthd(struct guard *g) {
    guard_hang_up(g);
    if (g->phase == PHASE_PREPARED)
        guard_withdraw(g);
    if (g->phase == PHASE_DONE)
        guard_leave_report(g);
}

void guard_send(struct guard *g, const struct message_writer *w) {
    int r = g->fd >= 0 ? outbox_send(&g->outbox, g->fd, w) : 0;

    if (r == OUTBOX_E_KEPT)
        (void) sd_event_source_set_io_events(g->source, EPOLLIN | EPOLLOUT);
    else if (r < 0)
        (void) shutdown(g->fd, SHUT_RDWR);
}

void guard_put_deadline(const struct guard *g, struct message_writer *w) {
    if (g->record.deadline != USEC_INFINITY)
        message_put_u64(w, "deadline", g->record.deadline);
}

void guard_put_started(const struct guard *g, struct message_writer *w) {
    message_put_u64(w, "pid", (uint64_t) g->pid);
    message_put_u64(w, "started", g->started);
    if (g->start->job->timeout_usec != USEC_INFINITY)
        message_put_u64(w, "timeout", g->start->job->timeout_usec);
}

void guard_send_state(struct guard *g) {
    const struct job_settings *job = g->start->job;
    struct message_writer w;

    message_begin(&w, PROTOCOL_STATE);
    guard_file_put(&g->record, &w);
    message_put(&w, "hash", g->record.hash);
    message_put(&w, "phase", phase_names[g->phase]);
    message_put(&w, "on-lease-lost", job->on_lease_lost == ON_LEASE_LOST_CONTINUE ? "continue" : "stop");
    message_put_u64(&w, "stop-timeout", job->stop_timeout_usec);
    message_put_u64(&w, "guard", (uint64_t) getpid());
    guard_put_deadline(g, &w);
    if (g->pid > 0)
        guard_put_started(g, &w);
    if (g->reason != SUPERVISE_REASON_NONE)
        message_put(&w, "reason", supervise_reason_name(g->reason));
    guard_send(g, &w);
}
