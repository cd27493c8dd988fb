/* SPDX-License-Identifier: MIT */
#pragma once

/* A timer on CLOCK_REALTIME that also reports when the clock is set. sd-event's realtime timers do not. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/clock.h"

typedef void (*wall_timer_fn)(bool clock_was_set, void *userdata); /* due, or the clock was set */

struct wall_timer {
    int fd;
    bool clock_was_set; /* noticed when the timer was set; reported with the next call */
    sd_event_source *source;
    wall_timer_fn fn;
    void *userdata;
};

/* Makes a timer that is not set. 0, or a negative errno: the timer is as after wall_timer_done(). */
int wall_timer_init(struct wall_timer *timer, sd_event *event, wall_timer_fn fn, void *userdata);
/* Calls fn at a time of CLOCK_REALTIME, at once if that is past. USEC_INFINITY: only when the clock is set. */
void wall_timer_set(struct wall_timer *timer, usec_t realtime);
/* Does nothing on a timer that is all zero. */
void wall_timer_done(struct wall_timer *timer);
