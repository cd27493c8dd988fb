/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's root object: owns the settings, the stores, the executor and all runs. Declares what clients may
 * request; daemon/api translates that from and to Varlink. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "conf/settings.h"
#include "base/journal/event.h"
#include "daemon/adhoc/adhoc.h"
#include "daemon/runs/run.h"
#include "daemon/counters.h"
#include "store/store.h"

struct manager;
struct job; /* a defined job's triggers and last run: daemon/jobs/job.h */

struct manager_options {
    const char *config;      /* path */
    const char *with_runner; /* path, or NULL */
};

/* Takes ownership of the settings. Returns 0, or a negative errno, logged unless it is -ENOMEM. */
int manager_new(struct manager **ret, sd_event *event, struct journal *journal, struct settings *settings,
                const struct manager_options *options);
struct manager *manager_free(struct manager *m);
DEFINE_CLEANUP(struct manager, manager_free)
/* Recovers the runs of an earlier berthd, connects to the runner, then takes work. */
int manager_start(struct manager *m);
/* Begins to stop, and ends the event loop when that is done. stop_jobs: stops the commands as well; else
 * they are left to the next berthd. */
void manager_stop(struct manager *m, bool stop_jobs);

/* Announces that SIGTERM will mean a stop and not a restart (units/berthd-stop.sh). */
void manager_expect_stop(struct manager *m);
bool manager_stops_jobs(const struct manager *m); /* a stop was announced, or there is no service manager */

/* --- what clients see --- */

const struct settings *manager_settings(const struct manager *m);
sd_event *manager_event(struct manager *m);
struct store *manager_host_store(struct manager *m);
struct store *manager_cluster_store(struct manager *m); /* NULL: no redis section */
struct events *manager_events(struct manager *m);
const struct counters *manager_counters(const struct manager *m);
/* Returns how long this host's last runs held their permits, as times_format(), to be freed; NULL: no
 * memory. */
char *manager_format_times(struct manager *m);
struct list *manager_runs(struct manager *m, enum run_state state); /* struct run; DONE: the finished ones, newest last, bounded */
struct run *manager_find_run(struct manager *m, const char *id);
/* Returns the pid of the run's command, which may have ended; 0: none, or not known here (another PID namespace). */
pid_t manager_run_pid(const struct run *r);
bool manager_is_recovering(const struct manager *m); /* runs of an earlier berthd may still be unknown */

struct manager_job { /* for `berth jobs` */
    const struct job_settings *settings;
    struct run *run;               /* its oldest run that is not over, or NULL */
    size_t n_runs;                 /* not over, also queued */
    usec_t last_started_realtime, last_ended_realtime; /* 0: never */
    enum run_result last_result;
    int last_exit_code, last_signal; /* -1: none */
    char last_run[ID_TEXT_SIZE];   /* "": none */
    uint64_t last_token;           /* 0: none */
    usec_t next_realtime;          /* of `every` or the schedule; 0: none, or drained */
    size_t n_queued;               /* those of n_runs that wait for the others */
    const struct zone *zone;       /* of the schedule, and of last_missed; NULL: none */
    const char *zone_error;        /* why the schedule's zone cannot be read; NULL: it can, or no memory */
    int64_t next_due;              /* of the schedule, without splay; 0: none */
    uint64_t n_missed;             /* since berthd started */
    int64_t last_missed;
    bool is_broken, is_stopped;    /* is_stopped: `berth stop` ended its restarts */
    uint32_t n_bad;                /* in a row */
    usec_t last_success_realtime;  /* 0: not known */
};
/* Returns why the state directory cannot be written; "" if it can, or if no job needs it. */
const char *manager_state_error(const struct manager *m);
void manager_get_job(struct manager *m, const struct job_settings *settings, struct manager_job *ret);

struct coming; /* daemon/coming.h */
/* As coming_list(). job: NULL for all. MANAGER_E_UNKNOWN: no such job. */
int manager_list_coming(struct manager *m, const char *job, usec_t from, size_t count, struct coming **ret, size_t *ret_n);

#define MANAGER_WHY_SIZE 384 /* of these texts */
/* Returns "redis away: Connection refused", or "connecting to Redis" while the cause is unknown */
const char *manager_away_text(const struct manager *m, char *buffer, size_t size);
/* Returns "no-memory: the memory of Redis at 10.0.0.5:6379 is full" */
const char *manager_full_text(const struct manager *m, char *buffer, size_t size);
/* Returns what a run waits for, as in `berth runs --json`: "pool full: db", "behind both on ant, which waits
 * for db: net", "grace", "overlap", "no berth-runner" ...; NULL if it does not wait. Takes snapshots of both stores; each may
 * be NULL. */
const char *manager_blocked_by(struct manager *m, const struct run *r, const struct snapshot *host, const struct snapshot *cluster,
                               char *buffer, size_t size);

