/* SPDX-License-Identifier: MIT */
#pragma once

/* One-shot timers and deferred calls of an event loop. Both are embedded in their owner, which must not
 * move. Only init can fail: the calls of sd-event behind the others fail only for missing sources, a
 * finished loop, or after a fork. All functions do nothing on an object that is all zero or done. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/clock.h"

typedef void (*timer_fn)(void *userdata); /* may set the timer again, and may free its owner */

struct timer {
    sd_event_source *source;
    timer_fn fn;
    void *userdata;
};

/* Makes a timer that is not set. Accurate to a millisecond. 0 or a negative errno; the timer is all zero
 * then. */
int timer_init(struct timer *timer, sd_event *event, int64_t priority, timer_fn fn, void *userdata);
/* Calls fn once at a time of CLOCK_BOOTTIME; USEC_INFINITY: never. Replaces an earlier time. */
void timer_set(struct timer *timer, usec_t boottime);
/* Calls fn once, this long after the begin of the current turn of the loop. */
void timer_set_in(struct timer *timer, usec_t usec);
void timer_off(struct timer *timer);
bool timer_is_set(const struct timer *timer);
void timer_done(struct timer *timer);

struct defer {
    sd_event_source *source;
    timer_fn fn;
    void *userdata;
};

int defer_init(struct defer *defer, sd_event *event, int64_t priority, timer_fn fn, void *userdata);
/* Calls fn once, in this or the next turn of the loop. */
void defer_set(struct defer *defer);
void defer_off(struct defer *defer);
void defer_done(struct defer *defer);
