/* SPDX-License-Identifier: MIT */

/* Guards of a real berth-runner stop a command by its deadline, or do not begin it. The test sets the
 * guard's clock. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/protocol.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

/* The stop timeout is long enough for a busy machine to deliver the signal. */
#define WAITS(name, more) \
    TEST_COMMAND(name, "trap 'exit 7' TERM; echo ready; sleep 1000 & wait", "output = \"@/" name ".out\" stop-timeout = \"5s\" " more)
#define DEAF(name, more) TEST_OUT(name, "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 1000; done", more)

#define STANDS_AT (1000 * USEC_PER_SEC)

static struct test_runner t;
static struct clock_file guard_clock;
static struct message m; /* large */

/* The guard's clock stands from now on, and advances when the test sets it. */
static void begin_on_clock(const char *jobs) {
    char path[96];

    test_runner_prepare(&t, getuid());
    snprintf(path, sizeof(path), "%s/clock", t.directory);
    clock_file_make(&guard_clock, path);
    clock_file_stand(&guard_clock, STANDS_AT);
    t.environment = guard_clock.environment;
    test_runner_configure(&t, jobs);
    test_runner_start(&t);
    test_runner_join(&t);
}

/* A guard that has replied twice has read its clock in between. */
static void is_running_at(usec_t time) {
    _cleanup_close_ int guard = -1;

    clock_file_stand(&guard_clock, time);
    for (int i = 0; i < 2; i++) {
        close_fd(guard);
        guard = test_runner_guard(&t, '1');
        test_await(guard, &m, PROTOCOL_STATE);
        TEST_FIELD(&m, "phase", "running");
    }
}

/* Without a message the guard kills 100 ms before the deadline, and sends the stop signal 200 ms
 * (stop-timeout) before that. */
static void stops_for(usec_t deadline) {
    _cleanup_close_ int guard = -1;

    is_running_at(deadline - 302 * USEC_PER_MSEC);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    clock_file_stand(&guard_clock, deadline - 298 * USEC_PER_MSEC);
    test_await(guard, &m, PROTOCOL_STOPPING);
    TEST_FIELD(&m, "reason", "lease-lost");
    clock_file_stand(&guard_clock, deadline - 98 * USEC_PER_MSEC);
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "reason", "lease-lost");
    TEST_FIELD(&m, "signal", "9");
    TEST_INT(test_number(&m, "gone-before"), 98 * USEC_PER_MSEC);
    TEST_INT(test_number(&m, "ended-boot"), deadline - 98 * USEC_PER_MSEC);
    test_guard_finish(guard);
    test_runner_done(&t);
    clock_file_done(&guard_clock);
}

static void test_deadline(void) {
    begin_on_clock(DEAF("deaf", ""));
    test_runner_start_until(&t, &m, '1', "deaf", STANDS_AT + 10 * USEC_PER_SEC);
    close_fd(test_guard_join(&t, &m, '1', "deaf.out"));
    stops_for(STANDS_AT + 10 * USEC_PER_SEC);
}

static void test_deadline_pushed(void) {
    usec_t deadline = STANDS_AT + 5 * USEC_PER_SEC; /* an earlier one is taken, too */
    int guard;

    begin_on_clock(DEAF("deaf", ""));
    test_runner_start_until(&t, &m, '1', "deaf", STANDS_AT + 10 * USEC_PER_SEC);
    guard = test_guard_join(&t, &m, '1', "deaf.out");
    for (int i = 0; i < 3; i++) {
        deadline += USEC_PER_SEC;
        test_guard_set_deadline(guard, deadline);
        test_await(guard, &m, PROTOCOL_ACK);
    }
    close_fd(guard);
    stops_for(deadline); /* the last one that was pushed */
}

/* A stop timeout of 200 ms, 100 ms from the kill to the deadline, and 100 ms to run. */
#define NEEDED (400 * USEC_PER_MSEC)

static int join_waiting(void) {
    int guard = test_runner_guard(&t, '1');

    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "starting");
    TEST_FIELD(&m, "pid", NULL);
    return guard;
}

