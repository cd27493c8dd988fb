/* SPDX-License-Identifier: MIT */
#pragma once

/* The scheduler's parts. No other module includes this header.
 *     scheduler.c   made and freed; which jobs there are; started, stopped, drained
 *     triggers.c    one trigger of any kind: overlap, the queued run, deferred runs, at-start
 *     ends.c        the end of a run: what is remembered, and what follows */

#include <string.h>
#include <syslog.h>

#include "daemon/jobs/scheduler.h"

struct scheduler {
    struct job **jobs;     /* of the settings, sorted by name */
    size_t n_jobs, n_allocated;
    struct timer_heap due; /* of struct job */
    const struct settings *settings;
    struct run_table *runs;
    const struct state *state;
    struct journal *journal;
    struct scheduler_handler handler;
    bool is_started; /* between scheduler_start() and scheduler_stop() */
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
