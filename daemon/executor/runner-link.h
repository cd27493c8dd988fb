/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's side of base/protocol.h: the connection to berth-runner, which reconnects by itself, and one to
 * each guard. */

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
    void (*on_prepared)(const char *run, void *userdata); /* its guard listens for the grant */
    void (*on_refused)(const char *run, const char *reason, const char *text, void *userdata);
    void (*on_stuck)(const char *run, const char *what, void *userdata); /* a process outlives its kill */
    void (*on_reaped)(const char *run, void *userdata); /* answers runner_link_reap() */
    void (*on_report)(const struct message *report, void *userdata); /* runner_link_forget() must follow */
    void (*on_lost)(void *userdata); /* the connection was lost and is retried */
    void *userdata;
};

/* directory: the runtime directory, for runner/runner.sock. with_runner: NULL to connect there, or the path
 * of a berth-runner to start as a child on a socketpair (config: its -c argument, or NULL). A child that
 * ends is started again. */
int runner_link_new(struct runner_link **ret, sd_event *event, const char *directory, const char *with_runner, const char *config,
                    const struct runner_link_handler *handler);
/* Closes the socket of a child and waits for its end (5 s, then SIGKILL). */
struct runner_link *runner_link_free(struct runner_link *l);
DEFINE_CLEANUP(struct runner_link, runner_link_free)
bool runner_link_is_up(const struct runner_link *l);
/* start: a message with all fields of PROTOCOL_START. Returns 0, or -ENOTCONN: nothing was sent. */
int runner_link_start(struct runner_link *l, const struct message_writer *start);
int runner_link_prepare(struct runner_link *l, const struct message_writer *prepare); /* PROTOCOL_PREPARE */
/* token: of the grant under which the run began; 0: none, or unknown. The answer has it if the runner does
 * not know the run. */
int runner_link_kill(struct runner_link *l, const char *run, uint64_t token);
int runner_link_reap(struct runner_link *l, const char *run, uint64_t token); /* PROTOCOL_REAP; token 0: none */
int runner_link_forget(struct runner_link *l, const char *run);

struct guard_link_handler {
    void (*on_state)(struct guard_link *g, const struct message *state, void *userdata);
    /* These four may be NULL. */
    void (*on_started)(struct guard_link *g, const struct message *started, void *userdata);
    void (*on_stopping)(struct guard_link *g, enum supervise_reason reason, void *userdata);
    void (*on_ack)(struct guard_link *g, usec_t deadline, void *userdata);
    /* guard_link_done() must follow. */
    void (*on_report)(struct guard_link *g, const struct message *report, void *userdata);
    /* The connection ended without a report. Another guard_link_new() shows whether the guard has ended. */
    void (*on_gone)(struct guard_link *g, void *userdata);
    void *userdata;
};

/* Connects to runs/RUN.sock. Returns 0; -ENOENT or -ECONNREFUSED: there is no guard; another negative errno:
 * that is unknown. */
int guard_link_new(struct guard_link **ret, sd_event *event, const char *directory, const char *run,
                   const struct guard_link_handler *handler);
struct guard_link *guard_link_free(struct guard_link *g); /* does not affect the guard */
DEFINE_CLEANUP(struct guard_link, guard_link_free)
pid_t guard_link_pid(const struct guard_link *g); /* returns the guard's pid; 0 before its first on_state */
/* Return whether the guard has not answered the last deadline; for longer than that, although this berthd would have seen the
 * answer. */
bool guard_link_awaits_answer(const struct guard_link *g);
bool guard_link_is_silent(const struct guard_link *g, usec_t time);
void guard_link_set_handler(struct guard_link *g, const struct guard_link_handler *handler);
/* Sends the grant to a prepared guard. Returns 0, or a negative errno: nothing was sent. */
int guard_link_grant(struct guard_link *g, uint64_t token, uint64_t ticket, usec_t deadline);
/* These never fail. If the guard does not read, the link keeps the newest of each and sends it later. */
void guard_link_set_deadline(struct guard_link *g, usec_t deadline); /* USEC_INFINITY: none */
void guard_link_stop(struct guard_link *g, enum supervise_reason reason);
void guard_link_done(struct guard_link *g);
