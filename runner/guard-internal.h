/* SPDX-License-Identifier: MIT */
#pragma once

/* A guard, for the files of it. */

#include <systemd/sd-event.h>

#include "base/listener.h"
#include "base/outbox.h"
#include "base/process/supervise.h"
#include "base/timer.h"
#include "runner/guard.h"

enum phase { PHASE_STARTING, PHASE_RUNNING, PHASE_STOPPING, PHASE_DONE };

struct guard {
    const struct guard_start *start;
    struct guard_file record;             /* its deadline is the one in force */
    enum phase phase;
    enum supervise_reason reason;
    pid_t pid;                        /* of the command; 0: not started */
    usec_t started; /* boottime; 0: not yet */

    sd_event *event;
    struct listener *listener;
    struct supervise *supervise;
    int fd;                           /* berthd; -1: not there */
    sd_event_source *source;
    struct outbox outbox;
    struct message_writer report;     /* once it is done */
    struct timer again;               /* of the next attempt to leave the report as a file; or of the next look at the deadline */
};

/* runner/guard-say.c: the connection to berthd, and the guard's messages on it */
void guard_give_up(int fd); /* of a connection */
void guard_hang_up(struct guard *g);
void guard_drop_berthd(struct guard *g); /* leaves the report, if there is one */
void guard_say(struct guard *g, const struct message_writer *w);
void guard_say_state(struct guard *g);
/* Add fields that several messages have. */
void guard_put_deadline(const struct guard *g, struct message_writer *w);
void guard_put_started(const struct guard *g, struct message_writer *w);

/* runner/guard.c */
void guard_leave_report(struct guard *g);
