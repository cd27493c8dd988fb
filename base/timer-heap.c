/* SPDX-License-Identifier: MIT */
#include "base/timer-heap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static void put(struct timer_heap *heap, struct heap_timer *timer, size_t i) {
    heap->items[i] = timer;
    timer->heap_index = i + 1;
}

static void swap(struct timer_heap *heap, size_t a, size_t b) {
    struct heap_timer *timer = heap->items[a];

    put(heap, heap->items[b], a);
    put(heap, timer, b);
}

/* Moves the timer at i up or down to its place. */
static void sift(struct timer_heap *heap, size_t i) {
    for (; i > 0 && heap->items[i]->at < heap->items[(i - 1) / 2]->at; i = (i - 1) / 2)
        swap(heap, i, (i - 1) / 2);
    for (;;) {
        size_t first = i, left = 2 * i + 1, right = left + 1;

        if (left < heap->n && heap->items[left]->at < heap->items[first]->at)
            first = left;
        if (right < heap->n && heap->items[right]->at < heap->items[first]->at)
            first = right;
        if (first == i)
            return;
        swap(heap, i, first);
        i = first;
    }
}

static void arm(struct timer_heap *heap) {
    timer_set(&heap->timer, heap->n > 0 ? heap->items[0]->at : USEC_INFINITY);
}

static void take_out(struct heap_timer *timer) {
    struct timer_heap *heap = timer->heap;
    size_t i = timer->heap_index - 1;
    struct heap_timer *last = heap->items[--heap->n];

    timer->heap_index = 0;
    if (last == timer)
        return;
    put(heap, last, i);
    sift(heap, i);
}

static void timer_heap_on_timer(void *userdata) {
    struct timer_heap *heap = userdata;
    usec_t now = clock_boottime();

    while (heap->n > 0 && heap->items[0]->at <= now) {
        struct heap_timer *elapsed = heap->items[0];

        take_out(elapsed);
        heap->fn(elapsed, heap->userdata);
    }
    arm(heap);
}

int timer_heap_init(struct timer_heap *heap, sd_event *event, int64_t priority, timer_heap_fn fn, void *userdata) {
    *heap = (struct timer_heap) {.fn = fn, .userdata = userdata};
    return timer_init(&heap->timer, event, priority, timer_heap_on_timer, heap);
}

void timer_heap_done(struct timer_heap *heap) {
    timer_done(&heap->timer);
    for (size_t i = 0; i < heap->n; i++)
        heap->items[i]->heap_index = 0;
    free(heap->items);
    heap->items = NULL;
    heap->n = heap->reserved = heap->allocated = 0;
}

int timer_heap_reserve(struct timer_heap *heap) {
    size_t allocated = heap->allocated > 0 ? 2 * heap->allocated : 16;
    struct heap_timer **items;

    if (heap->reserved == heap->allocated) {
        items = reallocarray(heap->items, allocated, sizeof(struct heap_timer *));
        if (!items)
            return -ENOMEM;
        heap->items = items;
        heap->allocated = allocated;
    }
    heap->reserved++;
    return 0;
}

void timer_heap_unreserve(struct timer_heap *heap) {
    assert(heap->reserved > heap->n);
    heap->reserved--;
}

void timer_heap_set(struct timer_heap *heap, struct heap_timer *timer, usec_t boottime) {
    if (boottime == USEC_INFINITY || (timer->heap_index > 0 && timer->heap != heap))
        timer_heap_unset(timer);
    if (boottime == USEC_INFINITY)
        return;
    timer->at = boottime;
    if (timer->heap_index == 0) {
        assert(heap->n < heap->reserved);
        timer->heap = heap;
        put(heap, timer, heap->n++);
    }
    sift(heap, timer->heap_index - 1);
    arm(heap);
}

void timer_heap_unset(struct heap_timer *timer) {
    if (timer->heap_index == 0)
        return;
    take_out(timer);
    arm(timer->heap);
}
