/* SPDX-License-Identifier: MIT */
#pragma once

/* The scheduler's parts. No other module includes this header. What they carry out is decided in job.c
 * (overlap, `every`), due.c (due times), chain.c (retries, which end is good) and health.c (which hooks an
 * end starts).
 *
 *     scheduler.c   made and freed; which jobs there are; started, stopped, drained
 *     triggers.c    one trigger of any kind: overlap, queued runs, deferred runs, at-start
 *     due-runs.c    due times of schedules: planned and noted by wake-ups; drained
 *     due-begin.c   a noted due time begins a run, queues one, or is skipped
 *     due-zones.c   schedules and zones of jobs, and when these change
 *     turns.c       due times that hosts share: when this host asks for them, and what is answered
 *     turn-claim.c  what the claims of their runs ask for
 *     turn-attempts.c  their attempts, on whichever host
 *     due-missed.c  logs and counts due times that are not begun
 *     due-marks.c   what is remembered of due times, in both directories
 *     ends.c        the end of a run: what is remembered, and the queued run that begins next
 *     attempts.c    retries and restarts
 *     attempts-lasting.c  their runs, and the health of jobs, over a reboot
 *     hooks.c       jobs that are started by the end of another; max-silence */

#include <string.h>
#include <syslog.h>

#include "base/journal/event.h"
#include "base/timer.h"
#include "base/wall-timer.h"
#include "daemon/jobs/due.h"
#include "daemon/jobs/lasting.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/zones.h"

struct doubtful_key { /* of a record of the state directory */
    struct list link;
    char key[];
};

struct due_runs {
    struct list planning;  /* struct job: may have due times */
    struct list beginning; /* struct job: with entries that wait for nothing */
    struct list syncing;   /* struct job: by `beginning`, too; with entries that wait for the disk */
    struct timer work;     /* on the first two, in slices; a deferred call would go before all other sources */
    struct wall_timer clock;
    struct timer hourly;   /* looks at zones */
    struct zones zones;
    struct lasting *lasting; /* NULL: not needed yet, or cannot be used */
    int open_error;          /* why it cannot; 0: it can */
    struct list doubtful;  /* struct doubtful_key: kept if the run is there once it is known what runs */
    const char *reason;    /* of due times that are missed by the present wake-up */
    usec_t ahead_logged;   /* when the event clock-ahead was written last, boottime; 0: not yet */
    bool is_clock_told;    /* the event clock-set of the present wake-up was written */
    bool is_first_plan;    /* runs of an earlier berthd may be those of due times that are planned */
};

