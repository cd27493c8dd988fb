/* SPDX-License-Identifier: MIT */

/* Timers on the wall clock, with a clock in the test's hands. */

#include "base/wall-timer.h"

#include "base/cleanup.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/test.h"

#define HOUR (INT64_C(3600) * (int64_t) USEC_PER_SEC)

struct owner {
    sd_event *event;
    struct wall_timer timer;
    unsigned n, n_set;
};

static void on_time(bool clock_was_set, void *userdata) {
    struct owner *owner = userdata;

    owner->n++;
    owner->n_set += clock_was_set;
}

static void owner_init(struct owner *owner) {
    clock_file_step(&own_clock, 0);
    *owner = (struct owner){};
    CU_ASSERT_FATAL(sd_event_new(&owner->event) >= 0);
    TEST_INT(wall_timer_init(&owner->timer, owner->event, on_time, owner), 0);
}

static void owner_done(struct owner *owner) {
    wall_timer_done(&owner->timer);
    wall_timer_done(&owner->timer);
    sd_event_unref(owner->event);
}

/* Turns the loop until nothing has happened for 50 ms. */
static void turn(struct owner *owner) {
    while (sd_event_run(owner->event, 50 * USEC_PER_MSEC) > 0)
        ;
}

static void test_due(void) {
    struct owner owner;

    owner_init(&owner);
    turn(&owner);
    TEST_INT(owner.n, 0);
    wall_timer_set(&owner.timer, clock_realtime() + 10 * USEC_PER_MSEC);
    turn(&owner);
    TEST_INT(owner.n, 1);
    wall_timer_set(&owner.timer, 0);
    turn(&owner);
    TEST_INT(owner.n, 2);
    TEST_INT(owner.n_set, 0);
    wall_timer_set(&owner.timer, clock_realtime() + HOUR);
    wall_timer_set(&owner.timer, USEC_INFINITY);
    turn(&owner);
    TEST_INT(owner.n, 2);
    owner_done(&owner);
}

static void test_clock_set(void) {
    struct owner owner;
    usec_t due;

    owner_init(&owner);
    clock_file_step(&own_clock, -5 * HOUR);
    turn(&owner);
    TEST_INT(owner.n, 1);
    TEST_INT(owner.n_set, 1);
    due = clock_realtime() + HOUR;
    wall_timer_set(&owner.timer, due);
    clock_file_step(&own_clock, -4 * HOUR - 1000);
    turn(&owner);
    TEST_INT(owner.n, 3); /* set, and due a moment later */
    TEST_INT(owner.n_set, 2);
    turn(&owner);
    TEST_INT(owner.n, 3);
    owner_done(&owner);
}

/* Between two turns of the loop: timerfd_settime(2) is the first to see it. */
static void test_clock_set_before_the_timer(void) {
    struct owner owner;

    owner_init(&owner);
    clock_file_step(&own_clock, HOUR);
    wall_timer_set(&owner.timer, clock_realtime() + HOUR);
    turn(&owner);
    TEST_INT(owner.n, 1);
    TEST_INT(owner.n_set, 1);
    owner_done(&owner);
}

static CU_TestInfo tests[] = {
    {"due", test_due},
    {"clock-set", test_clock_set},
    {"clock-set-before-the-timer", test_clock_set_before_the_timer},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "wall-timer", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
