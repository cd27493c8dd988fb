/* SPDX-License-Identifier: MIT */

/* Timers and deferred calls: called once, at their time, and not when they are off. */

#include "base/timer.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

struct owner {
    sd_event *event;
    struct timer timer;
    struct defer defer;
    unsigned n_timer, n_defer;
    usec_t called;
};

static void on_time(void *userdata) {
    struct owner *owner = userdata;

    owner->n_timer++;
    owner->called = clock_boottime();
}

static void on_turn(void *userdata) {
    struct owner *owner = userdata;

    owner->n_defer++;
    if (owner->n_defer == 1)
        defer_set(&owner->defer);
}

static void owner_init(struct owner *owner) {
    CU_ASSERT_FATAL(sd_event_new(&owner->event) >= 0);
    TEST_INT(timer_init(&owner->timer, owner->event, SD_EVENT_PRIORITY_NORMAL, on_time, owner), 0);
    TEST_INT(defer_init(&owner->defer, owner->event, SD_EVENT_PRIORITY_NORMAL, on_turn, owner), 0);
}

static void owner_done(struct owner *owner) {
    timer_done(&owner->timer);
    defer_done(&owner->defer);
    sd_event_unref(owner->event);
}

/* Turns the loop until nothing has happened for 50 ms. */
static void turn(struct owner *owner) {
    while (sd_event_run(owner->event, 50 * USEC_PER_MSEC) > 0)
        ;
}

static void test_once_at_its_time(void) {
    struct owner owner = {};
    usec_t at;

    owner_init(&owner);
    turn(&owner);
    TEST_INT(owner.n_timer, 0);
    at = usec_add(clock_boottime(), 10 * USEC_PER_MSEC);
    timer_set(&owner.timer, usec_add(at, 3600 * USEC_PER_SEC));
    timer_set(&owner.timer, at);
    turn(&owner);
    TEST_INT(owner.n_timer, 1);
    CU_ASSERT(owner.called >= at);
    timer_set_in(&owner.timer, 0);
    turn(&owner);
    TEST_INT(owner.n_timer, 2);
    owner_done(&owner);
}

static void test_off(void) {
    struct owner owner = {};

    owner_init(&owner);
    timer_set_in(&owner.timer, 0);
    timer_off(&owner.timer);
    defer_set(&owner.defer);
    defer_off(&owner.defer);
    turn(&owner);
    timer_set(&owner.timer, 1);
    timer_set(&owner.timer, USEC_INFINITY);
    turn(&owner);
    TEST_INT(owner.n_timer + owner.n_defer, 0);
    owner_done(&owner);
}

static void test_defer_again(void) {
    struct owner owner = {};

    owner_init(&owner);
    defer_set(&owner.defer);
    turn(&owner);
    TEST_INT(owner.n_defer, 2);
    owner_done(&owner);
}

static void free_owner(void *userdata) {
    struct owner *owner = userdata;

    timer_done(&owner->timer);
    free(owner);
}

static void test_owner_freed_by_the_call(void) {
    struct owner *owner = calloc(1, sizeof(*owner)), loop = {};

    CU_ASSERT_PTR_NOT_NULL_FATAL(owner);
    owner_init(&loop);
    TEST_INT(timer_init(&owner->timer, loop.event, SD_EVENT_PRIORITY_NORMAL, free_owner, owner), 0);
    timer_set_in(&owner->timer, 0);
    turn(&loop);
    owner_done(&loop);
}

static void test_all_zero(void) {
    struct timer timer = {};
    struct defer defer = {};

    timer_set(&timer, 1);
    timer_set_in(&timer, 1);
    timer_off(&timer);
    timer_done(&timer);
    defer_set(&defer);
    defer_off(&defer);
    defer_done(&defer);
}

static CU_TestInfo tests[] = {
    {"once-at-its-time", test_once_at_its_time},
    {"off", test_off},
    {"defer-again", test_defer_again},
    {"owner-freed-by-the-call", test_owner_freed_by_the_call},
    {"all-zero", test_all_zero},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "timer", .pTests = tests});
