/* SPDX-License-Identifier: MIT */
#pragma once

/* One `berth run`: the root object of its event loop. It begins with a claim, a grant starts the command,
 * and adhoc_exit() ends the loop. */

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>

#include "base/demand.h"
#include "base/name.h"
#include "base/process/gate.h"
#include "base/process/supervise.h"
#include "base/timer.h"
#include "cli/client.h"
#include "cli/run/options.h"

/* Replies are read before deadlines are checked, because after a suspend or a SIGSTOP the new deadline may
 * be in the socket. CONT is passed on after both. A Ctrl-C is handled before the end of the command that it has caused. */
#define ADHOC_PRIORITY_CONNECTION (SD_EVENT_PRIORITY_IMPORTANT - 10) /* supervise's timer is at IMPORTANT */
#define ADHOC_PRIORITY_SIGNALS (SD_EVENT_PRIORITY_NORMAL - 10)
#define ADHOC_PRIORITY_CONTINUE (SD_EVENT_PRIORITY_NORMAL + 10)

enum adhoc_phase {
    ADHOC_PHASE_CLAIMING,  /* connected or reconnecting; queued or not yet */
    ADHOC_PHASE_RUNNING, /* granted: the command runs (supervise), or starts when there is time */
    ADHOC_PHASE_REPORTING, /* the command is over; the report is not confirmed */
    ADHOC_PHASE_DONE,    /* the exit status is known */
};

struct run_facts {                       /* of the grant, for the command's environment; sent through its gate */
    bool is_nested;                      /* the variables of the outer run stay */
    uint64_t token;
    char run[ID_TEXT_SIZE], host[NAME_MAX_LENGTH + 1], namespace[NAME_MAX_LENGTH + 1], pools[DEMANDS_TEXT_SIZE];
};

struct adhoc {
    sd_event *event;
    struct run_options options;
    enum adhoc_phase phase;
    int signals_fds[2];                  /* what this process receives in place of its command: all but CONT, CONT; -1: none yet */
    int end_signal;                      /* 0: this process ends with an exit status */
    char run[ID_TEXT_SIZE];              /* "": berthd has not sent it yet */
    usec_t claimed;                      /* boottime of the first Hold */
    struct {
        sigset_t mask;                   /* restored for the command, like the next two */
        struct sigaction sigpipe, sigchld;
    } caller;
    struct {                             /* connection.c */
        struct client *client;           /* NULL: berthd is away, or not needed */
        struct timer retry, wait_limit;
        struct timer first_reply;        /* time limit of the first reply on this connection */
        usec_t retry_usec;               /* pause before the next attempt */
        usec_t away_since;               /* boottime; 0: berthd answers */
        usec_t wait_deadline;            /* boottime; USEC_INFINITY: none */
        bool wait_grace;                 /* wait_deadline has passed, WAIT_GRACE has not */
        bool is_attaching;               /* the call under way names a run that berthd should know */
    } connection;
    struct {                             /* waiting.c */
        struct timer timer;
        struct client *pools_client;     /* a call of Pools under way; NULL: none */
        char blocked_by[512];            /* from berthd's last reply; "": only Pools shows the reason */
        char printed[640];               /* the last line; "": none */
    } waiting;
    struct {
        bool is_lost;                    /* the lease is lost: no command may begin under this grant */
        int hold_fd;                     /* write end of the hold's FIFO; -1: none */
        struct run_facts facts;
        usec_t deadline;                 /* boottime; USEC_INFINITY: none */
        usec_t stop_timeout_usec;        /* USEC_INFINITY: berthd sent none */
    } grant;
    struct {                             /* command.c */
        struct defer prepare, start;
        struct supervise *prepared;      /* its child waits at the gate; NULL: none */
        struct supervise *supervise;     /* NULL: not started */
        const struct supervise_term *term; /* of either */
        struct gate gate;
        pid_t own_pid;                   /* of this process, with which the command dies */
        pid_t pid;                       /* 0: not started */
        usec_t started;                  /* boottime; 0: not started */
    } command;
    struct {                             /* report-end.c */
        int status;                      /* exit status, after berthd confirmed the report or at the limit */
        json_t *params;                  /* of io.berth.Ended; NULL: the command has not ended */
        struct timer limit;
    } report;
    struct {                             /* say.c */
        char text[4096];                 /* at most PIPE_BUF: a pipe with room takes all of it at once */
        size_t size;
    } unwritten;
};

/* Ends the loop with this status; later calls change nothing. */
void adhoc_exit(struct adhoc *a, int status);
/* To be called before adhoc_exit(): this process ends by the signal instead, if it is one that people and service managers send. */
void adhoc_end_by(struct adhoc *a, int signal);

/* Writes a message to standard error, as soon as that does not have to wait; run_say_rest() waits for it, at the end of the run. */
void run_say(struct adhoc *a, const char *format, ...) _printf_(2, 3);
void run_say_rest(struct adhoc *a);

/* Packs the parameters of Hold; NULL: no memory. */
json_t *run_hold_params(const struct adhoc *a);
int run_connection_init(struct adhoc *a);
/* Sends the claim to berthd. Returns 0, or an exit status whose reason was printed. */
int run_connection_start(struct adhoc *a);
/* Closes the connection, which withdraws a waiting claim. */
void run_connection_stop(struct adhoc *a);
void run_connection_report_started(struct adhoc *a);
void run_connection_report_stuck(struct adhoc *a, const char *what); /* the process that survives its kill */
/* After a loss of the lease before the command began: reports that to berthd and claims the permits
 * again. */
void run_connection_give_back(struct adhoc *a);
/* Show on standard error what `berth run` waits for: after a reply "waiting" (params) or while berthd is
 * away (NULL); after the command left processes behind. */
int run_waiting_init(struct adhoc *a);
void run_waiting_update(struct adhoc *a, const json_t *params);
void run_waiting_on_left(struct adhoc *a);
void run_waiting_stop(struct adhoc *a);

/* After the end of the command, or if it will never start: reports that to berthd, with retries for a short
 * time, then exits with this status. ended: NULL if the command never ran. result: as in io.berth.Ended, or
 * NULL. */
void report_end(struct adhoc *a, int status, const struct supervise_result *ended, const char *result);
int report_end_init(struct adhoc *a);
/* Called by connection.c in ADHOC_PHASE_REPORTING: for a reply to Hold; after the connection is lost. */
void report_end_on_reply(struct adhoc *a, const struct client_reply *reply);
void report_end_retry(struct adhoc *a);

int run_command_init(struct adhoc *a);
/* Near the head of a queue: forks the command's child, which waits at its gate for the grant. */
void run_command_prepare(struct adhoc *a);
/* Ends that child, because the claim is gone or its grant is void. */
void run_command_withdraw(struct adhoc *a);
/* After a grant: starts the command when all messages of berthd were read and the deadline leaves enough
 * time. */
void run_command_start(struct adhoc *a);
void run_command_set_deadline(struct adhoc *a, usec_t deadline);
void run_command_stop(struct adhoc *a, enum supervise_reason reason);

/* Takes over the signals, except those that the caller ignores. Negative errno. */
int run_signals_init(struct adhoc *a);
/* Restores the caller's signals in the child. 0 or a positive errno. */
int run_signals_restore(const struct adhoc *a);
/* Stops this process, as a terminal's Ctrl-Z does; returns after SIGCONT. */
void run_signals_suspend(void);
