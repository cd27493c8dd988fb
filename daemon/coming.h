/* SPDX-License-Identifier: MIT */
#pragma once

/* The next begins of jobs, for `berth next`. daemon/jobs/coming.c lists them. */

#include "base/clock.h"
#include "base/schedule/schedule.h"
#include "conf/settings.h"
#include "daemon/runs/run-origin.h"

#define COMING_MAX 10000

struct job;
struct scheduler;

struct coming {               /* points into the scheduler and its settings */
    const struct job *job;
    const struct job_settings *settings;
    usec_t begin_realtime;
    enum run_trigger trigger; /* SCHEDULE, EVERY; RETRY, RESTART or HOOK: of a run between two attempts */
    uint32_t attempt;         /* of a run between two attempts, or of a turn that no host has now; else 0 */
    int64_t open_due;         /* the due time of a turn that no host has now; 0: none */
    struct schedule_due due;  /* this and the next two: of a due time of a schedule */
    const struct zone *zone;  /* NULL: not by a schedule */
    usec_t splay_usec;
};

/* Returns when a job with `every` begins next (realtime); now: it is due. */
usec_t coming_by_every(const struct job *job, usec_t now);
/* Lists the first `count` begins after `from` (0: now), soonest first, of all jobs or of one. The caller
 * frees *ret. Returns 0 or -ENOMEM. */
int coming_list(const struct scheduler *scheduler, const struct job *job, usec_t from, usec_t now, size_t count,
                struct coming **ret, size_t *ret_n);
