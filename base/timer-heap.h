/* SPDX-License-Identifier: MIT */
#pragma once

/* Thousands of things, each with a time at which something is due: a heap of pointers to them and one timer. An event source for each
 * would take 300 bytes. What may fail for lack of memory is making room; setting a time never does. */

#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/clock.h"

struct dues;

struct due {            /* inside of the thing; all zero: not set */
    usec_t at;          /* CLOCK_BOOTTIME */
    struct dues *dues;  /* where it is set */
    size_t place;       /* in the heap of those, from 1; 0: not set */
};

typedef void (*due_fn)(struct due *due, void *userdata); /* it is not set any more; may set any */

struct dues {
    struct due **heap; /* [0] is the earliest */
    size_t n, room, allocated;
    sd_event_source *timer;
    due_fn fn;
    void *userdata;
};

/* A negative errno, or 0 with no room. */
int dues_init(struct dues *d, sd_event *event, int64_t priority, due_fn fn, void *userdata);
/* Nothing is due any more; the things are the caller's. All zero or after a failed dues_init(), too. */
void dues_done(struct dues *d);
/* Room for one thing more; 0 or -ENOMEM. And given back, when it is not set. */
int dues_make_room(struct dues *d);
void dues_give_room(struct dues *d);
/* At another time, or among other dues, if it is set already. USEC_INFINITY: never. */
void dues_set(struct dues *d, struct due *due, usec_t at);
void dues_unset(struct due *due);
