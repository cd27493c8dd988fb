/* SPDX-License-Identifier: MIT */
#pragma once

/* The scheduler's parts. No other module includes this header. Four files decide and act on nothing: job.c
 * (overlap, `every`), due.c (due times), chain.c (retries, good ends) and health.c (which hooks start).
 *
 *     scheduler.c   new and free; which jobs there are; started, stopped, drained
 *     triggers.c    one trigger of any kind: overlap, queued runs, deferred runs, at-start
 *     due-runs.c    due times of schedules: planned and noted by wake-ups; drained
 *     due-begin.c   a noted due time begins a run, queues one, or is skipped
 *     due-zones.c   schedules and zones of jobs, and when these change
 *     turns.c       due times that hosts share: when this host asks for them, and the answers
 *     turn-claim.c  what the claims of their runs ask for
 *     turn-attempts.c  their attempts, on any host
 *     due-log.c     logs and counts due times that are not begun
 *     due-marks.c   the records of due times, in both directories
 *     open.c        instances that an open template does not list
 *     ends.c        the end of a run, and the queued run that begins next
 *     attempts.c    retries and restarts
 *     attempts-reboot.c  their runs, and the health of jobs, over a reboot
 *     hooks.c       jobs that the end of another job starts; max-silence */

#include <string.h>
#include <syslog.h>

#include "base/journal/event.h"
#include "base/timer.h"
#include "base/clock-watch.h"
#include "daemon/jobs/due.h"
#include "daemon/jobs/jobs-file.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/zones.h"

struct doubtful_key { /* of a record of the state directory */
    struct list link;
    char key[];
};

struct due_runs {
    struct list planning;    /* struct job: may have due times */
    struct list beginning;   /* struct job: with entries that wait for nothing */
    struct list syncing;     /* struct job, also by `beginning`: with entries that wait for the disk */
    struct timer work;       /* on the first two, in slices; a deferred call would precede other sources */
    struct clock_watch clock;
    struct timer hourly;     /* looks at zones */
    struct zones zones;
    struct jobs_file *jobs_file; /* NULL: not needed yet, or cannot be used */
    int open_error;          /* of jobs_file_open(), or 0 */
    struct list doubtful;    /* struct doubtful_key: removed after recovery unless its run was found */
    const char *reason;      /* of due times that the present wake-up misses */
    usec_t ahead_logged;     /* boottime of the latest event clock-ahead; 0: none yet */
    bool is_clock_logged;    /* the present wake-up logged the event clock-set */
    bool is_first_plan;      /* an earlier berthd may have noted a due time */
};

struct scheduler {
    struct job **jobs;     /* of the settings, sorted by name */
    size_t n_jobs, n_allocated;
    struct timer_heap due; /* of struct job */
    struct timer_heap silences; /* of struct job */
    struct due_runs due_runs;
    sd_event *event;
    struct settings *settings; /* the owner's; open.c adds instances */
    struct run_table *runs;
    const struct state *state;
    struct journal *journal;
    struct scheduler_handler handler;
    struct list lost; /* struct run, by job.of_job, in no table: of before a reboot, until recovery ends */
    bool is_resumed;  /* state_is_resumed(), if there is a state directory */
    bool is_started;  /* between scheduler_start() and scheduler_stop() */
    bool is_stopped;  /* after scheduler_stop() */
    bool is_drained;
};

/* --- scheduler.c --- */
struct job *scheduler_find(const struct scheduler *scheduler, const char *name); /* NULL: unknown */
/* Sets the timer of `every`, from the last trigger, whether that was a timer, a client or a start. */
void scheduler_arm(struct scheduler *scheduler, struct job *job, struct run_time now);
void scheduler_save(const struct scheduler *scheduler, const struct job *job);
int scheduler_add(struct scheduler *scheduler,
                  const struct job_settings *settings); /* one more job; negative errno */
void scheduler_drop(struct scheduler *scheduler,
                    struct job *job); /* frees it; the caller takes it out of scheduler->jobs */
static inline void scheduler_begin(const struct scheduler *scheduler, struct run *run) {
    scheduler->handler.begin(run, scheduler->handler.userdata);
}
static inline void scheduler_withdraw(const struct scheduler *scheduler, struct run *run, const char *reason) {
    scheduler->handler.withdraw(run, reason, scheduler->handler.userdata);
}

/* --- open.c --- */
/* Finds the job, or makes it if it is an instance that an open template does not list. NULL: it is neither, or
 * cannot be made (logged). */
struct job *open_find(struct scheduler *scheduler, const char *name);
bool open_may_be(const struct scheduler *scheduler,
                 const char *name); /* such an instance may have this name */
/* Before the scheduler uses other settings: adds the instances that it knows. */
void open_use_settings(struct scheduler *scheduler, struct settings *settings);

