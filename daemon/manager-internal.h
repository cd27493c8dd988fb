/* SPDX-License-Identifier: MIT */
#pragma once

/* What the manager's own files share; nobody else includes it. Which file does what:
 *     manager.c         made, started; settings and reload
 *     manager-recover.c  at start: finds what runs already, before anything new is granted
 *     manager-list.c    which runs there are, and when something of them is due
 *     manager-run.c     the life of a run: begin, grant, end, release
 *     manager-job.c     triggers: at-start, every, manual; what is remembered of a job
 *     manager-guard.c   runs of jobs: the runner, the guards, reports
 *     manager-again.c   runs that were granted and could not begin: they wait again
 *     manager-found.c   guards found at start
 *     manager-client.c  runs of `berth run`: clients, nesting
 *     manager-hold.c    what they hold, and how they end
 *     manager-record.c  what berthd remembers of itself over a restart
 *     manager-tell.c    how runs end, in sentences for the journal
 *     manager-why.c     what a waiting run waits for
 *     manager-service.c what the service manager is told; draining; the end */

#include <syslog.h>

#include "base/message.h"
#include "base/removals.h"
#include "daemon/adhoc/adhoc.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/manager.h"
#include "daemon/executor/executor.h"
#include "daemon/run-log.h"
#include "daemon/run-table.h"
#include "daemon/state.h"

#define MANAGER_CLIENT_TIME (30 * USEC_PER_SEC)   /* a restored run waits so long for its `berth run` to come back; not longer than */
#define MANAGER_CLIENT_TIME_MIN (3 * USEC_PER_SEC) /* a lease (R4) where that is more than this: it tries again every 2 s at least */
#define MANAGER_SILENCE_MAX (10 * USEC_PER_SEC)   /* of a guard found at start, where there are no leases */
#define MANAGER_LEAVE_SLACK (4 * USEC_PER_SEC) /* when all is stopped: what is not gone so long after its stop timeout is left */

enum manager_phase {
    MANAGER_PHASE_NEW,
    MANAGER_PHASE_RECOVERING, /* waits for the runner, guards; nothing is begun */
    MANAGER_PHASE_READY,
    MANAGER_PHASE_STOPPING,  /* nothing is begun any more; what runs is being stopped */
    MANAGER_PHASE_LEAVING,   /* stores say bye; then the loop ends */
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
    struct store *cluster_store;     /* NULL: no redis section */
    struct executor *executor;
    int recover_error;                /* something that runs could not be taken up: berthd is about to end, and never gets ready */
    struct run_table runs;
    struct scheduler *scheduler;
    sd_event_source *schedule_timer; /* of scheduler_run_due() */
    struct adhoc *adhoc;
    bool drained;                    /* `berth drain`; also a file in the runtime directory */
    bool has_service_manager;        /* NOTIFY_SOCKET */
    bool stop_jobs_wanted;           /* the service manager stops, not restarts, us (manager_expect_stop) */
    sd_event_source *status_timer;
    sd_event_source *leave_timer;    /* while stopping */
    struct list idle_watches;        /* struct manager_idle_watch */
    size_t n_stores_leaving;
    char text[256];                  /* explanations handed to clients, until the next call */
};

/* What is no event, for the journal; priority as in syslog(3). */
#define manager_log(m, priority, ...) journal_log(events_get_journal((m)->events), (priority), __VA_ARGS__)

static inline struct manager *manager_of(const struct run *run) {
    return list_entry(run->table, struct manager, runs);
}

static inline struct run_time manager_now(void) {
    return (struct run_time) {.realtime = clock_realtime(), .boottime = clock_boottime()};
}

/* --- manager-run.c --- */
/* pending → waiting: asks the stores. */
void manager_run_begin(struct run *r);
/* Takes up waiting again after a restart, with the claims as the record has them. */
void manager_run_resume(struct run *r);
/* Its host permits are there, or none are needed: asks for the cluster's. */
void manager_claim_cluster(struct run *r);
/* A run that has no process (any more): its permits go back, it becomes DONE. */
void manager_run_end(struct run *r, enum run_result result);
void manager_run_withdraw(struct run *r, enum run_result result, const char *reason);
void manager_run_started(struct run *r, pid_t pid, usec_t started_realtime);
void manager_arm_queue_timeout(struct run *r); /* pending or waiting; a nowait one is bounded by the Redis timeout */
/* Whether its processes must be gone by the cluster's deadline, and which one that is (USEC_INFINITY: none). */
usec_t manager_run_deadline(const struct run *r);
extern const struct adhoc_handler manager_adhoc_handler; /* .userdata: NULL, to be set */
extern const struct executor_handler manager_executor_handler; /* .userdata: NULL, to be set */
extern const struct store_listener manager_listener; /* .userdata: NULL, to be set */

/* --- manager-again.c --- */
/* Nothing of this granted run ran, nor will any more: it gives its permits back and waits again. False: it is not to wait any more (it is
 * to stop, or this host is drained or stops); then the caller ends it. */
bool manager_run_wait_again(struct run *r);
void manager_requeue_go_on(struct run *r); /* its permits are free, or nothing of the attempt is left: claims once more when both are so */

/* --- manager-recover.c --- */
int manager_recover(struct manager *m);
void manager_recover_progress(void *manager); /* READY once everything that runs is known */
/* Of struct executor_handler and struct adhoc_handler. */
int manager_recover_job_run(const struct message *state, const char *id, struct run **ret, void *manager);
int manager_recover_adhoc_run(struct run *run, void *manager);
void manager_recover_hold_failed(const char *what, int error, void *manager);
bool manager_recover_run_failed(const char *id, int error, void *manager);
/* A run found at start becomes known, and its held or waiting claims to the stores. The run is taken over, also on failure. */
int manager_take_up(struct manager *m, struct run *r, enum run_state state);
/* What runs or waits here and cannot be known for lack of memory or descriptors: berthd ends (70), to be started again, rather than
 * grant what may be held. False: this is no start, or waiting would not help; it is in the journal. */
bool manager_recover_failed(struct manager *m, const char *what, int error);

/* --- manager-service.c --- */
void manager_service_ready(struct manager *m);
void manager_service_changed(struct manager *m); /* the status line, after a while */
void manager_service_reloading(void);
/* Tells a store the pools of this host's config, and whether the host is drained. 0 or -ENOMEM. */
int manager_declare(struct manager *m, struct store *s);
void manager_idle_check(struct manager *m); /* after a run's end, and when it is known what runs: who waits for the last one? */

/* --- manager.c --- */
void manager_config_differs(struct manager *m); /* the runner has read another config: reload, once */