static void was_not_begun(int guard, int error, const char *stage, const char *reason) {
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_INT(test_number(&m, "errno"), error);
    TEST_FIELD(&m, "stage", stage);
    TEST_FIELD(&m, "reason", reason);
    TEST_FIELD(&m, "code", NULL);
    TEST_FIELD(&m, "started", NULL);
    CU_ASSERT(!test_runner_has(&t, "deaf.out"));
}

static void end_clock(void) {
    test_runner_done(&t);
    clock_file_done(&guard_clock);
}

/* A command is not begun with less time than its stop needs. A new deadline that leaves enough begins it. */
static void test_waits_for_time(void) {
    int guard;

    begin_on_clock(DEAF("deaf", ""));
    test_runner_start_until(&t, &m, '1', "deaf", STANDS_AT + NEEDED - 1);
    guard = join_waiting();
    test_guard_set_deadline(guard, STANDS_AT + NEEDED - 1);
    test_await(guard, &m, PROTOCOL_ACK);
    close_fd(guard);
    guard = join_waiting();
    CU_ASSERT(!test_runner_has(&t, "deaf.out"));
    test_guard_set_deadline(guard, STANDS_AT + NEEDED);
    test_await(guard, &m, PROTOCOL_ACK);
    close_fd(guard);
    close_fd(test_guard_join(&t, &m, '1', "deaf.out"));
    stops_for(STANDS_AT + NEEDED);
}

static void test_has_time(void) {
    begin_on_clock(DEAF("deaf", ""));
    test_runner_start_until(&t, &m, '1', "deaf", STANDS_AT + NEEDED);
    close_fd(test_guard_join(&t, &m, '1', "deaf.out"));
    stops_for(STANDS_AT + NEEDED);
}

static void test_deadline_passed(void) {
    int guard;

    begin_on_clock(DEAF("deaf", ""));
    test_runner_start_until(&t, &m, '1', "deaf", STANDS_AT + 1);
    guard = join_waiting();
    clock_file_stand(&guard_clock, STANDS_AT + 9 * USEC_PER_SEC);
    close_fd(guard);
    guard = join_waiting();
    clock_file_stand(&guard_clock, STANDS_AT + 11 * USEC_PER_SEC); /* no berthd sets a new one */
    was_not_begun(guard, ETIME, "deadline", "none");
    test_guard_finish(guard);
    end_clock();
}

/* The runner itself reads the request after the deadline. */
static void test_late(void) {
    struct message_writer w;

    begin_on_clock(DEAF("deaf", ""));
    test_runner_begin_start(&w, '1', "deaf", test_runner_hash(&t, "deaf"));
    message_put_u64(&w, "deadline", STANDS_AT);
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "late");
    CU_ASSERT(test_runner_is_clean(&t));
    end_clock();
}

static void test_stopped_while_waiting(void) {
    int guard;

    begin_on_clock(DEAF("deaf", ""));
    test_runner_start_until(&t, &m, '1', "deaf", STANDS_AT + 1);
    guard = join_waiting();
    test_say(guard, PROTOCOL_STOP, "reason", "lease-lost");
    was_not_begun(guard, ECANCELED, "stop", "lease-lost");
    test_guard_finish(guard);
    end_clock();
}

static void test_continue(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, WAITS("a", "on-lease-lost = \"continue\""), getuid());
    test_runner_start_until(&t, &m, '1', "a", clock_boottime());
    guard = test_guard_join(&t, &m, '1', "a.out");
    test_guard_set_deadline(guard, clock_boottime());
    test_await(guard, &m, PROTOCOL_ACK);
    TEST_FIELD(&m, "deadline", NULL);
    close_fd(guard);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "on-lease-lost", "continue");
    TEST_FIELD(&m, "phase", "running");
    TEST_FIELD(&m, "deadline", NULL);
    test_say(guard, PROTOCOL_STOP, "reason", "shutdown");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "reason", "shutdown");
    test_guard_finish(guard);
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"deadline", test_deadline},
    {"deadline pushed", test_deadline_pushed},
    {"waits for time", test_waits_for_time},
    {"has time", test_has_time},
    {"deadline passed", test_deadline_passed},
    {"late", test_late},
    {"stopped while it waits for time", test_stopped_while_waiting},
    {"continue", test_continue},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "guard-deadline", .pTests = tests});
