/* SPDX-License-Identifier: MIT */
/* While berthd is down, `berth run` tries for three seconds to report the end of its command, and then
 * exits. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"

#define TELL_MAX (3 * USEC_PER_SEC) /* berth(1), EXIT STATUS */

/* Runs until it is sent USR1, then exits with 5. */
static void begin(struct fake *f) {
    fake_init(f);
    fake_run(f, "-p db -- sh -c", "trap 'exit 5' USR1; echo ready; while :; do read x; done");
    fake_grant(f, 0);
    fake_expect_started(f);
    fake_await_output(f, "ready");
}

/* Sends USR1 until the command has ended: a shell misses a signal that comes just before its read. */
static void end_command(struct fake *f) {
    TEST_INT(kill(f->command, SIGUSR1), 0);
    while (fake_process_state(f->command) != 'X') {
        (void) kill(f->command, SIGUSR1);
        CU_ASSERT_TRUE_FATAL(fake_is_running(f, USEC_PER_MSEC));
    }
}

static usec_t end_while_away(struct fake *f) {
    usec_t begun;

    begin(f);
    fake_stop(f);
    begun = clock_boottime();
    end_command(f);
    return begun;
}

/* Receives the report of the end, with all its fields. */
static void receive_all(struct fake *f) {
    json_t *params = fake_expect(f, "io.berth.Ended");

    TEST_STRING(json_string_value(json_object_get(params, "run")), FAKE_RUN);
    TEST_INT(json_integer_value(json_object_get(params, "code")), 5);
    TEST_INT(json_integer_value(json_object_get(params, "pid")), f->command);
    TEST_INT(json_integer_value(json_object_get(params, "started_usec")) <= json_integer_value(json_object_get(params, "ended_usec")),
             true);
    json_decref(params);
}

/* `berth run` keeps the hold open while it waits, so that the next berthd waits for the report. It gives up
 * after TELL_MAX. */
static void test_away_for_good(void) {
    struct fake f;
    usec_t begun, took;

    stall_start();
    begun = end_while_away(&f);
    TEST_INT(fake_is_hold_over(&f), false);
    TEST_INT(fake_await_exit(&f), 5);
    took = clock_boottime() - begun;
    TEST_INT(took >= TELL_MAX - 100 * USEC_PER_MSEC, true);
    TEST_INT(usec_sub(took, stall_between(begun, begun + took)) < TELL_MAX + 2 * USEC_PER_SEC, true);
    stall_stop();
    TEST_INT(fake_is_hold_over(&f), true);
    TEST_STRING(fake_errors(&f), "");
    fake_done(&f);
}

static void test_comes_back(void) {
    struct fake f;
    usec_t begun = end_while_away(&f);

    TEST_INT(fake_is_running(&f, 300 * USEC_PER_MSEC), true); /* at least two attempts fail */
    fake_listen(&f);
    fake_accept(&f);
    receive_all(&f);
    TEST_INT(fake_is_hold_over(&f), false); /* until berthd confirms */
    fake_reply(&f, "{'parameters': {}}");
    TEST_INT(fake_await_exit(&f), 5);
    TEST_INT(clock_boottime() - begun < TELL_MAX, true);
    fake_done(&f);
}

/* A berthd that does not know the run ends the attempts. */
static void test_unknown(void) {
    struct fake f;

    (void) end_while_away(&f);
    fake_listen(&f);
    fake_accept(&f);
    receive_all(&f);
    fake_reply(&f, "{'error': 'io.berth.NoSuchRun', 'parameters': {'name': '" FAKE_RUN "'}}");
    TEST_INT(fake_await_exit(&f), 5);
    fake_done(&f);
}

/* `berth run` reports again after a berthd that is stopping, and after one that hangs up. */
static void test_again(void) {
    struct fake f;

    (void) end_while_away(&f);
    fake_listen(&f);
    fake_accept(&f);
    receive_all(&f);
    fake_reply(&f, "{'error': 'io.berth.Stopping'}");
    fake_accept(&f);
    receive_all(&f);
    fake_accept(&f); /* closes the connection before it */
    receive_all(&f);
    fake_reply(&f, "{'parameters': {}}");
    TEST_INT(fake_await_exit(&f), 5);
    fake_done(&f);
}

/* berthd dies before it reads the report. `berth run` has closed the hold at once, because other runs wait
 * for the permits. */
static void test_not_read(void) {
    json_t *params;
    struct fake f;

    begin(&f);
    end_command(&f);
    params = fake_expect(&f, "io.berth.Ended");
    json_decref(params);
    fake_await_hold_over(&f);
    fake_reply_granted(&f, clock_boottime() + 60 * USEC_PER_SEC, false); /* confirms no report */
    TEST_INT(fake_is_running(&f, 300 * USEC_PER_MSEC), true);
    fake_accept(&f);
    receive_all(&f);
    fake_reply(&f, "{'parameters': {}}");
    TEST_INT(fake_await_exit(&f), 5);
    fake_done(&f);
}

/* The service manager keeps the listening socket while berthd restarts. The next berthd reads the report
 * there, also when `berth run` has exited. */
static void test_nobody_accepts(void) {
    struct fake f;

    (void) end_while_away(&f);
    fake_listen(&f);
    TEST_INT(fake_await_exit(&f), 5);
    fake_accept(&f);
    receive_all(&f);
    fake_expect_end(&f);
    fake_done(&f);
}

/* A signal ends the attempts to report. */
static void test_impatient(void) {
    usec_t begun;
    struct fake f;

    begin(&f);
    fake_stop(&f);
    end_command(&f);
    begun = clock_boottime();
    TEST_INT(kill(f.pid, SIGWINCH), 0);
    TEST_INT(kill(f.pid, SIGTERM), 0);
    TEST_INT(fake_await_exit(&f), 5); /* the command's own, not 143 */
    TEST_INT(clock_boottime() - begun < TELL_MAX - USEC_PER_SEC, true);
    fake_done(&f);
}

static CU_TestInfo tests[] = {
    {"away for good", test_away_for_good},
    {"comes back", test_comes_back},
    {"unknown", test_unknown},
    {"again", test_again},
    {"not read", test_not_read},
    {"nobody accepts", test_nobody_accepts},
    {"impatient", test_impatient},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run tell", .pTests = tests});
