/* SPDX-License-Identifier: MIT */
#pragma once

/* One execution of a job or of `berth run`, and its claims. This module has the data and changes the state;
 * daemon/manager-run.c acts in each state. The run table (daemon/runs/run-table.h) owns all runs.
 *
 *     retrying → pending → waiting → starting → running → stopping → done
 *
 * run_set_state() alone changes the state and moves the run between the lists of the run table. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/demand.h"
#include "base/timer-heap.h"
#include "base/list.h"
#include "base/process/supervise.h"
#include "conf/settings.h"
#include "daemon/runs/run-origin.h"
#include "store/claim.h"

struct run;
struct run_table;
struct adhoc;
struct executor;
struct guard_link;
struct hold;

enum run_kind { RUN_KIND_JOB, RUN_KIND_ADHOC };

/* The run is on run_table->lists[state]. */
enum run_state {
    RUN_STATE_RETRYING, /* another attempt or a restart, which begins at job.begin_due; holds no permits */
    RUN_STATE_PENDING,  /* no claim yet (berthd still recovers, or overlap = "queue") */
    RUN_STATE_WAITING,  /* for host permits, then for cluster permits */
    RUN_STATE_STARTING, /* granted; sent to the runner or the client */
    RUN_STATE_RUNNING,
    RUN_STATE_STOPPING, /* its stop has begun; processes may be alive */
    RUN_STATE_DONE,     /* no process is left; its permits are returned or about to be */
};
#define RUN_STATES (RUN_STATE_DONE + 1)
const char *run_state_name(enum run_state state);

enum run_result { /* as in `berth runs --json` */
    RUN_RESULT_NONE, RUN_RESULT_SUCCESS, RUN_RESULT_FAILURE, RUN_RESULT_TIMEOUT, RUN_RESULT_STOPPED, RUN_RESULT_LEASE_LOST,
    RUN_RESULT_QUEUE_TIMEOUT, RUN_RESULT_NOT_STARTED, RUN_RESULT_GUARD_DIED,
    RUN_RESULT_HOST_LOST, /* the host went down before the end was known */
};
#define RUN_RESULTS (RUN_RESULT_HOST_LOST + 1)
const char *run_result_name(enum run_result result); /* NULL for NONE */
enum run_result run_result_parse(const char *name);  /* NONE if it is no result's name */

struct run_watch { /* called at every change of a run, for the call of a client */
    struct list link;
    void (*on_change)(struct run_watch *watch, struct run *run); /* may remove itself */
};

struct run_terms { /* what was requested besides pools */
    enum on_lease_lost on_lease_lost;
    bool nowait;
    usec_t head_start_usec, stop_timeout_usec, queue_timeout_usec;
};

struct run_time { /* 0: not yet */
    usec_t realtime, boottime;
};

struct run_start {
    usec_t realtime, boottime; /* 0: not yet */
    usec_t granted_boottime;   /* 0: not granted, or before this berthd started */
    pid_t pid;                 /* of the command; 0: not running */
};

struct run_end {
    usec_t realtime, boottime; /* 0: not yet */
    enum run_result result;
    int exit_code, signal;     /* -1: none */
    char *stuck;               /* before the end, for people: while it stops, a process that survived its kill; before, a guard
                                * that does not answer; or NULL */
};

struct run_timer { /* the armed time limit: queue-timeout, later a kill if the guard hangs */
    struct heap_timer due;
    void (*on_elapsed)(struct run *run);
    bool is_reserved;          /* has places in the run table's heaps, from run_table_add() to its end */
};

/* A granted run whose command could not be started: it waits again. */
enum run_requeue {
    RUN_REQUEUE_NONE,
    RUN_REQUEUE_RETURNING, /* returns its permits, then claims them again */
    RUN_REQUEUE_CLEARING,  /* job: the runner must also confirm that nothing of the attempt is left */
};

struct run_other { /* the run for which `berth start` is skipped */
    char run[ID_TEXT_SIZE], host[NAME_MAX_LENGTH + 1]; /* "": not known */
};

struct job_run {                    /* a run of a job, executed by berth-runner and a guard (daemon/executor) */
    struct list of_job;             /* on job->runs, until it is over */
    struct executor *executor;      /* NULL: none yet */
    char hash[17];                  /* of the job's definition when the run began */
    bool is_turn_noted;             /* scheduler_turn_taken() was called */
    bool is_skipped;                /* of `berth start`: not begun, because `other` is not over */
    bool is_given_back;             /* the release of its claim gives the turn back */
    bool queued_by_overlap;         /* pending: begins after the job's other runs */
    bool was_prepared;              /* the runner was asked to prepare it */
    bool start_sent;                /* `start` went to the runner; a guard may exist */
    bool guard_wanted;              /* the guard lives, but the connection failed and is retried */
    struct run_origin origin;
    struct claim_turn *turn;        /* of its due time, if hosts share the job (R18); owned, NULL: none */
    struct run_other *other;        /* skipped: of another host; owned, NULL: not known */
    uint32_t next_attempt;          /* over: the release gives the turn back for this attempt; or 0 */
    usec_t next_delay_usec;         /* until that attempt may begin */
    usec_t begin_due, begin_realtime; /* retrying: when it begins */
    char *next_run;                 /* over: the run of the next attempt; owned, NULL: none */
    usec_t due_realtime;            /* of a due time, with splay; 0: none, or unknown since a restart */
    usec_t start_due;               /* boottime: then no process lives without a known guard; 0: none */
    struct guard_link *guard;       /* connection to its guard, or NULL */
};