/* --- what clients do --- */

/* Named answers. */
enum {
    MANAGER_E_UNKNOWN = 1, /* no such job, run or pool: *ret_text names it */
    MANAGER_E_SKIPPED,     /* overlap = "skip" (or "queue" with one queued) and a run is not over */
    MANAGER_E_INVALID,     /* *ret_text names the error in the request */
    MANAGER_E_STOPPING,    /* berthd is about to stop */
    MANAGER_E_DRAINED,     /* this host begins no new run */
    MANAGER_E_RECOVERING,  /* berthd has just started: there may be unknown runs */
    MANAGER_E_QUOTA,       /* the user has as many as allowed; *ret_text names the quota */
};

/* Makes the job of this name known if it is an instance that an open template does not list. 0: it is known;
 * negative errno, or an answer of settings_open_job(). */
int manager_open_job(struct manager *m, const char *job, struct settings_errors *errors);
/* Forgets those of these jobs of which no run is left. */
void manager_forget_open(struct manager *m);
/* Triggers a job. *ret: the run that was begun or queued (overlap = "queue"); SKIPPED: the one that is not
 * over. */
int manager_start_job(struct manager *m, const char *job, char *const *set, struct run **ret);

/* Begins a run for a `berth run`. ret_nested: no run was begun; the client may start at once under the
 * permits of *ret, the run around it. ret_text: static, or in the manager until the next call.
 * MANAGER_E_RECOVERING: it is not known yet whether the client is inside a run. */
int manager_hold(struct manager *m, const struct adhoc_request *request, struct run **ret, bool *ret_nested, const char **ret_text);
/* Takes back the client of a recovered or orphaned ad hoc run. Returns 0, MANAGER_E_UNKNOWN if there is no such
 * run, or _RECOVERING if that is not known yet. */
int manager_attach(struct manager *m, const char *run, uid_t uid, pid_t pid, struct run **ret);
/* As adhoc_client_gone(). */
void manager_client_gone(struct run *r);
/* Returns the write end of a granted ad hoc run's FIFO, which the caller sends and closes; -1 if it was
 * taken. */
int manager_take_hold_fd(struct run *r);
void manager_ask_guards(struct manager *m); /* somebody looks at the runs: see executor_ask_guards() */
/* As adhoc_client_stuck(), _started() and _ended(). */
void manager_client_stuck(struct run *r, const char *what);
void manager_client_started(struct run *r, pid_t pid, usec_t started);
void manager_client_ended(struct run *r, const struct adhoc_report *report);

/* The caller of a change. Texts may be NULL; copied. */
struct manager_asker {
    uid_t uid;
    const char *on_behalf, *reason;
};
/* Moves a claim, of this host or another, and logs that. move: filled as for store_move(); the caller keeps
 * it until fn is called. Returns 0 (fn follows, with an answer of store_move()), MANAGER_E_UNKNOWN (no store
 * has the claim), MANAGER_E_RECOVERING or -ENOMEM. */
int manager_move(struct manager *m, struct store_move *move, const struct manager_asker *asker, store_reply_fn fn, void *userdata);

/* Stops a run, waiting or running; idempotent. */
void manager_stop_run(struct run *r, const char *reason);
/* Stops all runs of a job, or a run by its id. each: called for each run that is not over, before it is
 * stopped. Returns 0, MANAGER_E_UNKNOWN, or _RECOVERING: the known runs were stopped, and there may be more. */
int manager_stop_target(struct manager *m, const char *target, void (*each)(struct run *run, void *userdata), void *userdata);
/* Ends the open turns of a job that hosts share. Returns 0 (fn follows), -ENOMEM or -ENOTCONN. r, ended: as
 * in store_ended_turns_fn; job: valid during the call. */
typedef void (*manager_stopped_fn)(int r, const char *job, const struct store_ended_turns *ended, void *userdata);
int manager_stop_turns(struct manager *m, const char *job, manager_stopped_fn fn, void *userdata);
/* Takes no new work until the undrain, also after a restart of berthd. Waiting runs are withdrawn, others go
 * on. */
int manager_drain(struct manager *m, uid_t uid /* the caller's */, const char *on_behalf /* or NULL */);
int manager_undrain(struct manager *m, uid_t uid, const char *on_behalf);
bool manager_is_drained(const struct manager *m);
bool manager_is_idle(const struct manager *m); /* no run waits or has a process; false while recovering */
struct manager_idle_watch {
    struct list link;
    void (*on_idle)(struct manager_idle_watch *watch); /* once; then it is on no list */
};
void manager_watch_idle(struct manager *m, struct manager_idle_watch *watch); /* ends by list_unlink() */
/* Reads the config again. Returns 0, or SETTINGS_E_INVALID with errors: then nothing has changed. */
int manager_reload(struct manager *m, struct settings_errors *errors);
