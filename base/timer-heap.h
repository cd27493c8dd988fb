/* SPDX-License-Identifier: MIT */
#pragma once

/* Timers of thousands of objects on one event source: a heap of pointers to them. An event source for
 * each would take 300 bytes. Memory is reserved first, so setting a timer cannot fail. */

#include <stddef.h>

#include "base/timer.h"

struct timer_heap;

struct heap_timer {          /* embedded in the object; all zero: not set */
    usec_t at;               /* CLOCK_BOOTTIME */
    struct timer_heap *heap; /* the heap in which it is set */
    size_t heap_index;       /* from 1; 0: not set */
};

typedef void (*timer_heap_fn)(struct heap_timer *elapsed, void *userdata); /* elapsed is not set any more; may set timers */

struct timer_heap {
    struct heap_timer **items; /* [0] is the earliest */
    size_t n, reserved, allocated;
    struct timer timer;
    timer_heap_fn fn;
    void *userdata;
};

/* Initializes a heap without reserved places. 0 or a negative errno. */
int timer_heap_init(struct timer_heap *heap, sd_event *event, int64_t priority, timer_heap_fn fn, void *userdata);
/* Unsets all timers. Does nothing on an all-zero heap or after a failed timer_heap_init(). */
void timer_heap_done(struct timer_heap *heap);
/* Reserves a place for one more timer. 0 or -ENOMEM. */
int timer_heap_reserve(struct timer_heap *heap);
/* Gives back the place of a timer that is not set. */
void timer_heap_unreserve(struct timer_heap *heap);
/* Sets a timer, or moves it from another time or heap. USEC_INFINITY unsets it. */
void timer_heap_set(struct timer_heap *heap, struct heap_timer *timer, usec_t boottime);
void timer_heap_unset(struct heap_timer *timer);