enum hold_state {
    HOLD_STATE_NONE,     /* not made yet, or held */
    HOLD_STATE_RELEASED, /* no process has it any more; a report of the client may still come */
    HOLD_STATE_FAILED,   /* the run was granted, but its hold could not be made, for run->reason */
};

struct adhoc_run {                  /* a run of `berth run`, which executes its command itself (daemon/adhoc) */
    struct adhoc *owner;            /* NULL: none yet */
    uid_t uid;                      /* of the caller; 0 for a job's run */
    pid_t client_pid;               /* of `berth run`; 0: not connected */
    bool awaits_client;             /* recovered, and its client has not reconnected yet */
    bool end_reported;              /* the client reported how its command ended */
    bool is_reaped;                 /* berth-runner killed its processes, at end.boottime; the client has not reported that yet */
    enum hold_state hold_state;
    struct hold *hold;              /* granted, or NULL */
    int hold_fd;                    /* write end of the hold that the client has not received yet; -1: none */
    struct {
        const char *why, *pool;     /* static text; name in a claim. NULL: not refused for one pool */
    } refusal;
};

struct run {
    struct run_table *table;        /* its owner; NULL: none yet */
    struct list link;               /* on run_table->lists[state] */
    char id[ID_TEXT_SIZE];
    enum run_kind kind;
    enum run_state state;
    const char *name;               /* job or label */
    /* A run with pools of both scopes first takes its host permits (and places under host-limit). */
    struct claim *host_claim, *cluster_claim; /* of claims; without a pool of that scope an empty one, which nobody writes */
    struct run_terms terms;
    bool granted;                   /* holds or held permits: the event `released` must follow */
    struct {
        bool queued;                /* the event is in the journal */
        bool waiting;               /* waiting/RUN exists */
    } recorded;
    bool is_near;                   /* waits and gets ready for its grant (daemon/runs/near.h) */
    enum run_requeue requeue;
    struct run_time queued;
    struct run_start started;
    struct run_end end;
    enum supervise_reason stop_reason; /* sent once guard or client is connected; NONE: no stop */
    const char *reason;             /* why it was refused, not started or stopped; "": none */
    char *reason_text;              /* owned text of reason, or NULL */
    struct run_timer timer;
    struct list watches;            /* struct run_watch */
    struct job_run job;             /* RUN_KIND_JOB */
    struct adhoc_run adhoc;         /* RUN_KIND_ADHOC */
    size_t n_demands;
    const struct demand_ref *demands; /* all pools, as requested; a job may have none */
    size_t n_claims;
    struct claim claims[];          /* one for each scope of its pools. Behind them all demands, then the texts */
};

/* Makes a pending run on no list, in one piece of memory. Demands of host pools go to the host claim, those of cluster pools to the
 * cluster claim, and those of a cluster pool with host-limit to both. Returns 0 or a negative errno. */
struct run_spec {
    enum run_kind kind;
    const char *id;   /* NULL: a new one */
    const char *name;
    const struct demands *pools;
    const char *scopes; /* of the permits that it holds, as run_format_scopes() writes them; NULL: as the config has them */
};
int run_new(struct run **ret, const struct run_spec *spec, const struct settings *settings);
/* The caller has dropped guard link, hold and time limit before. */
struct run *run_free(struct run *r);
DEFINE_CLEANUP(struct run, run_free)
/* lists: of the run table, one for each state. Calls the watches. Aborts on a transition that is not
 * allowed. */
void run_set_state(struct run *r, struct list lists[static RUN_STATES], enum run_state state);
void run_changed(struct run *r); /* calls the watches: a new position, deadline ... */
void run_set_reason(struct run *r, const char *format, ...) _printf_(2, 3); /* the first one stays */
void run_clear_reason(struct run *r);
void run_set_stuck(struct run *r, const char *what); /* printable, or NULL; replaces what is known */

/* Return the cluster claim's number if there is one, else the host claim's. 0: none. */
uint64_t run_token(const struct run *r);
uint64_t run_ticket(const struct run *r);
bool run_is_over(const struct run *r);
/* Writes all demands, as "db:2,net:1"; "" without pools. */
const char *run_format_pools(const struct run *r, char buffer[static DEMANDS_TEXT_SIZE]);
/* Writes a letter for each pool: h, c or b, if the host claim, the cluster claim or both have it. */
#define RUN_SCOPES "hcb"
#define RUN_SCOPES_SIZE (DEMAND_POOLS_MAX + 1)
const char *run_format_scopes(const struct run *r, char buffer[static RUN_SCOPES_SIZE]);
/* Returns the permits requested of a pool; 0: none. */
uint32_t run_get_permits(const struct run *r, const char *pool);
/* Sets the start; its realtime is derived from now. */
void run_set_started(struct run *r, usec_t boottime, struct run_time now);

/* Return the time in queues and the run time, so far or in the end. */
usec_t run_wait_usec(const struct run *r, usec_t now_boottime);
usec_t run_time_usec(const struct run *r, usec_t now_boottime);

void run_watch_add(struct run *r, struct run_watch *watch);
void run_watch_remove(struct run_watch *watch); /* idempotent */
