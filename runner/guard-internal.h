/* SPDX-License-Identifier: MIT */
#pragma once

/* A guard, for the files of it. */

#include <systemd/sd-event.h>

#include "base/listener.h"
#include "base/outbox.h"
#include "base/process/gate.h"
#include "base/process/supervise.h"
#include "base/timer.h"
#include "runner/exec.h"
#include "runner/guard.h"

enum { GUARD_LISTEN_FD = 3, GUARD_RECORD_FD, GUARD_LIFELINE_FD }; /* its descriptors */

enum phase { PHASE_PREPARED, PHASE_STARTING, PHASE_RUNNING, PHASE_STOPPING, PHASE_DONE };

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
    bool has_cgroup;                  /* of its own making; the supervise has it too */
    struct exec_plan plan;            /* of the command, as long as the supervise */
    struct gate gate;                 /* its token passes; open from the start unless the command was prepared */
    int fd;                           /* berthd; -1: not there */
    sd_event_source *source;
    sd_event_source *lifeline;        /* of one that is prepared */
    struct outbox outbox;
    struct message_writer report;     /* once it is done */
    struct timer again;               /* of the next attempt to leave the report as a file; of the next look at the deadline; of the
                                         end of a guard that was prepared */
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

/* runner/guard-grant.c: a guard that is prepared */
void guard_prepare(struct guard *g);
/* 0, or -EBADMSG: it is not a grant, or not to be granted. */
int guard_take_grant(struct guard *g, const struct message *m);
/* Ends the guard, which leaves nothing. */
_Noreturn void guard_withdraw(struct guard *g);

/* runner/guard.c */
/* Makes cgroup and supervise, if there is none yet. 0 or an errno, positive, and its stage; to be taken down. */
int guard_set_up(struct guard *g, const char **ret_stage);
void guard_take_down(struct guard *g);
void guard_fail(struct guard *g, int error, const char *stage);
void guard_begin(struct guard *g);
_Noreturn void guard_end(struct guard *g);
void guard_leave_report(struct guard *g);
