/* SPDX-License-Identifier: MIT */
#pragma once

/* Which due times of a job are begun, and which are missed. Decisions only: no clock, no descriptor. */

#include "base/clock.h"
#include "base/schedule/schedule.h"

#define DUE_COUNT_MAX 10000         /* missed ones are counted up to this many */
#define DUE_ALWAYS_FRESH (2 * USEC_PER_SEC)
#define DUE_CLOCK_SET (3 * 3600)    /* s: a clock set back by more than this makes due times come again */

struct due_terms {
    const struct schedule *schedule;
    const struct zone *zone;
    usec_t splay_usec;              /* delay of each begin of this job */
    usec_t catch_up_usec;
    uint32_t backlog;
};

struct due_missed {
    uint64_t count;                 /* 0: none */
    int64_t first, last;
};

struct due_plan {
    int64_t mark;                   /* all due times up to this one are decided */
    struct schedule_due *begun;     /* oldest first; owned by the plan */
    size_t n_begun;                 /* at most terms->backlog */
    struct due_missed missed;       /* older than catch-up */
    struct due_missed surplus;      /* missed as well: fresh, but older than the newest `backlog` ones */
    usec_t next;                    /* CLOCK_REALTIME µs: when to plan again; USEC_INFINITY: never */
    bool clock_was_set;             /* the mark was more than DUE_CLOCK_SET ahead, and was set back to now */
};

/* Plans the due times with mark < due and due + splay <= now. Returns 0, or -ENOMEM: nothing is decided. */
int due_plan(const struct due_terms *terms, int64_t mark, usec_t now_realtime, struct due_plan *ret);
void due_plan_done(struct due_plan *plan);
