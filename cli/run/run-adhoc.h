/* SPDX-License-Identifier: MIT */
#pragma once

/* One `berth run`, the root object of its event loop. Edges work on it: run-talk.c speaks with berthd, run-tell.c tells it the end,
 * run-command.c has the command, run-waiting.c says what is waited for, run-signals.c hears the user. It begins by asking; a grant starts the command; adhoc_exit() ends it. */

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/name.h"
#include "base/process/supervise.h"
#include "cli/client.h"
#include "cli/run/options.h"

/* What berthd says is read before any deadline of ours is looked at: after a suspend or a SIGSTOP the new deadline may be waiting in
 * the socket. A CONT is passed on only after both. */
#define ADHOC_PRIORITY_TALK (SD_EVENT_PRIORITY_IMPORTANT - 10) /* supervise has its timer at IMPORTANT */
#define ADHOC_PRIORITY_CONTINUE (SD_EVENT_PRIORITY_NORMAL + 10)

enum adhoc_phase {
    ADHOC_PHASE_ASKING,  /* connected or trying to be again; queued or not yet */
    ADHOC_PHASE_RUNNING, /* granted: the command runs (supervise), or is about to start, maybe when there is time */
    ADHOC_PHASE_TELLING, /* the command is over; a berthd that was away just now is to hear how */
    ADHOC_PHASE_DONE,    /* the exit status is known */
};

struct adhoc {
    sd_event *event;
    struct run_options options;
    enum adhoc_phase phase;
    sigset_t caller_mask;            /* what the command gets, like the next two */
    struct sigaction caller_sigpipe, caller_sigchld;

    /* berthd */
    struct client *client;           /* NULL: away, or no need of it */
    sd_event_source *retry, *wait_limit;
    sd_event_source *first;          /* until the first answer on this connection */
    usec_t retry_usec;               /* until the next try */
    usec_t away_since;               /* boottime; 0: it answers */
    usec_t wait_deadline;            /* boottime; USEC_INFINITY: none */
    bool wait_grace;                 /* that has passed; berthd has a moment to say so itself */
    bool lost;                       /* the lease is lost: a command that has not begun does not begin under this grant */
    bool attaching;                  /* the call under way names a run that berthd should know */
    char run[ID_TEXT_SIZE];          /* "": not told yet */
    struct {                         /* run-waiting.c */
        sd_event_source *timer;
        struct client *asked;        /* for the pools; NULL: not under way */
        char blocked_by[512];        /* as berthd said last; "": a look at the pools tells */
        char said[640];              /* "": nothing yet */
    } waiting;

    /* the grant */
    bool nested;                     /* runs under the permits around it */
    int hold_fd;                     /* write end of the hold's FIFO; -1 */
    char *pools, *host, *namespace;
    uint64_t token;
    usec_t asked, deadline, stop_timeout_usec; /* boottime, boottime, duration (USEC_INFINITY: not told) */

    /* the command */
    sd_event_source *start;
    struct supervise *supervise;
    pid_t self;                      /* ours: the command dies with us */
    pid_t pid;                       /* told to berthd; 0: not started */
    usec_t started;                  /* boottime; 0: not started */

    /* its end */
    int status;                      /* what we exit with when it is told, or cannot be */
    json_t *ended;                   /* parameters of io.berth.Ended; NULL: it has not ended */
    sd_event_source *tell_limit;
};

/* Ends the loop with this status; the first one counts. */
void adhoc_exit(struct adhoc *a, int status);

/* Asks berthd. 0, or an exit status whose reason was printed. */
int adhoc_talk_start(struct adhoc *a);
/* Closes the connection: a claim that waits is withdrawn by that. */
void adhoc_talk_stop(struct adhoc *a);
void adhoc_talk_started(struct adhoc *a);
/* The lease was lost, and the command was not begun: tells berthd so, which then waits again for the permits. */
void adhoc_talk_not_begun(struct adhoc *a);
/* Says what is waited for, where somebody reads it: an answer "waiting" came (params), or berthd is away (NULL); the command has ended
 * and left processes behind. */
void adhoc_waiting_hear(struct adhoc *a, const json_t *params);
void adhoc_waiting_left(struct adhoc *a);
void adhoc_waiting_end(struct adhoc *a);

/* The command is over, or will never be there: tells berthd, then exits with this status; if berthd is away just now, when it is back or
 * after a short while. ended: NULL if it never ran. result: as io.berth.Ended, or NULL. */
void adhoc_end(struct adhoc *a, int status, const struct supervise_result *ended, const char *result);
/* For run-talk.c, while telling: Hold has an answer; its connection is lost. */
void adhoc_told(struct adhoc *a, const struct client_reply *reply);
void adhoc_tell_anew(struct adhoc *a);

/* The grant is there: starts the command once everything that berthd has said by now was read, and as soon as the deadline leaves time
 * for it. */
void adhoc_command_start(struct adhoc *a);
void adhoc_command_set_deadline(struct adhoc *a, usec_t deadline);
void adhoc_command_stop(struct adhoc *a, enum supervise_reason reason);

/* Takes over the signals; those that the caller ignores stay ignored. Negative errno. */
int adhoc_signals_init(struct adhoc *a);
/* For the child before its exec: as the caller had it. 0 or an errno, positive. */
int adhoc_signals_restore(const struct adhoc *a);
/* Stops this process, as a terminal's Ctrl-Z does; returns after SIGCONT. */
void adhoc_signals_suspend(void);
