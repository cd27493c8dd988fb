/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts runs of jobs through berth-runner, follows them through their guards, and reports their ends.
 * Recovers those of an earlier berthd at start. Knows no store, no job definition and no client. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "base/message.h"
#include "daemon/runs/run-table.h"

struct executor;

struct executor_end { /* with run->end, run->started and run->reason filled in */
    enum run_result result;
    bool is_fenced;     /* stopped at its deadline */
    int64_t spare_usec; /* fenced: from the end of its last process to that of the lease; may be negative */
};

struct executor_handler {
    /* Returns when the processes of the run must be gone. USEC_INFINITY: never; 0: not known yet, so the
     * guard keeps its deadline. */
    usec_t (*get_deadline)(const struct run *run, void *userdata);
    usec_t (*get_timeout)(const struct run *run, void *userdata); /* of its job; USEC_INFINITY: none */
    void (*on_started)(struct run *run, pid_t pid /* 0: gone already */, usec_t started /* boottime */,
                       void *userdata);
    /* The guard has begun to stop the command by itself. */
    void (*on_stopping)(struct run *run, enum supervise_reason reason, void *userdata);
    /* A process of the run outlives its kill; called again each hour. what: for people. */
    void (*on_stuck)(struct run *run, const char *what, void *userdata);
    /* The runner has killed the processes of a run of `berth run`, whose client did not. */
    void (*on_reaped)(struct run *run, void *userdata);
    /* The guard of the run does not answer (what: the guard, for people), or answers again (NULL). */
    void (*on_silent)(struct run *run, const char *what, void *userdata);
    /* The command of a granted run was not begun. True: the run was requeued; false: on_ended() follows. */
    bool (*on_not_begun)(struct run *run, void *userdata);
    /* The runner confirmed that nothing is left of the attempt of a requeued run. */
    void (*on_cleared)(struct run *run, void *userdata);
    /* No process of the run is left. */
    void (*on_ended)(struct run *run, const struct executor_end *end, void *userdata);
    /* An unknown run has a guard or a report: adds the run to the table, in state STARTING. Leaves its
     * started.realtime at 0 if the journal may lack the event `started`. -EBADMSG: the message does not
     * describe that run. */
    int (*on_recovered)(const struct message *state, const char *id, struct run **ret, void *userdata);
    /* That run cannot be recovered. Returns true if berthd exits, so that the next one tries again. */
    bool (*on_unrecoverable)(const char *id, int error, void *userdata);
    /* executor_is_recovered() may have changed. */
    void (*on_recovery_progress)(void *userdata);
    /* The runner read another config. */
    void (*on_config_differs)(void *userdata);
    void *userdata;
};

struct executor_options {  /* all copied */
    const char *directory; /* the runtime directory */
    const char *namespace;
    const char *host;
    const char *with_runner; /* as in runner_link_new() */
    const char *config;      /* likewise */
    usec_t margin_usec;      /* between a deadline and the end of the lease */
    usec_t silence_usec;     /* a guard found at start is killed if it sends no state for this long */
};

/* journal and runs belong to the caller and must outlive the executor. */
int executor_new(struct executor **ret, sd_event *event, struct journal *journal, struct run_table *runs,
                 const struct executor_options *options, const struct executor_handler *handler);
struct executor *executor_free(struct executor *executor);
DEFINE_CLEANUP(struct executor, executor_free)
/* Connects to the runner, or starts it. */
int executor_connect(struct executor *executor);
/* Returns whether all runs that an earlier berthd left are in the table. */
bool executor_is_recovered(const struct executor *executor);
bool executor_is_connected(const struct executor *executor); /* to the runner */

/* Called when runs begin or end to wait. Soon after, has guards prepared for runs that are near, and gives
 * up others. */
void executor_prepare(struct executor *executor);
/* Gives up all prepared guards after a reload. Their runs start as if they had none. */
void executor_withdraw_prepared(struct executor *executor);
/* Starts a granted run: sends the grant to its prepared guard, or `start` to the runner. A runner that is
 * not connected receives it later. Idempotent by run. */
void executor_start(struct executor *executor, struct run *run);
/* Returns whether the run may have a guard. */
bool executor_may_have_begun(const struct run *run);
/* Stops a run that may have begun, for run->stop_reason. After its stop timeout the runner kills what is
 * left. A `berth run` is stopped by its client; only what is left is killed here. */
void executor_stop(struct executor *executor, struct run *run);
/* Has the runner kill the run after that time. */
void executor_kill_after(struct executor *executor, struct run *run, usec_t usec);
/* Sends the deadline to the guard. */
void executor_push_deadline(struct executor *executor, struct run *run);
/* Asks the guards of runs without a deadline whether they live, and looks soon for those that did not answer. A guard with a
 * deadline is asked each time that it is sent. */
void executor_ask_guards(struct executor *executor);
/* Returns the pid of the guard; 0: none is connected. */
pid_t executor_guard_pid(const struct run *run);
/* Drops the connection to the guard, which goes on. */
void executor_detach(struct run *run);
