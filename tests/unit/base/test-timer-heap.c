/* SPDX-License-Identifier: MIT */

/* Thousands of timers on one event source elapse in order, except those that were moved away or unset. */

#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/timer-heap.h"
#include "base/list.h"
#include "tests/harness/test.h"

#define THINGS 1000

static struct thing {
    struct heap_timer timer;
    usec_t wanted; /* USEC_INFINITY: never */
    bool has_elapsed;
} things[THINGS];
static struct timer_heap heap;
static usec_t last;
static unsigned n_elapsed;

static void on_elapsed(struct heap_timer *timer, _unused_ void *userdata) {
    struct thing *t = list_entry(timer, struct thing, timer);

    CU_ASSERT(timer->heap_index == 0);
    CU_ASSERT(t->wanted <= clock_boottime() && t->wanted >= last);
    CU_ASSERT_FALSE(t->has_elapsed);
    last = t->wanted;
    t->has_elapsed = true;
    n_elapsed++;
}

static void set(struct thing *t, usec_t at) {
    t->wanted = at;
    timer_heap_set(&heap, &t->timer, at);
}

static void test_order(void) {
    sd_event *event = NULL;
    usec_t now = clock_boottime();
    unsigned expected = 0;

    srand(1);
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0 && timer_heap_init(&heap, event, SD_EVENT_PRIORITY_NORMAL, on_elapsed, NULL) >= 0);
    for (size_t i = 0; i < THINGS; i++) {
        CU_ASSERT_FATAL(timer_heap_reserve(&heap) == 0);
        set(&things[i], now + (usec_t) (rand() % 20000));
    }
    for (size_t i = 0; i < THINGS; i++) { /* some at another time, some never, some much later */
        if (i % 3 == 0)
            set(&things[i], now + (usec_t) (rand() % 20000));
        else if (i % 7 == 0)
            set(&things[i], USEC_INFINITY);
        else if (i % 11 == 0)
            set(&things[i], now + 3600 * USEC_PER_SEC);
    }
    for (size_t i = 0; i < THINGS; i++)
        expected += things[i].wanted <= now + 20000;
    while (n_elapsed < expected && clock_boottime() < now + 10 * USEC_PER_SEC)
        CU_ASSERT_FATAL(sd_event_run(event, USEC_PER_SEC) >= 0);
    TEST_INT(n_elapsed, expected);
    for (size_t i = 0; i < THINGS; i++) {
        CU_ASSERT(things[i].has_elapsed == (things[i].wanted <= now + 20000));
        timer_heap_unset(&things[i].timer);
        timer_heap_unreserve(&heap);
    }
    TEST_INT(heap.n, 0);
    timer_heap_done(&heap);
    timer_heap_done(&heap);
    sd_event_unref(event);
}

static struct thing again = {.wanted = 1};

static void on_elapsed_again(struct heap_timer *timer, void *userdata) {
    n_elapsed++;
    if (n_elapsed < 3)
        timer_heap_set(userdata, timer, clock_boottime() + 1000);
}

/* A timer that the callback sets elapses in its turn. */
static void test_again(void) {
    struct timer_heap d;
    sd_event *event = NULL;

    n_elapsed = 0;
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0 && timer_heap_init(&d, event, SD_EVENT_PRIORITY_NORMAL, on_elapsed_again, &d) >= 0 &&
                    timer_heap_reserve(&d) == 0);
    timer_heap_set(&d, &again.timer, 1);
    while (n_elapsed < 3)
        CU_ASSERT_FATAL(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
    CU_ASSERT(again.timer.heap_index == 0);
    timer_heap_done(&d);
    sd_event_unref(event);
}

/* A timer elapses only in the heap in which it was set last. */
static void test_other(void) {
    struct timer_heap first, second;
    sd_event *event = NULL;

    n_elapsed = 0;
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0 && timer_heap_init(&first, event, SD_EVENT_PRIORITY_NORMAL, on_elapsed, NULL) >= 0);
    CU_ASSERT_FATAL(timer_heap_init(&second, event, SD_EVENT_PRIORITY_NORMAL + 10, on_elapsed_again, &second) >= 0);
    CU_ASSERT_FATAL(timer_heap_reserve(&first) == 0 && timer_heap_reserve(&second) == 0);
    timer_heap_set(&first, &again.timer, 1);
    timer_heap_set(&second, &again.timer, 1);
    TEST_INT(first.n, 0);
    TEST_INT(second.n, 1);
    while (n_elapsed < 3)
        CU_ASSERT_FATAL(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
    timer_heap_done(&first);
    timer_heap_done(&second);
    sd_event_unref(event);
}

static CU_TestInfo tests[] = {
    {"in-order-moved-unset", test_order},
    {"set-by-the-callback", test_again},
    {"moved-to-another-heap", test_other},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "timer-heap", .pTests = tests});
