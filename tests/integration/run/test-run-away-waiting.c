/* SPDX-License-Identifier: MIT */

/* `berth run` waits while berthd restarts, or is down until the wait is over. The test sets the clock of
 * itself and `berth run`. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/clock-file.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define BEGIN (1000 * USEC_PER_SEC)

static void stand_at(usec_t time) {
    clock_file_stand(&own_clock, time);
}

static void test_restart_while_waiting(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-v -p db -- sh -c", "exit 4");
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply(&f, FAKE_WAITING);
    while (!strstr(fake_errors(&f), "waiting")) /* it has received the state and the id of its run */
        CU_ASSERT_TRUE_FATAL(fake_is_running(&f, 2 * USEC_PER_MSEC));
    fake_hang_up(&f);
    fake_accept_again(&f, FAKE_RUN);
    fake_reply(&f, FAKE_WAITING);
    fake_hang_up(&f);
    fake_accept_again(&f, FAKE_RUN);
    fake_reply(&f, "{'error': 'io.berth.NoSuchRun', 'parameters': {'name': '" FAKE_RUN "'}}");
    {
        json_t *params = fake_expect(&f, "io.berth.Hold"); /* a new claim, on the same connection */

        CU_ASSERT_PTR_NULL(json_object_get(params, "run"));
        json_decref(params);
    }
    fake_reply_granted(&f, 0, true);
    fake_expect_started(&f);
    fake_expect_ended(&f, 4, -1, NULL);
    TEST_INT(fake_await_exit(&f), 4);
    fake_done(&f);
}

static void test_stopping_while_waiting(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "exit 4");
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply(&f, FAKE_WAITING);
    fake_reply(&f, "{'error': 'io.berth.Stopping'}"); /* for good */
    TEST_INT(fake_await_exit(&f), 69);
    TEST_STRING(fake_errors(&f), "berth: berthd is stopping\n");
    fake_done(&f);
}

static void test_wait_is_over(void) {
    json_t *params;
    struct fake f;

    stand_at(BEGIN);
    fake_init(&f);
    fake_run(&f, "-v -p db --wait 300ms -E 9 x", NULL);
    fake_accept(&f);
    params = fake_expect(&f, "io.berth.Hold");
    TEST_INT(json_integer_value(json_object_get(params, "wait_ms")), 300);
    json_decref(params);
    fake_reply(&f, FAKE_WAITING);
    fake_stop(&f);
    while (!strstr(fake_errors(&f), "berthd is away"))
        CU_ASSERT_TRUE_FATAL(fake_is_running(&f, 2 * USEC_PER_MSEC));
    stand_at(BEGIN + 298 * USEC_PER_MSEC);
    TEST_INT(fake_is_running(&f, 50 * USEC_PER_MSEC), true);
    stand_at(BEGIN + 302 * USEC_PER_MSEC);
    TEST_INT(fake_await_exit(&f), 9);
    CU_ASSERT_PTR_NOT_NULL(strstr(fake_errors(&f), "berth: no permit: the wait was over\n"));
    fake_done(&f);
}

static void test_wait_on_a_silent_server(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db --wait 50ms x", NULL);
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    TEST_INT(fake_await_exit(&f), 75);
    fake_done(&f);
}

/* berthd has a moment to reply why the wait is over. */
static void test_berthd_ends_the_wait(void) {
    struct fake f;

    stand_at(BEGIN);
    fake_init(&f);
    fake_run(&f, "-p db --wait 50ms x", NULL);
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    stand_at(BEGIN + USEC_PER_SEC);
    TEST_INT(fake_is_running(&f, 50 * USEC_PER_MSEC), true);
    fake_reply(&f, "{'error': 'io.berth.NoPermit', 'parameters': {'reason': 'queue-timeout', 'pool': 'db'}}");
    TEST_INT(fake_await_exit(&f), 75);
    TEST_STRING(fake_errors(&f), "berth: no permit: queue-timeout (pool db)\n");
    fake_done(&f);
}

static void let_run(void) {
    clock_file_stand(&own_clock, 0);
}

static CU_TestInfo tests[] = {
    {"restart while waiting", test_restart_while_waiting},
    {"stopping while waiting", test_stopping_while_waiting},
    {"wait is over", test_wait_is_over},
    {"wait on a silent server", test_wait_on_a_silent_server},
    {"berthd ends the wait", test_berthd_ends_the_wait},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "run away, waiting", .pSetUpFunc = let_run, .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
