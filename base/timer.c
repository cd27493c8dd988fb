/* SPDX-License-Identifier: MIT */
#include "base/timer.h"

#include <time.h>

#include "base/cleanup.h"

#define ACCURACY USEC_PER_MSEC

/* Switches a new source off and sets its priority. Frees the source on failure. */
static int prepare(sd_event_source **source, int64_t priority) {
    int r = sd_event_source_set_enabled(*source, SD_EVENT_OFF);

    if (r >= 0)
        r = sd_event_source_set_priority(*source, priority);
    if (r < 0)
        *source = sd_event_source_disable_unref(*source);
    return r < 0 ? r : 0;
}

static void set_enabled(sd_event_source *source, int enabled) {
    if (source)
        (void) sd_event_source_set_enabled(source, enabled);
}

/* ---- timers ---- */

/* sd-event silently disables a source whose callback returns a negative number, so fn returns nothing. */
static int timer_on_time(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct timer *timer = userdata;

    timer->fn(timer->userdata);
    return 0;
}

int timer_init(struct timer *timer, sd_event *event, int64_t priority, timer_fn fn, void *userdata) {
    int r;

    *timer = (struct timer) {.fn = fn, .userdata = userdata};
    r = sd_event_add_time(event, &timer->source, CLOCK_BOOTTIME, UINT64_MAX, ACCURACY, timer_on_time, timer);
    return r < 0 ? r : prepare(&timer->source, priority);
}

void timer_set(struct timer *timer, usec_t boottime) {
    if (timer->source && boottime != USEC_INFINITY)
        (void) sd_event_source_set_time(timer->source, boottime);
    set_enabled(timer->source, boottime != USEC_INFINITY ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

void timer_set_in(struct timer *timer, usec_t usec) {
    uint64_t now;

    if (timer->source && sd_event_now(sd_event_source_get_event(timer->source), CLOCK_BOOTTIME, &now) >= 0)
        timer_set(timer, usec_add(now, usec));
}

void timer_off(struct timer *timer) {
    set_enabled(timer->source, SD_EVENT_OFF);
}

bool timer_is_set(const struct timer *timer) {
    return timer->source && sd_event_source_get_enabled(timer->source, NULL) > 0;
}

void timer_done(struct timer *timer) {
    timer->source = sd_event_source_disable_unref(timer->source);
}

/* ---- deferred calls ---- */

static int defer_on_turn(_unused_ sd_event_source *source, void *userdata) {
    struct defer *defer = userdata;

    defer->fn(defer->userdata);
    return 0;
}

int defer_init(struct defer *defer, sd_event *event, int64_t priority, timer_fn fn, void *userdata) {
    int r;

    *defer = (struct defer) {.fn = fn, .userdata = userdata};
    r = sd_event_add_defer(event, &defer->source, defer_on_turn, defer);
    return r < 0 ? r : prepare(&defer->source, priority);
}

void defer_set(struct defer *defer) {
    set_enabled(defer->source, SD_EVENT_ONESHOT);
}

void defer_off(struct defer *defer) {
    set_enabled(defer->source, SD_EVENT_OFF);
}

void defer_done(struct defer *defer) {
    defer->source = sd_event_source_disable_unref(defer->source);
}
