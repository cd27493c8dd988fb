/* SPDX-License-Identifier: MIT */
#pragma once

/* A defined job: when it runs next, and whether a trigger begins a run. Decisions only: no clock, no fd. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/timer-heap.h"
#include "conf/settings.h"
#include "daemon/jobs/due.h"
#include "daemon/jobs/attempts.h"
#include "daemon/runs/run.h"

struct due_entry { /* a due time, and the id of the run that will begin for it */
    struct list link;
    int64_t due;
    char run[ID_TEXT_SIZE];
    bool joins_backlog;
    /* Of a job that hosts share (turns.c): */
    bool is_open;             /* its turn is open, or this host asked too early; not recorded */
    bool is_passing;          /* Redis was asked to pass it and has not answered */
    uint32_t attempt;         /* of an open one; 0: not known */
    usec_t not_before;        /* CLOCK_REALTIME; 0: at its time */
    struct due_missed missed; /* count 0: it will be begun; else these are missed, and `due` is the last */
    const char *reason;       /* why missed, or why this host could not ask for it; static, or NULL */
};

/* The due times of a job. Seconds since 1970, but for next_begin. */
struct job_schedule {
    bool is_known;                    /* there is a mark */
    int64_t mark;                     /* all due times up to this one are decided */
    int64_t mark_local;               /* local time in the zone when the mark was made; 0: not known */
    uint64_t hash;                    /* schedule_hash of the settings with which the mark was made */
    uint64_t serial;                  /* grows with each change of the mark; the highest record counts */
    uint64_t settled_serial;          /* of the last mark without noted due times before it */
    int64_t begun;                    /* noted due times up to this one have a run or were skipped */
    usec_t next_begin;                /* CLOCK_REALTIME; USEC_INFINITY: never */
    const struct shared_zone *zone;   /* NULL, or has no zone: cannot be read, so the job is never due */
    usec_t splay_usec;                /* this job's part */
    struct list entries;              /* struct due_entry: noted, oldest first */
    uint64_t sync;                    /* jobs_file_sync() that the entries wait for; 0: none */
    struct list planning, beginning;  /* links on the scheduler's lists of that name */
    uint64_t n_missed;                /* since berthd started */
    int64_t last_missed;
};

struct job {
    const struct job_settings *settings;
    struct list runs;                 /* struct run: not over, also queued */
    struct heap_timer due;            /* of `every` or the schedule */
    struct heap_timer silence;        /* of max-silence */
    struct job_schedule schedule;
    bool is_kept;                     /* scheduler_forget_open() found a run of it */
    char name[NAME_MAX_LENGTH + 1];
    /* Kept in jobs/NAME: */
    usec_t last_trigger_realtime;     /* begun, queued, or due and skipped; 0: never */
    usec_t last_started_realtime;     /* 0: never */
    usec_t last_ended_realtime;
    enum run_result last_result;
    int last_exit_code, last_signal;  /* -1: none */
    char last_run[ID_TEXT_SIZE];      /* the run of these; "": none */
    uint64_t last_token;              /* 0: it had none */
    char skipped_for[ID_TEXT_SIZE];   /* the active run for which a skip of `every` is logged; "": none */
    bool at_start_done;               /* since the service was started */
    struct job_attempts attempts;     /* of jobs that use them */
    /* Also there: mark, hash, serial and decided of the schedule. */
};

enum job_decision { JOB_DECISION_BEGIN, JOB_DECISION_QUEUE, JOB_DECISION_SKIP, JOB_DECISION_REPLACE };
/* Returns what a trigger does while n_runs runs of the job are not over and n_queued wait for them. */
enum job_decision job_decide(const struct job_triggers *triggers, size_t n_runs, size_t n_queued);
/* Returns how many runs wait until the others of the job are over. */
size_t job_count_queued(const struct job *job);
/* Returns mark and serial for a record without the noted due times. The mark stays before the oldest of
 * them, and the serial below that of the record with them: berthd may be killed before they are on the
 * disk. */
void job_get_settled_mark(const struct job_schedule *schedule, int64_t *ret_mark, uint64_t *ret_serial);
/* Returns when `every` is due: last trigger + every, on CLOCK_REALTIME, which outlasts restarts. Returns now
 * if there was no trigger, or if that time is past or more than `every` ahead (the clock was set back).
 * USEC_INFINITY without `every`. */
usec_t job_next(const struct job *j, usec_t every_usec, usec_t now_realtime);
