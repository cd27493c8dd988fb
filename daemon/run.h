/* SPDX-License-Identifier: MIT */
#pragma once

/* One execution of a job or of `berth run`, and its claims. Data and the state change; what is done in each state is decided in
 * daemon/manager-run.c.
 *
 *     pending → waiting → starting → running → stopping → done
 *
 * run_set_state() alone changes the state and moves the run between the manager's lists. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/demand.h"
#include "base/timer-heap.h"
#include "base/list.h"
#include "base/process/supervise.h"
#include "conf/settings.h"
#include "store/claim.h"

struct manager;
struct run;
struct guard_link;
struct hold;

enum run_kind { RUN_KIND_JOB, RUN_KIND_ADHOC };

enum run_state {        /* the list that holds it: manager->runs[state] */
    RUN_STATE_PENDING,  /* not asked yet (berthd still recovers, or overlap = "queue") */
    RUN_STATE_WAITING,  /* for host permits, then for cluster permits */
    RUN_STATE_STARTING, /* granted; the runner or the client was told */
    RUN_STATE_RUNNING,
    RUN_STATE_STOPPING, /* its stop has begun; processes may be alive */
    RUN_STATE_DONE,     /* nothing of it runs; its permits are given back or about to be */
};
#define RUN_STATES (RUN_STATE_DONE + 1)
const char *run_state_name(enum run_state state);

enum run_result { /* as in `berth runs --json` */
    RUN_RESULT_NONE, RUN_RESULT_SUCCESS, RUN_RESULT_FAILURE, RUN_RESULT_TIMEOUT, RUN_RESULT_STOPPED, RUN_RESULT_LEASE_LOST,
    RUN_RESULT_QUEUE_TIMEOUT, RUN_RESULT_NOT_STARTED, RUN_RESULT_GUARD_DIED,
};
const char *run_result_name(enum run_result result); /* NULL for NONE */
enum run_result run_result_parse(const char *name);  /* NONE if it is no result's name */

struct run_watch { /* someone who wants to hear of every change of a run: a client's call */
    struct list link;
    void (*on_change)(struct run_watch *watch, struct run *run); /* may remove itself */
};

struct run {
    struct manager *manager;
    struct list link;               /* on manager->runs[state] */
    char id[ID_TEXT_SIZE];
    enum run_kind kind;
    enum run_state state;
    char hash[17];                  /* job: of its definition when it was begun */
    const char *name;               /* job or label */
    uid_t uid;                      /* ad hoc: who asked */

    size_t n_demands;               /* all pools, as asked; may be 0 for a job */
    const struct demand *demands;
    /* A claim on both scopes takes its host permits (and places under host-limit) first and queues in the cluster then. */
    struct claim host_claim, cluster_claim; /* n_demands 0: no such part */
    enum on_lease_lost on_lease_lost;
    usec_t head_start_usec, stop_timeout_usec, queue_timeout_usec;
    bool nowait;
    bool granted;                   /* holds, or held, its permits: a `released` event is owed */
    bool behind;                    /* job, pending: overlap = "queue", it begins when the one before it is over */
    bool recorded;                  /* waiting/RUN is there */
    bool queued_told;               /* the event `queued` was written */
    bool starting_sent;             /* job: `start` went to the runner; a guard may exist */
    bool again;                     /* granted, and it could not begin: waits again when its permits are back and nothing is left of it */
    bool clearing;                  /* job, again: the runner was asked to say that nothing is left */
    usec_t start_due;               /* job: nothing of it can be alive then if no guard was heard of; boottime; 0: there is no such time */
    bool stop_wanted;               /* to be told to the guard or client as soon as there is one */
    bool may_be_due;                /* from when the manager knows it until it is over */
    bool ended_told;                /* ad hoc: the client said how its command ended */
    bool hold_over;                 /* ad hoc: nobody has it any more; what the client may still say is waited for */
    bool unheard;                   /* ad hoc: found at start, and its client has not come back (yet) */
    bool hold_failed;               /* ad hoc: granted, and then its hold could not be made; the reason says why */

    usec_t queued_realtime, started_realtime, ended_realtime; /* 0: not yet */
    usec_t queued_boottime, started_boottime, ended_boottime;
    pid_t pid;                      /* of the command; 0: none */
    enum supervise_reason stop_reason;

    enum run_result result;
    int exit_code, signal;          /* -1: none */
    const char *reason;             /* why it was refused, not started or stopped; "" : nothing to say */
    char *reason_text;              /* what reason points to, if it was made for this run */

    struct guard_link *guard;       /* job: connection to its guard, or NULL */
    bool guard_wanted;              /* job: it lives, and could not be connected to: tried again */
    struct hold *hold;              /* ad hoc: granted, or NULL */
    int hold_fd;                    /* ad hoc: write end of the hold that the client has not got yet; -1: none */
    pid_t client_pid;               /* ad hoc: of `berth run`; 0: not there */
    struct due due;                 /* queue timeout, later: kill by the runner when the guard hangs */
    void (*on_due)(struct run *run);
    struct list watches;            /* struct run_watch */
    struct demand first_demands[];  /* what demands and name point to: one piece of memory, as thousands may wait */
};

/* A pending run on no list, with fresh ids (-errno of getrandom(2), -ENOMEM). demands are split in two: those for which is_host
 * says so also go to the host claim, those for which is_cluster does to the cluster claim (a pool with host-limit is in both). */
struct run_spec {
    enum run_kind kind;
    const char *id;   /* NULL: a fresh one */
    const char *name;
    const struct demands *pools;
};
int run_new(struct run **ret, struct manager *manager, const struct run_spec *spec, const struct settings *settings);
/* The run is on no list afterwards; its edges (guard, hold, time limit) are the manager's to end before. */
struct run *run_free(struct run *r);
DEFINE_CLEANUP(struct run, run_free)
/* lists: of the manager, one a state. Tells the watches. */
void run_set_state(struct run *r, struct list lists[static RUN_STATES], enum run_state state);
void run_changed(struct run *r); /* tells the watches: position, deadline ... */
void run_set_reason(struct run *r, const char *format, ...) _printf_(2, 3); /* the first one stays */
void run_clear_reason(struct run *r);

/* The cluster's or the host's: what is shown as BERTH_TOKEN. 0: none. */
uint64_t run_token(const struct run *r);
bool run_is_over(const struct run *r);
/* All that it asks for, as "db:2,net:1"; "" without pools. */
const char *run_format_pools(const struct run *r, char buffer[static DEMANDS_TEXT_SIZE]);
void run_get_pools(const struct run *r, struct demands *ret);
/* "queue wait" and "run time" so far or in the end. */
usec_t run_wait_usec(const struct run *r, usec_t now_boottime);
usec_t run_time_usec(const struct run *r, usec_t now_boottime);

void run_watch_add(struct run *r, struct run_watch *watch);
void run_watch_remove(struct run_watch *watch); /* idempotent */
