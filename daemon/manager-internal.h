/* SPDX-License-Identifier: MIT */
#pragma once

/* The manager: wires the run table, state, stores, scheduler, executor and adhoc together. No other module
 * includes this header.
 *     manager.c           new and free; what clients see and do
 *     manager-jobs.c      jobs as clients see, start and stop them
 *     reload.c            the settings in force
 *     manager-stores.c    the stores of this host
 *     manager-run.c       the life of a run: begin, start, stop, end
 *     manager-claims.c    what the stores report about claims: granted, refused, lost, released
 *     manager-turn.c      turns of jobs that hosts share: asked, committed, given back
 *     manager-move.c      moves of claims, of any host
 *     manager-handlers.c  what executor and adhoc report about runs
 *     recovery.c          runs of an earlier berthd
 *     requeue.c           granted runs that could not begin
 *     service.c           the service manager; draining; the end
 *     manager-times.c     how long runs hold their permits: stored, and sent to other hosts
 *     blocked-by.c        why a run waits */

#include <syslog.h>

#include "base/removals.h"
#include "base/timer.h"
#include "daemon/adhoc/adhoc.h"
#include "daemon/executor/executor.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/zones.h"
#include "daemon/manager.h"
#include "daemon/runs/run-log.h"
#include "daemon/runs/run-table.h"
#include "daemon/state/state.h"
#include "daemon/counters.h"
#include "daemon/times-table.h"

enum manager_phase {
    MANAGER_PHASE_NEW,
    MANAGER_PHASE_RECOVERING, /* waits for the runner and guards; begins nothing */
    MANAGER_PHASE_READY,
    MANAGER_PHASE_STOPPING, /* begins nothing more, and stops all runs */
    MANAGER_PHASE_EXITING,  /* the stores end their sessions; then the loop ends */
};

struct manager_times {
    struct times known;
    struct timer timer; /* when they are stored and sent */
    usec_t sent;        /* boottime of the last sending; 0: not by this berthd */
    bool is_changed;    /* since they were stored */
    bool is_urgent;     /* a name has enough runs for an estimate since then */
};

struct manager {
    sd_event *event;
    struct events *events;
    struct settings *settings;
    char *config;
    struct removals *removals;
    struct state state;
    enum manager_phase phase;
    struct store *host_store;
    struct store *cluster_store; /* NULL: no redis section */
    struct executor *executor;
    struct adhoc *adhoc;
    struct scheduler *scheduler;
    struct run_table runs;
    struct counters counters;
    struct manager_times times;
    int recover_error; /* a run could not be recovered: berthd exits and never gets ready */
    bool drained;      /* `berth drain`; also in state */
    bool has_service_manager; /* NOTIFY_SOCKET */
    bool stop_jobs_wanted;    /* manager_expect_stop() was called */
    sd_event_source *status_timer;
    sd_event_source *exit_timer; /* while stopping */
    struct list idle_watches;    /* struct manager_idle_watch */
    struct list moves;           /* manager-move.c */
    size_t n_stores_stopping;
    char text[ADHOC_TEXT_SIZE]; /* explanations for clients, until the next call */
};

/* Writes a line that is no event to the journal; priority as in syslog(3). */
#define manager_log(m, priority, ...) journal_log(events_get_journal((m)->events), (priority), __VA_ARGS__)

static inline struct manager *manager_of(const struct run *run) {
    return list_entry(run->table, struct manager, runs);
}

static inline struct run_time manager_now(void) {
    return (struct run_time){.realtime = clock_realtime(), .boottime = clock_boottime()};
}

/* --- reload.c --- */
/* Looks up the accounts that the settings name, and logs those that are missing. Returns 0 or -ENOMEM. */
int manager_find_accounts(struct journal *j, struct settings *settings);
void manager_config_differs(struct manager *m); /* the runner read another config: reloads */

/* --- manager-stores.c --- */
int manager_make_stores(struct manager *m);
/* Declares the pools of this host's config to a store, and whether the host is drained. Returns 0 or
 * -ENOMEM. */
