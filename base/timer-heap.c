/* SPDX-License-Identifier: MIT */
#include "base/timer-heap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put(struct dues *d, struct due *due, size_t i) {
    d->heap[i] = due;
    due->place = i + 1;
}

static void swap(struct dues *d, size_t a, size_t b) {
    struct due *due = d->heap[a];

    put(d, d->heap[b], a);
    put(d, due, b);
}

/* Moves what stands at i to where it belongs. */
static void settle(struct dues *d, size_t i) {
    for (; i > 0 && d->heap[i]->at < d->heap[(i - 1) / 2]->at; i = (i - 1) / 2)
        swap(d, i, (i - 1) / 2);
    for (;;) {
        size_t first = i, left = 2 * i + 1, right = left + 1;

        if (left < d->n && d->heap[left]->at < d->heap[first]->at)
            first = left;
        if (right < d->n && d->heap[right]->at < d->heap[first]->at)
            first = right;
        if (first == i)
            return;
        swap(d, i, first);
        i = first;
    }
}

/* Neither call fails for a source of a living loop. */
static void arm(struct dues *d) {
    if (d->n > 0)
        (void) sd_event_source_set_time(d->timer, d->heap[0]->at);
    (void) sd_event_source_set_enabled(d->timer, d->n > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void take_out(struct dues *d, struct due *due) {
    size_t i = due->place - 1;
    struct due *last = d->heap[--d->n];

    due->place = 0;
    if (last == due)
        return;
    put(d, last, i);
    settle(d, i);
}

static int dues_on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
    struct dues *d = userdata;
    usec_t now = clock_boottime();

    (void) source, (void) usec;
    while (d->n > 0 && d->heap[0]->at <= now) {
        struct due *due = d->heap[0];

        take_out(d, due);
        d->fn(due, d->userdata);
    }
    arm(d);
    return 0;
}

int dues_init(struct dues *d, sd_event *event, int64_t priority, due_fn fn, void *userdata) {
    int k;

    *d = (struct dues) {.fn = fn, .userdata = userdata};
    k = sd_event_add_time(event, &d->timer, CLOCK_BOOTTIME, USEC_INFINITY, USEC_PER_MSEC, dues_on_timer, d);
    if (k >= 0)
        k = sd_event_source_set_priority(d->timer, priority);
    return k < 0 ? k : sd_event_source_set_enabled(d->timer, SD_EVENT_OFF);
}

void dues_done(struct dues *d) {
    d->timer = sd_event_source_disable_unref(d->timer);
    for (size_t i = 0; i < d->n; i++)
        d->heap[i]->place = 0;
    free(d->heap);
    d->heap = NULL;
    d->n = d->room = d->allocated = 0;
}

int dues_make_room(struct dues *d) {
    size_t allocated = d->allocated > 0 ? 2 * d->allocated : 16;
    struct due **heap;

    if (d->room == d->allocated) {
        heap = reallocarray(d->heap, allocated, sizeof(struct due *));
        if (!heap)
            return -ENOMEM;
        d->heap = heap;
        d->allocated = allocated;
    }
    d->room++;
    return 0;
}

void dues_give_room(struct dues *d) {
    assert(d->room > d->n);
    d->room--;
}

void dues_set(struct dues *d, struct due *due, usec_t at) {
    if (at == USEC_INFINITY || (due->place > 0 && due->dues != d))
        dues_unset(due);
    if (at == USEC_INFINITY)
        return;
    due->at = at;
    if (due->place == 0) {
        assert(d->n < d->room);
        due->dues = d;
        put(d, due, d->n++);
    }
    settle(d, due->place - 1);
    arm(d);
}

void dues_unset(struct due *due) {
    if (due->place == 0)
        return;
    take_out(due->dues, due);
    arm(due->dues);
}
