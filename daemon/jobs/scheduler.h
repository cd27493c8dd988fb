/* SPDX-License-Identifier: MIT */
#pragma once

/* Decides what is triggered when: at-start, every, manual triggers, overlap; and remembers the last run of
 * each job. Starts nothing: a handler begins what is due. */

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

enum scheduler_turns {
    SCHEDULER_TURNS_ASK,
    SCHEDULER_TURNS_WAIT, /* scheduler_ask_turns() will be called */
    SCHEDULER_TURNS_POLL, /* not now */
};

enum scheduler_passed {
    SCHEDULER_PASSED_HERE, /* they were missed, and this host logs it */
    SCHEDULER_PASSED_ELSEWHERE,
    SCHEDULER_PASSED_NOT, /* they are ahead of the clock of Redis */
};

struct scheduler_handler {
    void (*begin)(struct run *run, void *userdata); /* a pending run of the table */
    void (*withdraw)(struct run *run, const char *reason, void *userdata);
    void (*await)(struct run *run, usec_t boottime, void *userdata); /* a retrying run: scheduler_begin_attempt() then */
    void (*stop)(struct run *run, const char *reason, void *userdata);
    void (*lost)(struct run *run, void *userdata); /* a run of before a reboot, in the state starting: it is over */
    struct run_time (*now)(void);
    /* Of jobs that hosts share (R18): whether this host may ask for turns now. */
    enum scheduler_turns (*may_ask)(void *userdata);
    /* All due times of a job up to this one are missed, unless they are decided: scheduler_turns_passed() follows. */
    void (*pass)(const char *pool, int64_t due, const char *id, void *userdata);
    void (*decided)(const char *pool, int64_t due, void *userdata); /* all due times of a job up to this one are */
    void *userdata;
};

/* runs, state, journal: the caller's, and kept. Has no jobs yet. Negative errno. */
int scheduler_new(struct scheduler **ret, sd_event *event, struct run_table *runs, const struct state *state,
                  struct journal *journal, const struct scheduler_handler *handler);
struct scheduler *scheduler_free(struct scheduler *scheduler);
DEFINE_CLEANUP(struct scheduler, scheduler_free)

/* Takes the jobs of other settings, which must last until the next call. Negative errno: logged, and some
 * jobs are not known. */
int scheduler_update(struct scheduler *scheduler, const struct settings *settings, struct run_time now);
/* It is known what runs: from now on runs are begun. Also after the end of a drain. */
void scheduler_start(struct scheduler *scheduler, struct run_time now);
/* Nothing is begun any more. */
void scheduler_stop(struct scheduler *scheduler);
void scheduler_set_drained(struct scheduler *scheduler, bool drained);
/* The next start of berthd is one of the service: at-start jobs run again, and nothing is queued. */
void scheduler_forget_service(struct scheduler *scheduler);

/* A manual trigger. 0 or SKIPPED, and *ret is the run that it began or queued, or the one that is not over;
 * or a negative errno. */
int scheduler_trigger(struct scheduler *scheduler, const char *job, char *const *set, struct run_time now,
                      struct run **ret);
/* Counts a run of the table that the scheduler did not make among those of its job. 0 or -ENOMEM. */
int scheduler_adopt(struct scheduler *scheduler, struct run *run);
/* Begins a run that was triggered before it was known what runs. Overlap is decided now. */
void scheduler_begin_deferred(struct scheduler *scheduler, struct run *run);
/* The run is about to be begun, and its own record is written: writes its job's. */
void scheduler_note_begun(struct scheduler *scheduler, const struct run *run);
/* Before the run is over, and its record removed: decides what follows its end.result, and begins hooks. */
void scheduler_run_ends(struct scheduler *scheduler, struct run *run, struct run_time now);
/* The result in the light of the job's success-on. */
enum run_result scheduler_judge(const struct scheduler *scheduler, const struct run *run, enum run_result result);
/* Begins a run in the state retrying. */
void scheduler_begin_attempt(struct scheduler *scheduler, struct run *run, struct run_time now);
/* Remembers the result. Begins the run that is queued behind it. */
void scheduler_run_over(struct scheduler *scheduler, struct run *run, struct run_time now);
/* Whether the journal has the event `exited` of a recovered run. The job's record is written after the
 * event, so the event is there twice only if berthd was killed between the two. */
bool scheduler_is_end_logged(const struct scheduler *scheduler, const struct run *run);

/* --- jobs that hosts share (R18) --- */
/* This host may ask again. */
void scheduler_ask_turns(struct scheduler *scheduler);
/* Answers handler->pass(). */
void scheduler_turns_passed(struct scheduler *scheduler, const char *pool, const char *id,
                            enum scheduler_passed passed);
void scheduler_turn_opened(struct scheduler *scheduler, const struct store_open_turn *turn, struct run_time now);
/* The turn of the run is not this host's: the caller drops the run. */
void scheduler_turn_refused(struct scheduler *scheduler, struct run *run, const struct store_turn_answer *answer,
                            struct run_time now);
/* The run, which has its turn, is granted. False: it would begin later than retry-within allows. */
bool scheduler_turn_may_begin(struct scheduler *scheduler, struct run *run, struct run_time now);
/* The turn of the run takes the place of this attempt of an earlier due time. */
void scheduler_turn_superseded(struct scheduler *scheduler, const struct run *run, const struct store_ended_turn *turn);
/* An operator has ended these open turns of the job: logs what is not begun. */
void scheduler_turns_stopped(struct scheduler *scheduler, const char *job, const struct store_ended_turns *ended);
/* The turn of the run is this host's; idempotent. */
void scheduler_turn_taken(struct scheduler *scheduler, struct run *run, struct run_time now);

/* Why the state directory cannot be written; "": it can. */
const char *scheduler_state_error(const struct scheduler *scheduler);

/* NULL: unknown. */
const struct job *scheduler_find_job(const struct scheduler *scheduler, const char *name);
/* Runs of the job that are not over, without the one that is queued behind them. *ret_oldest: the oldest, or
 * NULL. */
size_t scheduler_count_runs(const struct scheduler *scheduler, const char *job, struct run **ret_oldest);