int manager_declare(struct manager *m, struct store *s);

/* --- manager-run.c --- */
void manager_run_begin(struct run *r);               /* pending → waiting: claims its permits */
void manager_run_resume(struct run *r);              /* waits on after a restart, with its recorded claims */
void manager_claim_cluster(struct run *r);           /* after the run got its host permits */
void manager_arm_queue_timeout(struct run *r);       /* pending or waiting; the timeout of Redis bounds -n */
void manager_run_started(struct run *r, pid_t pid, usec_t started /* boottime */);
/* Ends a run that has no process (any more): returns its permits and makes it DONE. */
void manager_run_end(struct run *r, enum run_result result);
/* Ends a run that is refused its permits. pool: NULL: none; with a pool, `why` must be static. */
void manager_run_refuse(struct run *r, const char *why, const char *pool);
void manager_run_withdraw(struct run *r, enum run_result result, const char *reason);
/* Returns the cluster's deadline if the processes of the run must be gone by then; else USEC_INFINITY. */
usec_t manager_run_deadline(const struct run *r);
/* Starts a run that is granted and, if it needs one, has its turn. */
void manager_run_taken(struct run *r);

/* --- manager-claims.c --- */
extern const struct store_listener manager_listener; /* .userdata: NULL, to be set */
/* Goes on with a run of which a store has released a claim, or which has none. */
void manager_run_released(struct run *r);

/* --- manager-turn.c --- */
enum scheduler_turns manager_may_ask(void *manager);
void manager_pass(const char *pool, int64_t due, const char *id, void *manager);
void manager_turns_decided(const char *pool, int64_t due, void *manager);
void manager_turn_refused(struct claim *c, const struct store_turn_answer *answer, void *manager);
void manager_turn_committed(struct claim *c, bool is_ours, void *manager);
void manager_turn_open(struct store *s, const struct store_open_turn *turn, void *manager);
void manager_turn_superseded(struct claim *c, const struct store_ended_turn *turn, void *manager);
/* Returns whether a granted run may start. False: its turn is being committed first, or the run was withdrawn. */
bool manager_turn_is_ours(struct run *r);
void manager_turn_give_back(struct run *r); /* ends a run that did not start, for another host */

/* --- manager-handlers.c --- */
extern const struct adhoc_handler manager_adhoc_handler;       /* .userdata: NULL, to be set */
extern const struct executor_handler manager_executor_handler; /* likewise */

/* --- requeue.c --- */
/* Returns the permits of a granted run whose command did not and will not run; the run waits again. False:
 * it must not wait (a stop or a drain), so the caller ends it. */
bool manager_run_requeue(struct run *r);
/* Claims again, once the permits are free and nothing of the attempt is left. */
void manager_requeue_continue(struct run *r);

/* --- recovery.c --- */
int manager_recover(struct manager *m);
/* Of struct executor_handler and struct adhoc_handler. */
void manager_recover_progress(void *manager); /* makes berthd READY once all runs are known */
int manager_recover_job_run(const struct message *state, const char *id, struct run **ret, void *manager);
int manager_recover_adhoc_run(struct run *run, void *manager);
bool manager_recover_run_failed(const char *id, int error, void *manager);
void manager_recover_hold_failed(const char *what, int error, void *manager);

/* --- manager-move.c --- */
/* Of the store's listener: a claim of this host was moved, by any host. */
void manager_run_moved(struct claim *c, void *userdata);

/* --- manager-times.c --- */
int manager_times_init(struct manager *m); /* loads what an earlier berthd stored. 0 or a negative errno */
void manager_times_done(struct manager *m);
void manager_times_add(struct run *r, usec_t held_usec); /* a run that is over has returned its permits */
void manager_times_store(struct manager *m);             /* for the next berthd */

/* --- service.c --- */
void manager_service_ready(struct manager *m);
void manager_service_changed(struct manager *m); /* updates the status line, after a while */
void manager_service_reloading(void);
void manager_idle_check(struct manager *m); /* calls the idle watches if no run is left */
