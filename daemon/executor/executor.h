/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts runs of jobs through berth-runner, follows them through their guards, and reports their ends. Finds
 * those of an earlier berthd at start. Knows no store, no job definition and no client. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "base/message.h"
#include "daemon/runs/run-table.h"

struct executor;

struct executor_end { /* with run->end, run->started and run->reason filled in */
    enum run_result result;
    bool is_fenced;     /* stopped at its deadline */
    int64_t spare_usec; /* fenced: its last process ended that long before the end of the lease; negative:
                           after */
};

struct executor_handler {
    /* When the processes of the run must be gone. USEC_INFINITY: never; 0: not known yet, the guard's own
     * deadline stands. */
    usec_t (*get_deadline)(const struct run *run, void *userdata);
    void (*on_started)(struct run *run, pid_t pid /* 0: gone already */, usec_t started /* boottime */,
                       void *userdata);
    /* The guard has begun to stop the command, for a reason of its own. */
    void (*on_stopping)(struct run *run, enum supervise_reason reason, void *userdata);
    /* A process of the run is there long after its kill; again each hour. what: for people. */
    void (*on_stuck)(struct run *run, const char *what, void *userdata);
    /* Nothing of the granted run was begun. True: it was requeued; false: on_ended() follows. */
    bool (*on_not_begun)(struct run *run, void *userdata);
    /* The runner has confirmed that nothing is left of the attempt of a requeued run. */
    void (*on_cleared)(struct run *run, void *userdata);
    /* Nothing of the run is left. */
    void (*on_ended)(struct run *run, const struct executor_end *end, void *userdata);
    /* A guard or a report of an unknown run: adds it to the table, in state STARTING. Leaves its
     * started.realtime at 0 if the journal may lack the event `started`. -EBADMSG: the message does not
     * describe that run. */
    int (*on_recovered)(const struct message *state, const char *id, struct run **ret, void *userdata);
    /* That run cannot be recovered. True: berthd is about to end, and the next one tries again. */
    bool (*on_unrecoverable)(const char *id, int error, void *userdata);
    /* executor_is_recovered() may have changed. */
    void (*on_recovery_progress)(void *userdata);
    /* The runner has read another config. */
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
    usec_t silence_usec;     /* a guard found at start that has not sent its state by then is killed */
};

/* journal, runs: the caller's, and kept. */
int executor_new(struct executor **ret, sd_event *event, struct journal *journal, struct run_table *runs,
                 const struct executor_options *options, const struct executor_handler *handler);
struct executor *executor_free(struct executor *executor);
DEFINE_CLEANUP(struct executor, executor_free)
/* Connects to the runner, or starts it. */
int executor_connect(struct executor *executor);
/* All that an earlier berthd left running is in the table. */
bool executor_is_recovered(const struct executor *executor);
bool executor_is_connected(const struct executor *executor); /* to the runner */

/* To be called when runs begin or end to wait: has guards prepared for those that are near, soon, and gives up those of others. */
void executor_prepare(struct executor *executor);
/* Gives up all guards that are prepared, because the config has changed. Their runs are started otherwise. */
void executor_withdraw_prepared(struct executor *executor);
/* Sends the grant to the guard that is prepared, or `start` for a granted run; sent again when the runner is back, if it is not there now. Idempotent by
 * run. */
void executor_start(struct executor *executor, struct run *run);
/* Whether anything of the run may exist outside of berthd. */
bool executor_may_have_begun(const struct run *run);
/* Stops a run that may have begun, for run->stop_reason. The runner kills what is left after its stop
 * timeout. */
void executor_stop(struct executor *executor, struct run *run);
/* The runner kills the rest of the run after that time. */
void executor_kill_after(struct executor *executor, struct run *run, usec_t usec);
/* Sends the deadline to the guard. */
void executor_push_deadline(struct executor *executor, struct run *run);
/* The pid of the guard; 0: none is connected. */
pid_t executor_guard_pid(const struct run *run);
/* Drops the connection to the guard, which goes on. */
void executor_detach(struct run *run);