struct scheduler {
    struct job **jobs;     /* of the settings, sorted by name */
    size_t n_jobs, n_allocated;
    struct timer_heap due; /* of struct job */
    struct timer_heap silences; /* likewise */
    struct due_runs due_runs;
    sd_event *event;
    const struct settings *settings;
    struct run_table *runs;
    const struct state *state;
    struct journal *journal;
    struct scheduler_handler handler;
    struct list lost; /* struct run, by job.of_job: of before a reboot, until it is known what runs; in no table */
    bool is_resumed;  /* state_is_resumed(), where there is a state directory */
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
/* A run of the job, whatever else runs, in the state pending or retrying. id: NULL for a fresh one. */
int triggers_add_run(struct scheduler *scheduler, struct job *job, const char *id, enum run_state state,
                     struct run_time now, struct run **ret);
/* Begins a run that was retrying, with the job's present settings. */
void triggers_begin_fresh(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now);
void triggers_restart(struct scheduler *scheduler, struct job *job, struct run_time now);
void triggers_queue(const struct scheduler *scheduler, struct run *run); /* until the job's other runs are over */
/* Withdraws the other queued runs and stops the rest; `by` begins when they are gone, which may be at once. */
void triggers_replace(const struct scheduler *scheduler, const struct job *job, const struct run *by);
bool triggers_has_retrying(const struct job *job); /* but for attempts of hooks */
struct run *triggers_first_queued(const struct job *job); /* NULL: none */
/* Begins the first queued run if no other run of the job is left; whether it did. */
bool triggers_begin_next(struct scheduler *scheduler, struct job *job, struct run_time now);
void triggers_log_skipped(const struct scheduler *scheduler, const struct job *job, enum run_trigger why,
                          const char *due, const struct run *other);

/* --- ends.c --- */
void ends_note(struct job *job, const struct run *run);

/* --- attempts.c --- */
/* An id that follows from what is being made, and for which run. */
void attempts_make_id(const char *what, const char *run, const char *which, char ret[static ID_TEXT_SIZE]);
struct chain;
void attempts_get_chain(const struct job *job, const struct run *run, struct chain *ret);
void attempts_start_job(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Gives up what is retrying, but for attempts of hooks. */
void attempts_supersede(struct scheduler *scheduler, struct job *job);
void attempts_forget_service(struct scheduler *scheduler, struct job *job);

/* --- attempts-lasting.c; these do nothing for jobs that do not use attempts --- */
/* Writes the job's records in both directories. */
void attempts_save(struct scheduler *scheduler, const struct job *job);
/* The run begins, or will begin after its delay. */
void attempts_note_run(struct scheduler *scheduler, const struct job *job, const struct run *run);
void attempts_note_over(struct scheduler *scheduler, const struct job *job, const struct run *run);
/* Sets the time from which max-silence counts, unless it is set. */
void attempts_note_known(struct scheduler *scheduler, struct job *job, struct run_time now);
/* A record of before a reboot, which is read before it is known what runs. */
void attempts_read_lost(struct scheduler *scheduler, const struct message *record);
/* It is known what runs. */
void attempts_resume_lost(struct scheduler *scheduler, struct run_time now);
void attempts_free_lost(struct scheduler *scheduler);

/* --- hooks.c --- */
/* Notes the end of a chain, and makes the runs of its hooks. They are begun by hooks_begin(). */
void hooks_run_over(struct scheduler *scheduler, struct job *job, const struct run *run, struct run_time now);
void hooks_begin(struct scheduler *scheduler);
/* Sets the timer of max-silence. */
void hooks_arm(struct scheduler *scheduler, struct job *job, struct run_time now);
void hooks_note_time(struct scheduler *scheduler, struct job *job, struct run_time now);

/* --- due-runs.c --- */
int due_runs_init(struct scheduler *scheduler);
void due_runs_done(struct scheduler *scheduler);
void due_runs_use_settings(struct scheduler *scheduler, struct run_time now); /* all jobs have theirs */
void due_runs_start_job(struct scheduler *scheduler, struct job *job); /* started, or drained no more */
void due_runs_wake(struct scheduler *scheduler, struct job *job);
void due_runs_wake_all(struct scheduler *scheduler);
void due_runs_drop_job(struct scheduler *scheduler, struct job *job); /* it has no schedule any more */
void due_runs_set_drained(struct scheduler *scheduler); /* what waits to begin is missed */

/* --- due-begin.c --- */
/* Begins, queues or skips each noted due time of a job that is not shared. False: no memory; the entries from
 * there on stay. */
bool due_begin_entries(struct scheduler *scheduler, struct job *job, struct run_time now);
/* Removes and frees an entry that is decided. The record of a queued one stays. */
void due_begin_take_entry(struct scheduler *scheduler, struct job *job, struct due_entry *entry, bool is_queued);
/* SCHEDULE, or EVERY of a job that hosts share. */
enum run_trigger due_trigger(const struct job *job);
/* A pending run of a due time. False: no memory. */
bool due_begin_make_run(struct scheduler *scheduler, struct job *job, const struct due_entry *entry,
                        struct run_time now, struct run **ret);

/* --- turns.c --- */
bool turns_is_shared(const struct job *job);
/* Begins what may be begun of the job's due times. False: no memory; the entries from there on stay. */
bool turns_begin(struct scheduler *scheduler, struct job *job, struct run_time now);
/* This due time is noted or asked for already. */
bool turns_is_asked(const struct job *job, int64_t due);
/* This host cannot ask now; reason: static. */
void turns_hold_back(struct job *job, const char *reason);
/* When that is due again, on CLOCK_REALTIME; USEC_INFINITY: an event will cause it. */
usec_t turns_next(const struct scheduler *scheduler, const struct job *job, struct run_time now);
/* -ENOMEM or another errno: they are not noted. reason: static. */
int turns_note_missed(struct scheduler *scheduler, struct job *job, const struct due_missed *missed, const char *reason);
void turns_note_known(struct scheduler *scheduler, const struct job *job, int64_t due);
/* A turn that this host may ask for from then on (CLOCK_REALTIME); nothing of it is recorded. attempt: 0: not known. */
void turns_add_open(struct scheduler *scheduler, struct job *job, int64_t due, uint32_t attempt, usec_t not_before);
void turns_drop_open(struct job *job, int64_t due); /* nobody can take it any more */

/* --- turn-claim.c --- */
/* Makes the claim of a run ask for the turn of its due time, if the job is shared. 0 or -ENOMEM: such a run must not claim, because it
 * would begin whoever has its turn. */
int turns_attach(struct job *job, struct run *run, struct run_time now);
/* A run of `berth start`: its claim asks whether a run of the job is not over anywhere, by overlap. */
void turns_attach_start(const struct job *job, struct run *run);
/* The answer: it may not begin. Notes for the client which run is not over. */
void turns_refuse_start(struct run *run, const struct store_turn_answer *answer);
/* It may begin: its claim is one as any other from here on. */
void turns_take_start(struct scheduler *scheduler, struct job *job, struct run *run);

/* --- turn-attempts.c --- */
/* Redis has answered which attempt the run is. */
void turn_attempts_take(struct run *run);
/* Sets what its claim sends to Redis about the next attempt. */
void turn_attempts_set_terms(const struct job *job, struct run *run, struct run_time now);
/* The run ended, and another attempt follows on any host. Recorded until Redis has answered. */
void turn_attempts_give_back(struct scheduler *scheduler, struct run *run, usec_t delay);
/* It has ended: this host asks for that attempt, too, after the others. */
void turn_attempts_ask_later(struct scheduler *scheduler, struct job *job, const struct run *run, struct run_time now);

/* --- due-missed.c --- */
/* A queued run ended before its turn came. */
void due_runs_log_dropped(struct scheduler *scheduler, struct job *job, const struct run *run);
void due_runs_log_missed(struct scheduler *scheduler, struct job *job, const struct due_missed *missed,
                         const char *reason);
void due_runs_log_one_missed(struct scheduler *scheduler, struct job *job, int64_t due, const char *reason);
void due_runs_log_clock_set(struct scheduler *scheduler, const struct job *job, usec_t now);

/* --- due-zones.c --- */
void due_zones_use_settings(struct scheduler *scheduler, struct run_time now); /* all jobs have theirs */
void due_zones_on_hour(void *userdata);
void due_zones_set_mark(struct scheduler *scheduler, struct job *job, int64_t mark);
/* Moves the mark if the zone has other rules than when the mark was made. The job has a zone. */
void due_zones_check_mark(struct scheduler *scheduler, struct job *job);

/* --- due-marks.c --- */
bool due_marks_needs_memory(const struct job_settings *settings); /* schedule, or every of 1m or more */
/* Reads the state directory if there is something in it or a job needs it. */
void due_marks_open(struct scheduler *scheduler);
void due_marks_save(struct scheduler *scheduler, const struct job *job);
void due_marks_forget(struct scheduler *scheduler, struct job *job);          /* it is defined no more */
void due_marks_forget_schedule(struct scheduler *scheduler, struct job *job); /* it has none any more */
/* It is known what runs: resumes what a reboot interrupted, and forgets records of runs that are over. */
void due_marks_settle(struct scheduler *scheduler, struct run_time now);
/* -ENOMEM: it is in no list and no record. */
int due_marks_add_entry(struct scheduler *scheduler, struct job *job, const struct due_entry *entry);
int due_marks_insert_entry(struct job *job, const struct due_entry *entry); /* without a record */
/* A record of a due time or a run; NULL removes it. */
void due_marks_put_run(struct scheduler *scheduler, const struct job *job, const char *run,
                       const struct message_writer *record);
void due_runs_note_trigger(struct scheduler *scheduler, const struct job *job); /* of `every` */
void due_runs_on_synced(uint64_t sync, void *scheduler);
