/* SPDX-License-Identifier: MIT */
#pragma once

/* The scheduler's parts. No other module includes this header.
 *     scheduler.c   made and freed; which jobs there are; started, stopped, drained
 *     triggers.c    one trigger of any kind: overlap, the queued run, deferred runs, at-start
 *     ends.c        the end of a run: what is remembered, and what follows
 *     attempts.c    retries and restarts
 *     hooks.c       jobs that are started by the end of another; max-silence */

#include <string.h>
#include <syslog.h>

#include "daemon/jobs/scheduler.h"

struct scheduler {
    struct job **jobs;     /* of the settings, sorted by name */
    size_t n_jobs, n_allocated;
    struct timer_heap due; /* of struct job */
    struct timer_heap silences; /* likewise */
    const struct settings *settings;
    struct run_table *runs;
    const struct state *state;
    struct journal *journal;
    struct scheduler_handler handler;
    bool is_started; /* between scheduler_start() and scheduler_stop() */
    bool is_stopped; /* after scheduler_stop() */
    bool is_drained;
};

/* --- scheduler.c --- */
struct job *scheduler_find(const struct scheduler *scheduler, const char *name); /* NULL: unknown */
/* Sets the timer of `every`, from the last trigger, whether that was a timer, a client or a start. */
void scheduler_arm(struct scheduler *scheduler, struct job *job, struct run_time now);
void scheduler_save(const struct scheduler *scheduler, const struct job *job);
static inline void scheduler_begin(const struct scheduler *scheduler, struct run *run) {
    scheduler->handler.begin(run, scheduler->handler.userdata);
}
static inline void scheduler_withdraw(const struct scheduler *scheduler, struct run *run, const char *reason) {
    scheduler->handler.withdraw(run, reason, scheduler->handler.userdata);
}

/* --- triggers.c --- */
void triggers_start_job(struct scheduler *scheduler, struct job *job, struct run_time now);
void triggers_by_every(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Begins the queued run, of which the job's record says that there is one. */
void triggers_begin_queued(struct scheduler *scheduler, struct job *job, struct run_time now);
/* A run of the job, whatever else runs, in the state pending or retrying. id: NULL for a fresh one. */
int triggers_add_run(struct scheduler *scheduler, struct job *job, const char *id, enum run_state state,
                     struct run_time now, struct run **ret);
/* Begins a run that was retrying, with the job's present settings. */
void triggers_begin_fresh(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now);
void triggers_restart(struct scheduler *scheduler, struct job *job, struct run_time now);

/* --- ends.c --- */
void ends_note(struct job *job, const struct run *run);

/* --- attempts.c --- */
/* An id that follows from what is being made, and for which run. */
void attempts_make_id(const char *what, const char *run, const char *which, char ret[static ID_TEXT_SIZE]);
void attempts_start_job(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Gives up what is retrying, but for attempts of hooks. */
void attempts_supersede(struct scheduler *scheduler, struct job *job);
void attempts_forget_service(struct scheduler *scheduler, struct job *job);

/* --- hooks.c --- */
/* Notes the end of a chain, and makes the runs of its hooks. They are begun by hooks_begin(). */
void hooks_run_over(struct scheduler *scheduler, struct job *job, const struct run *run, struct run_time now);
void hooks_begin(struct scheduler *scheduler);
/* Sets the timer of max-silence. */
void hooks_arm(struct scheduler *scheduler, struct job *job, struct run_time now);
void hooks_note_time(struct scheduler *scheduler, struct job *job, struct run_time now);
