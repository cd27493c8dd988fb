/* SPDX-License-Identifier: MIT */
#pragma once

/* Decides when jobs are triggered: at-start, every, schedule, manual triggers, overlap. Remembers the last
 * run of each job. Starts nothing: a handler begins the runs. */

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "daemon/jobs/job.h"
#include "daemon/runs/run-table.h"
#include "daemon/state/state.h"
#include "store/store.h"

struct scheduler;

/* Named answers. */
enum {
    SCHEDULER_E_UNKNOWN = 1, /* no such job */
    SCHEDULER_E_SKIPPED,     /* by overlap: a run of the job is not over */
    SCHEDULER_E_DRAINED,     /* this host takes nothing new */
};

#define SCHEDULER_UNDEFINED "its job is no longer defined" /* a reason to withdraw a run */

enum scheduler_turns {
    SCHEDULER_TURNS_ASK,
    SCHEDULER_TURNS_WAIT, /* scheduler_ask_turns() will be called */
    SCHEDULER_TURNS_POLL, /* not now; ask again soon */
};

enum scheduler_passed {
    SCHEDULER_PASSED_HERE, /* they were missed, and this host logs that */
    SCHEDULER_PASSED_ELSEWHERE,
    SCHEDULER_PASSED_NOT,     /* they are ahead of Redis's clock */
    SCHEDULER_PASSED_UNKNOWN, /* no answer came: the scheduler passes them again */
};

struct scheduler_handler {
    void (*begin)(struct run *run, void *userdata); /* a pending run of the table */
    void (*withdraw)(struct run *run, const char *reason, void *userdata);
    void (*await)(struct run *run, usec_t boottime, void *userdata); /* a retrying run: scheduler_begin_attempt() then */
    void (*stop)(struct run *run, const char *reason, void *userdata);
    void (*lost)(struct run *run, void *userdata); /* of before a reboot, in the state starting; over */
    struct run_time (*now)(void);
    /* Jobs that hosts share (R18): whether this host may ask for turns now. */
    enum scheduler_turns (*may_ask)(void *userdata);
    /* Passes all undecided due times of a job up to this one. scheduler_turns_passed() has the answer. */
    void (*pass)(const char *pool, int64_t due, const char *id, void *userdata);
    void (*decided)(const char *pool, int64_t due, void *userdata); /* up to this due time */
    void *userdata;
};

/* Makes a scheduler without jobs. runs, state and journal belong to the caller and must outlive it. Returns
 * 0 or a negative errno. */
int scheduler_new(struct scheduler **ret, sd_event *event, struct run_table *runs, const struct state *state,
                  struct journal *journal, const struct scheduler_handler *handler);
struct scheduler *scheduler_free(struct scheduler *scheduler);
DEFINE_CLEANUP(struct scheduler, scheduler_free)

/* Takes the jobs of new settings, which must last until the next call and get the jobs of scheduler_open().
 * Returns 0 or a negative errno, logged; then some jobs are unknown. */
int scheduler_update(struct scheduler *scheduler, struct settings *settings, struct run_time now);
/* Begins runs from now on: after recovery, and after a drain. */
void scheduler_start(struct scheduler *scheduler, struct run_time now);
/* Begins no more runs. */
void scheduler_stop(struct scheduler *scheduler);
void scheduler_set_drained(struct scheduler *scheduler, bool drained);
/* Makes the next start of berthd one of the service: at-start jobs run again, and no run is queued. */
void scheduler_forget_service(struct scheduler *scheduler);

/* Makes the job of this name if it is an instance that an open template does not list. 0: it is known;
 * negative errno, or an answer of settings_open_job(). Another call forgets it, unless it has a run by then.
 */
int scheduler_open(struct scheduler *scheduler, const char *name, struct settings_errors *errors);
/* Forgets those of these jobs of which the table has no run. */
void scheduler_forget_open(struct scheduler *scheduler);

/* Triggers a job for a client. Returns 0, a named answer, or a negative errno. *ret: the run that was begun
 * or queued; with SCHEDULER_E_SKIPPED the one that is not over. */
int scheduler_trigger(struct scheduler *scheduler, const char *job, char *const *set, struct run_time now,
                      struct run **ret);
/* Counts a run of the table that the scheduler did not make among those of its job. 0 or -ENOMEM. */
int scheduler_adopt(struct scheduler *scheduler, struct run *run);
/* Begins a run that was triggered before recovery was done. Overlap is decided now. */
void scheduler_begin_deferred(struct scheduler *scheduler, struct run *run);
/* Notes that a run begins: its own record was written. That of the job is written if it has more to say. */
void scheduler_note_begun(struct scheduler *scheduler, const struct run *run);
/* Writes the end to the job's record, decides what follows the run's end.result, and begins hooks. Called
 * while the run's record exists. */
void scheduler_run_ends(struct scheduler *scheduler, struct run *run, struct run_time now);
/* Returns the result that the job's success-on makes of this one. */
enum run_result scheduler_judge(const struct scheduler *scheduler, const struct run *run, enum run_result result);
/* Begins a run in the state retrying. */
void scheduler_begin_attempt(struct scheduler *scheduler, struct run *run, struct run_time now);
/* Begins the run that is queued behind this one. */
void scheduler_run_over(struct scheduler *scheduler, struct run *run, struct run_time now);
/* Returns whether the journal has the event `exited` of a recovered run. The job's record is written after the
 * event, so the event is there twice only if berthd was killed between the two. */
bool scheduler_is_end_logged(struct scheduler *scheduler, const struct run *run);

/* --- jobs that hosts share (R18) --- */
/* Asks again, because this host may. */
void scheduler_ask_turns(struct scheduler *scheduler);
/* The answer to handler->pass(). */
void scheduler_turns_passed(struct scheduler *scheduler, const char *pool, const char *id,
                            enum scheduler_passed passed);
void scheduler_turn_opened(struct scheduler *scheduler, const struct store_open_turn *turn, struct run_time now);
/* Notes that this host did not get the turn of the run. The caller drops the run. */
void scheduler_turn_refused(struct scheduler *scheduler, struct run *run, const struct store_turn_answer *answer,
                            struct run_time now);
/* Returns whether a granted run that has its turn may begin. False: it would be later than retry-within allows. */
bool scheduler_turn_may_begin(struct scheduler *scheduler, struct run *run, struct run_time now);
/* Notes that the turn of the run replaced this attempt of an earlier due time. */
void scheduler_turn_superseded(struct scheduler *scheduler, const struct run *run, const struct store_ended_turn *turn);
/* An operator ended these open turns of the job. Logs the attempts that are not made. */
void scheduler_turns_stopped(struct scheduler *scheduler, const char *job, const struct store_ended_turns *ended);
/* Notes that this host has the turn of the run. Idempotent. */
void scheduler_turn_taken(struct scheduler *scheduler, struct run *run, struct run_time now);

/* Returns why the state directory cannot be written, or "". */
const char *scheduler_state_error(const struct scheduler *scheduler);

/* Returns NULL if the job is unknown. */
const struct job *scheduler_find_job(const struct scheduler *scheduler, const char *name);
/* Counts the runs of the job that are not over. Queued and retrying ones do not count. *ret_oldest: the
 * oldest, or NULL. */
size_t scheduler_count_runs(const struct scheduler *scheduler, const char *job, struct run **ret_oldest);
