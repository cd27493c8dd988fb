/* SPDX-License-Identifier: MIT */
#pragma once

/* A defined job: when it runs next, and whether a trigger begins a run. Decisions only: no clock, no fd. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/timer-heap.h"
#include "conf/settings.h"
#include "daemon/jobs/attempts.h"
#include "daemon/run.h"

struct job {
    const struct job_settings *settings;
    struct list runs;                 /* struct run: not over, the queued one among them */
    struct heap_timer due;            /* of `every` */
    struct heap_timer silence;        /* of max-silence */
    char name[NAME_MAX_LENGTH + 1];
    /* Kept in jobs/NAME: */
    usec_t last_trigger_realtime;     /* begun, queued, or due and skipped; 0: never */
    usec_t last_started_realtime;     /* 0: never */
    usec_t last_ended_realtime;
    enum run_result last_result;
    int last_exit_code, last_signal;  /* -1: none */
    char last_run[ID_TEXT_SIZE];      /* the run of these; "": none */
    uint64_t last_token;              /* 0: it had none */
    bool queued;                      /* overlap = "queue": queued_run begins when the present run is over */
    char queued_run[ID_TEXT_SIZE];
    bool at_start_done;               /* since the service was started */
    struct job_attempts attempts;     /* of jobs that use them */
};

enum job_decision { JOB_DECISION_BEGIN, JOB_DECISION_QUEUE, JOB_DECISION_SKIP };
/* What a trigger does while n_runs runs of the job are not over. */
enum job_decision job_decide(const struct job *j, enum job_overlap overlap, size_t n_runs);
/* When `every` is due, on CLOCK_REALTIME because that outlasts restarts: the last trigger + every. `now` if there was none, or if that is
 * in the past or more than `every` in the future (the clock was set back). USEC_INFINITY without `every`. */
usec_t job_next(const struct job *j, usec_t every_usec, usec_t now_realtime);
