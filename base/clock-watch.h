/* SPDX-License-Identifier: MIT */
#pragma once

/* Reports when CLOCK_REALTIME is set. sd-event's realtime timers do not. */

#include <systemd/sd-event.h>

typedef void (*clock_watch_fn)(void *userdata); /* the clock was set */

struct clock_watch {
    int fd;
    sd_event_source *source;
    clock_watch_fn fn;
    void *userdata;
};

/* 0, or a negative errno: the watch is as after clock_watch_done(). */
int clock_watch_init(struct clock_watch *watch, sd_event *event, clock_watch_fn fn, void *userdata);
/* Does nothing on a watch that is all zero. */
void clock_watch_done(struct clock_watch *watch);
