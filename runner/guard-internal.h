/* SPDX-License-Identifier: MIT */
#pragma once

/* The guard, for runner/guard*.c alone. */

#include <systemd/sd-event.h>

#include "base/listener.h"
#include "base/outbox.h"
#include "base/process/gate.h"
#include "base/process/supervise.h"
#include "base/timer.h"
#include "runner/exec/exec.h"
#include "runner/guard.h"

enum { GUARD_LISTEN_FD = 3, GUARD_RECORD_FD, GUARD_LIFELINE_FD }; /* its descriptors */

enum phase { PHASE_PREPARED, PHASE_STARTING, PHASE_RUNNING, PHASE_STOPPING, PHASE_DONE };

struct guard {
    const struct guard_start *start;
    struct guard_file record;         /* with the deadline in force */
    enum phase phase;
    enum supervise_reason reason;
    pid_t pid;                        /* of the command; 0: not started */
    usec_t started;                   /* boottime; 0: not yet */

    sd_event *event;
    struct listener *listener;
    struct supervise *supervise;
    bool has_cgroup;                  /* the guard made the cgroup of the record */
    struct exec_plan plan;            /* of the command; valid while there is a supervise */
    struct gate gate;                 /* passes the token on; closed while the guard is prepared */
    int fd;                           /* berthd; -1: not connected */
    sd_event_source *source;
    sd_event_source *lifeline;        /* of a prepared guard */
    struct outbox outbox;
    struct message_writer report;     /* in PHASE_DONE */
    struct timer again; /* retries the report file; ends a wait for time, or a prepared guard */
};

/* runner/guard-send.c: the connection to berthd, and the guard's messages on it */
/* Closes a connection. If it has descriptors attached on whose close(2) the guard could sleep, it stays open
 * until this process ends. */
void guard_give_up(int fd);
void guard_hang_up(struct guard *g);
/* Hangs up. Then a prepared guard ends, and one that is done leaves its report as a file. */
void guard_drop_berthd(struct guard *g);
/* Sends to berthd. If that fails, closes the connection; berthd receives the state on the next one. */
void guard_send(struct guard *g, const struct message_writer *w);
void guard_send_state(struct guard *g);
/* Add fields that several messages have. */
void guard_put_deadline(const struct guard *g, struct message_writer *w);
void guard_put_started(const struct guard *g, struct message_writer *w);

/* runner/guard-grant.c: a guard that is prepared */
void guard_prepare(struct guard *g);
/* Takes a grant and begins. Returns 0, or -EBADMSG: not a grant, or the guard is not prepared. */
int guard_take_grant(struct guard *g, const struct message *m);
/* Ends the guard without a report. */
_Noreturn void guard_withdraw(struct guard *g);

/* runner/guard.c */
/* Makes cgroup and supervise, unless they exist. Returns 0 or an errno, positive, with its stage. */
int guard_set_up(struct guard *g, const char **ret_stage);
/* Removes both. No process of the command may be left but a child at its gate. */
void guard_take_down(struct guard *g);
/* Reports that the command was not started. */
void guard_fail(struct guard *g, int error, const char *stage);
/* Starts the command, or waits for a later deadline if too little time is left. */
void guard_begin(struct guard *g);
_Noreturn void guard_end(struct guard *g);
/* Writes the report to a file for the next berthd, and ends the guard. Retries later if it cannot be
 * written. */
void guard_leave_report(struct guard *g);