/* --- triggers.c --- */
void triggers_start_job(struct scheduler *scheduler, struct job *job, struct run_time now);
void triggers_by_every(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Adds a run of the job, whatever else runs, in the state pending or retrying. id: NULL for a new one. */
int triggers_add_run(struct scheduler *scheduler, struct job *job, const char *id, enum run_state state,
                     struct run_time now, struct run **ret);
/* Begins a run that was retrying, with the job's present settings. */
void triggers_begin_fresh(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now);
void triggers_restart(struct scheduler *scheduler, struct job *job, struct run_time now);
void triggers_queue(const struct scheduler *scheduler, struct run *run); /* until the job's other runs are over */
/* Withdraws the other queued runs and stops the rest. `by` begins when they are gone, which may be at
 * once. */
void triggers_replace(const struct scheduler *scheduler, const struct job *job, const struct run *by);
bool triggers_has_retrying(const struct job *job); /* attempts of hooks do not count */
struct run *triggers_first_queued(const struct job *job); /* NULL: none */
/* Begins the first queued run if no other run of the job is left. Returns whether it did. */
bool triggers_begin_next(struct scheduler *scheduler, struct job *job, struct run_time now);
void triggers_log_skipped(const struct scheduler *scheduler, const struct job *job, enum run_trigger why,
                          const char *due, const struct run *other);

/* --- ends.c --- */
void ends_note(struct job *job, const struct run *run);

/* --- attempts.c --- */
/* Makes an id that depends on the texts alone. */
void attempts_make_id(const char *what, const char *run, const char *which, char ret[static ID_TEXT_SIZE]);
struct chain;
void attempts_get_chain(const struct job *job, const struct run *run, struct chain *ret);
void attempts_start_job(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Gives up runs that are retrying, except attempts of hooks. */
void attempts_supersede(struct scheduler *scheduler, struct job *job);
void attempts_forget_service(struct scheduler *scheduler, struct job *job);

/* --- attempts-reboot.c; these do nothing for jobs that do not use attempts --- */
/* Writes the job's records in both directories. */
void attempts_save(struct scheduler *scheduler, const struct job *job);
/* Notes that the run begins, or will begin after its delay. */
void attempts_note_run(struct scheduler *scheduler, const struct job *job, const struct run *run);
void attempts_note_over(struct scheduler *scheduler, const struct job *job, const struct run *run);
/* Sets the time from which max-silence counts, unless it is set. */
void attempts_note_known(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Takes a record from before a reboot, before recovery is done. */
void attempts_read_lost(struct scheduler *scheduler, const struct message *record);
/* Recovery is done: resumes these runs, or reports them lost. */
void attempts_resume_lost(struct scheduler *scheduler, struct run_time now);
void attempts_free_lost(struct scheduler *scheduler);

/* --- hooks.c --- */
/* Notes the end of a chain and makes the runs of its hooks. hooks_begin() begins them. */
void hooks_run_over(struct scheduler *scheduler, struct job *job, const struct run *run, struct run_time now);
void hooks_begin(struct scheduler *scheduler);
/* Sets the timer of max-silence. */
void hooks_arm(struct scheduler *scheduler, struct job *job, struct run_time now);
void hooks_note_time(struct scheduler *scheduler, struct job *job, struct run_time now);

/* --- due-runs.c --- */
int due_runs_init(struct scheduler *scheduler);
void due_runs_done(struct scheduler *scheduler);
/* Called when all jobs have their new settings. */
void due_runs_use_settings(struct scheduler *scheduler, struct run_time now);
void due_runs_start_job(struct scheduler *scheduler, struct job *job); /* at the start, or after a drain */
void due_runs_wake(struct scheduler *scheduler, struct job *job);
void due_runs_wake_all(struct scheduler *scheduler);
void due_runs_set_drained(struct scheduler *scheduler); /* noted due times are missed */

/* --- due-begin.c --- */
/* Begins, queues or skips each noted due time of a job that is not shared. Returns false without memory;
 * then the remaining entries stay. */
bool due_begin_entries(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Returns whether the run has a due time of a job that is not shared. Its own record proves until its end that this
 * due time, and each before it, is decided; the job's record need not. */
bool due_begin_is_proven_by(const struct job *job, const struct run *run);
/* Notes what a recovered run proves, if it has such a due time. */
void due_begin_adopt(struct scheduler *scheduler, struct job *job, const struct run *run);
/* Removes and frees an entry that is decided. The record of a queued one stays. */
void due_begin_take_entry(struct scheduler *scheduler, struct job *job, struct due_entry *entry, bool is_queued);
/* SCHEDULE, or EVERY of a job that hosts share. */
enum run_trigger due_trigger(const struct job *job);
/* Makes a pending run of a due time. Returns false without memory. */
bool due_begin_make_run(struct scheduler *scheduler, struct job *job, const struct due_entry *entry,
                        struct run_time now, struct run **ret);

/* --- turns.c --- */
bool turns_is_shared(const struct job *job);
/* Asks for the job's due times whose moment has come. Returns false without memory; then the remaining
 * entries stay. */
bool turns_begin(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Returns whether this due time is noted or was asked for already. */
bool turns_is_asked(const struct job *job, int64_t due);
/* Notes why this host cannot ask now, for the event missed. reason: static. */
void turns_hold_back(struct job *job, const char *reason);
/* Returns when to call turns_begin() again, on CLOCK_REALTIME; USEC_INFINITY: an event will cause it. */
usec_t turns_next(const struct scheduler *scheduler, const struct job *job, struct run_time now);
/* Notes due times as missed, until Redis has replied whether another host began them. reason: static. Returns 0 or
 * a negative errno. */
int turns_note_missed(struct scheduler *scheduler, struct job *job, const struct due_missed *missed, const char *reason);
void turns_note_known(struct scheduler *scheduler, const struct job *job, int64_t due);
/* Adds a turn that this host may ask for from not_before (CLOCK_REALTIME) on; not recorded. attempt 0:
 * unknown. */
void turns_add_open(struct scheduler *scheduler, struct job *job, int64_t due, uint32_t attempt, usec_t not_before);
void turns_drop_open(struct job *job, int64_t due); /* no host can take it any more */

/* --- turn-claim.c --- */
/* Makes the claim of a run ask for the turn of its due time, if the job is shared. Returns 0, or -ENOMEM:
 * then the run must not claim, because it would begin even if another host has the turn. */
int turns_attach(struct job *job, struct run *run, struct run_time now);
/* Makes the claim of a `berth start` ask, by overlap, whether a run of the job is not over on any host. */
void turns_attach_start(const struct job *job, struct run *run);
/* Redis refused such a run. Notes for the client which other run is not over. */
void turns_refuse_start(struct run *run, const struct store_turn_answer *answer);
/* Redis accepted such a run. Its claim asks for permits alone from here on. */
void turns_take_start(struct scheduler *scheduler, struct job *job, struct run *run);

/* --- turn-attempts.c --- */
/* Takes from the answer of Redis which attempt the run is. */
void turn_attempts_take(struct run *run);
/* Sets what its claim sends to Redis about the next attempt. */
void turn_attempts_set_terms(const struct job *job, struct run *run, struct run_time now);
/* Gives the turn of an ended run back for another attempt on any host. Recorded until Redis has answered. */
void turn_attempts_give_back(struct scheduler *scheduler, struct run *run, usec_t delay);
/* Makes this host ask for that attempt as well, later than the others. */
void turn_attempts_ask_later(struct scheduler *scheduler, struct job *job, const struct run *run, struct run_time now);

/* --- due-log.c --- */
/* Logs a queued run that was dropped before it began. */
void due_runs_log_dropped(struct scheduler *scheduler, struct job *job, const struct run *run);
void due_runs_log_missed(struct scheduler *scheduler, struct job *job, const struct due_missed *missed,
                         const char *reason);
void due_runs_log_one_missed(struct scheduler *scheduler, struct job *job, int64_t due, const char *reason);
void due_runs_log_clock_set(struct scheduler *scheduler, const struct job *job, usec_t now);

/* --- due-zones.c --- */
/* Called when all jobs have their new settings. */
void due_zones_use_settings(struct scheduler *scheduler, struct run_time now);
void due_zones_on_hour(void *userdata);
void due_zones_set_mark(struct scheduler *scheduler, struct job *job, int64_t mark);
/* Moves the mark if the zone has other rules than when the mark was made. The job has a zone. */
void due_zones_check_mark(struct scheduler *scheduler, struct job *job);

/* --- due-marks.c --- */
/* Reads the state directory if there is something in it or a job needs it. */
void due_marks_open(struct scheduler *scheduler);
void due_marks_save(struct scheduler *scheduler, const struct job *job);
void due_marks_forget(struct scheduler *scheduler, struct job *job);          /* it is no longer defined */
void due_marks_forget_schedule(struct scheduler *scheduler, struct job *job); /* it has none any more */
/* Recovery is done: resumes runs from before a reboot, and removes records of runs that are over. */
void due_marks_settle(struct scheduler *scheduler, struct run_time now);
/* Notes a due time, in the list and in a record. Returns 0, or -ENOMEM: it is in neither. */
int due_marks_add_entry(struct scheduler *scheduler, struct job *job, const struct due_entry *entry);
int due_marks_insert_entry(struct job *job, const struct due_entry *entry); /* without a record */
/* Writes the record of a due time or a run; NULL removes it. */
void due_marks_put_run(struct scheduler *scheduler, const struct job *job, const char *run,
                       const struct message_writer *record);
void due_runs_note_trigger(struct scheduler *scheduler, const struct job *job); /* of `every` */
void due_runs_on_synced(uint64_t sync, void *scheduler);
