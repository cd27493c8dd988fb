/* SPDX-License-Identifier: MIT */
#pragma once

/* Whether a job is well or broken, and which events follow from an end or from the lack of one. Decisions
 * alone: no clock, no descriptor. Times are µs of CLOCK_REALTIME, because they outlast a reboot. The rules
 * are those of `on-broken` and `max-silence` in berth.conf(5). */

#include <stdbool.h>

#include "base/clock.h"
#include "conf/settings.h"
#include "daemon/runs/chain.h"

struct health {
    bool is_broken;
    uint32_t n_bad;       /* bad ends in a row */
    usec_t bad_since;     /* the first of these; 0: the last end was good, or there was none */
    usec_t last_good;     /* 0: none yet */
    usec_t known_since;   /* when the job was first known */
    usec_t last_reminder; /* latest start of on-broken, if the job is broken */
    usec_t last_overdue;  /* latest HEALTH_OVERDUE since the last good end; 0: none */
};

/* Bits of a mask. */
enum health_event {
    HEALTH_SUCCESS = 1 << 0,   /* on-success */
    HEALTH_FAILURE = 1 << 1,   /* on-failure */
    HEALTH_BROKEN = 1 << 2,    /* on-broken, the first time */
    HEALTH_REMINDER = 1 << 3,  /* on-broken again, while the job is broken */
    HEALTH_RECOVERED = 1 << 4, /* on-recovered */
    HEALTH_OVERDUE = 1 << 5,   /* on-broken: no good end for max-silence */
};

/* Notes the end of a chain. Returns a mask of enum health_event. */
unsigned health_note_end(struct health *health, const struct job_hooks *hooks, enum chain_end end,
                         usec_t now);
/* Notes that time has passed. Returns HEALTH_OVERDUE, with HEALTH_BROKEN if the job was well; or 0. */
unsigned health_note_time(struct health *health, const struct job_hooks *hooks, usec_t now);
/* Returns when to call health_note_time() next, also if the clock was set back; USEC_INFINITY: never. */
usec_t health_next(const struct health *health, const struct job_hooks *hooks, usec_t now);
