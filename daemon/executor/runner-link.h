/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's side of base/protocol.h: the connection to berth-runner, and one to each guard. Reconnects by itself. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/process/supervise.h"

struct runner_link;
struct guard_link;

struct runner_link_handler {
    void (*on_recovered)(void *userdata); /* after each hello: all guards and reports were sent */
    void (*on_guard)(const char *run, void *userdata); /* a guard is listening (sent after hello) */
    void (*on_started)(const char *run, bool existed, void *userdata); /* `starting` or `exists` */
    void (*on_refused)(const char *run, const char *reason, const char *text, void *userdata);
    void (*on_report)(const struct message *report, void *userdata);  /* answer with runner_link_forget() once it is recorded */
    void (*on_lost)(void *userdata);                                  /* the connection is gone; it is tried again */
    void *userdata;
};

/* directory: the runtime directory, for runner/runner.sock; with_runner: path of a berth-runner to start as a child on a socketpair
 * (config: its -c argument, or NULL), or NULL to connect. A child that dies is started again. */
int runner_link_new(struct runner_link **ret, sd_event *event, const char *directory, const char *with_runner, const char *config,
                    const struct runner_link_handler *handler);
/* With a child: closes its socket and waits until it has ended (bounded, 5 s, then SIGKILL). */
struct runner_link *runner_link_free(struct runner_link *l);
DEFINE_CLEANUP(struct runner_link, runner_link_free)
bool runner_link_is_up(const struct runner_link *l);
/* 0 or -ENOTCONN, and then nothing was sent. `start` is a message with all fields of PROTOCOL_START. */
int runner_link_start(struct runner_link *l, const struct message_writer *start);
/* token: of the grant under which it began; 0: none, or not known. If the runner knows nothing of the run
 * its answer has that token. */
int runner_link_kill(struct runner_link *l, const char *run, uint64_t token);
int runner_link_forget(struct runner_link *l, const char *run);

struct guard_link_handler {
    void (*on_state)(struct guard_link *g, const struct message *state, void *userdata);
    void (*on_started)(struct guard_link *g, const struct message *started, void *userdata); /* may be NULL, as the next three */
    void (*on_stopping)(struct guard_link *g, enum supervise_reason reason, void *userdata);
    void (*on_ack)(struct guard_link *g, usec_t deadline, void *userdata);
    void (*on_report)(struct guard_link *g, const struct message *report, void *userdata); /* answer with guard_link_done() */
    /* The connection ended without a report. Another guard_link_new() shows whether the guard is gone, too.
     */
    void (*on_gone)(struct guard_link *g, void *userdata);
    void *userdata;
};

/* Connects to runs/RUN.sock. Negative errno: -ENOENT, -ECONNREFUSED: there is no guard (any more); others say nothing about it. */
int guard_link_new(struct guard_link **ret, sd_event *event, const char *directory, const char *run,
                   const struct guard_link_handler *handler);
struct guard_link *guard_link_free(struct guard_link *g); /* leaves the guard alone */
DEFINE_CLEANUP(struct guard_link, guard_link_free)
pid_t guard_link_pid(const struct guard_link *g); /* of the guard; 0 before its first on_state */
/* A guard that does not read for a while loses nothing: the newest deadline is kept and sent when it reads again. */
void guard_link_set_deadline(struct guard_link *g, usec_t deadline); /* USEC_INFINITY: none */
void guard_link_stop(struct guard_link *g, enum supervise_reason reason);
void guard_link_done(struct guard_link *g);
