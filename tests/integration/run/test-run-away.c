/* SPDX-License-Identifier: MIT */
/* `berth run` and time: deadlines that are extended or not, and restarts of berthd. The test sets the clock
 * of itself and `berth run`. Waiting runs are in test-run-away-waiting.c. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/clock-file.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

static const char *text_in(const json_t *params, const char *key) {
    return json_string_value(json_object_get(params, key));
}

/* Waits until `berth run` has stopped all processes of the command. */
static void await_stopped(struct fake *f) {
    while (!strstr(fake_errors(f), "the command was stopped"))
        CU_ASSERT_TRUE_FATAL(fake_is_running(f, 2 * USEC_PER_MSEC));
}

/* berthd comes back and receives the end of the command. */
static void come_back(struct fake *f, int code, int signal, const char *result) {
    fake_listen(f);
    fake_accept(f);
    fake_expect_ended(f, code, signal, result);
}

#define BEGIN (1000 * USEC_PER_SEC)
#define DEADLINE (BEGIN + 100 * USEC_PER_SEC)
#define BEFORE(msec) (DEADLINE - (msec) * USEC_PER_MSEC) /* TERM comes 300 ms before, KILL 100 ms before */
#define LATER (DEADLINE + 100 * USEC_PER_SEC)
#define MUCH_LATER (LATER + 100 * USEC_PER_SEC)
/* Ends on USR1, answers USR2. A shell misses no signal in `wait`; just before a read it would. */
#define WAITS "exec 3<&0; (read x <&3) & trap 'kill -9 $!; exit 5' USR1; trap 'echo here' USR2; echo ready; while :; do wait; done"

static void stand_at(usec_t time) {
    clock_file_stand(&own_clock, time);
}

/* Waits until `berth run` has passed two signals on: it has read its socket and the clock before that. */
static void settle(struct fake *f) {
    for (int i = 0; i < 2; i++) {
        f->text[0] = '\0';
        TEST_INT(kill(f->pid, SIGUSR2), 0);
        fake_await_output(f, "here");
        CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(f->text, "here"));
    }
}

static void end_command(struct fake *f) {
    TEST_INT(kill(f->pid, SIGUSR1), 0);
    while (fake_process_state(f->command) != 'X')
        CU_ASSERT_TRUE_FATAL(fake_is_running(f, USEC_PER_MSEC));
}

static void test_deadline_without_server(void) {
    struct fake f;

    stand_at(BEGIN);
    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "trap '' TERM; " WAITS);
    fake_grant(&f, DEADLINE);
    fake_await_output(&f, "ready");
    fake_stop(&f);
    stand_at(BEFORE(102));
    settle(&f);
    stand_at(BEFORE(98));
    await_stopped(&f); /* R8 */
    clock_file_go_on(&own_clock);
    come_back(&f, -1, SIGKILL, "lease-lost");
    TEST_INT(fake_await_exit(&f), 76);
    TEST_INT(fake_is_hold_over(&f), true);
    TEST_STRING(fake_errors(&f), "berth: the lease was lost; the command was stopped\n");
    fake_done(&f);
}

static void test_continue_without_server(void) {
    struct fake f;

    stand_at(BEGIN);
    fake_init(&f);
    fake_run(&f, "-p db --on-lease-lost continue -- sh -c", WAITS);
    fake_grant(&f, DEADLINE);
    fake_expect_started(&f);
    fake_await_output(&f, "ready");
    fake_stop(&f);
    stand_at(LATER);
    settle(&f);
    end_command(&f); /* before berthd is back: `berth run` does not attach, it reports the end */
    clock_file_go_on(&own_clock);
    come_back(&f, 5, -1, NULL);
    TEST_INT(fake_await_exit(&f), 5);
    fake_done(&f);
}

/* A stop timeout of 200 ms, 100 ms from the kill to the deadline, and 100 ms to run. */
#define NEEDED (400 * USEC_PER_MSEC)

/* Hangs up and waits for the next call of `berth run`: it has read all messages from before. */
static void meet_again(struct fake *f) {
    json_t *params;

    fake_hang_up(f);
    clock_file_go_on(&own_clock);
    fake_accept(f);
    params = fake_expect(f, "io.berth.Hold");
    stand_at(BEGIN);
    TEST_STRING(text_in(params, "run"), FAKE_RUN);
    json_decref(params);
}

/* A command starts only when its deadline leaves enough time for its stop. */
static void test_waits_for_time(void) {
    struct fake f;

    stand_at(BEGIN);
    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "echo started; exit 3");
    fake_grant(&f, BEGIN + NEEDED - 1);
    meet_again(&f);
    fake_reply_granted(&f, BEGIN + NEEDED - 1, false);
    meet_again(&f);
    TEST_STRING(f.text, "");
    fake_reply_granted(&f, BEGIN + NEEDED, false);
    fake_expect_started(&f);
    fake_expect_ended(&f, 3, -1, NULL);
    TEST_INT(fake_await_exit(&f), 3);
    TEST_STRING(fake_errors(&f), "");
    clock_file_go_on(&own_clock);
    fake_done(&f);
}

static void expect_not_started(struct fake *f) {
    json_t *params = fake_expect(f, "io.berth.Ended");

    TEST_STRING(text_in(params, "run"), FAKE_RUN);
    TEST_STRING(text_in(params, "result"), "not-started");
    json_decref(params);
    fake_await_hold_over(f);
}

static void lose_lease(struct fake *f) {
    fake_reply(f, "{'parameters': {'state': 'stop', 'run': '" FAKE_RUN "', 'reason': 'lease-lost'}, 'continues': true}");
}

/* The lease is lost before the command starts: the same run waits again, and starts under its next grant. A
 * berthd that restarted meanwhile also receives the report. */
static void test_lost_before_the_start(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -v -- sh -c", "echo started; exit 3");
    fake_grant(&f, clock_boottime());
    lose_lease(&f);
    expect_not_started(&f);
    fake_hang_up(&f);
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    lose_lease(&f);
    expect_not_started(&f);
    fake_reply(&f, FAKE_WAITING);
    fake_reply_granted(&f, clock_boottime() + 100 * USEC_PER_SEC, true);
    fake_expect_started(&f);
    fake_expect_ended(&f, 3, -1, NULL);
    TEST_INT(fake_await_exit(&f), 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(fake_errors(&f), "berth: the lease was lost before the command was started; waiting again\n"));
    fake_done(&f);
}

/* The next berthd does not know the grant: `berth run` claims again, as a new run. */
static void test_unknown_before_the_start(void) {
    json_t *params;
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "exit 3");
    fake_grant(&f, clock_boottime());
    fake_hang_up(&f);
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply(&f, "{'error': 'io.berth.NoSuchRun', 'parameters': {'run': '" FAKE_RUN "'}}");
    params = fake_expect(&f, "io.berth.Hold");
    CU_ASSERT_PTR_NULL(text_in(params, "run"));
    json_decref(params);
    fake_await_hold_over(&f);
    fake_reply_granted(&f, clock_boottime() + 100 * USEC_PER_SEC, true);
    fake_expect_started(&f);
    fake_expect_ended(&f, 3, -1, NULL);
    TEST_INT(fake_await_exit(&f), 3);
    fake_done(&f);
}

/* Ctrl-C between the grant and the start ends `berth run`, as it does before the grant. */
static void test_interrupted_before_the_start(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "exit 3");
    fake_grant(&f, clock_boottime());
    fake_hang_up(&f);
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    TEST_INT(kill(f.pid, SIGINT), 0);
    TEST_INT(fake_await_exit(&f), -SIGINT);
    fake_done(&f);
}

static void start_with_deadline(struct fake *f) {
    stand_at(BEGIN);
    fake_init(f);
    fake_run(f, "-p db -- sh -c", WAITS);
    fake_grant(f, DEADLINE);
    fake_expect_started(f);
    fake_await_output(f, "ready");
}

static void end_by_itself(struct fake *f) {
    end_command(f);
    fake_expect_ended(f, 5, -1, NULL);
    TEST_INT(fake_await_exit(f), 5);
    fake_done(f);
}

static void test_deadline_pushed(void) {
    struct fake f;

    start_with_deadline(&f);
    fake_reply_granted(&f, MUCH_LATER, false);
    settle(&f);
    stand_at(LATER);
    settle(&f);
    end_by_itself(&f);
}

/* `berth run` is stopped while its deadline passes. A later deadline is in its socket. */
static void test_deadline_pushed_while_stopped(void) {
    struct fake f;

    start_with_deadline(&f);
    TEST_INT(kill(f.pid, SIGSTOP), 0);
    while (fake_process_state(f.pid) != 'T')
        CU_ASSERT_TRUE_FATAL(fake_is_running(&f, USEC_PER_MSEC));
    fake_reply_granted(&f, MUCH_LATER, false);
    stand_at(LATER);
    TEST_INT(kill(f.pid, SIGCONT), 0);
    settle(&f);
    end_by_itself(&f);
}

static void test_restart_while_running(void) {
    pid_t command;
    struct fake f;

    start_with_deadline(&f);
    command = f.command;
    fake_stop(&f);
    stand_at(BEGIN + USEC_PER_SEC);
    settle(&f); /* an attempt has failed */
    fake_listen(&f);
    clock_file_go_on(&own_clock);
    fake_accept_again(&f, FAKE_RUN);
    fake_expect_started(&f); /* sent again: the new berthd may not know it */
    TEST_INT(f.command, command);
    fake_reply_granted(&f, MUCH_LATER, false);
    settle(&f);
    stand_at(LATER);
    settle(&f);
    end_by_itself(&f);
}

static void test_ended_while_away(void) {
    struct fake f;

    start_with_deadline(&f);
    fake_stop(&f);
    end_command(&f);
    clock_file_go_on(&own_clock);
    come_back(&f, 5, -1, NULL);
    TEST_INT(fake_await_exit(&f), 5);
    fake_done(&f);
}

/* A berthd that does not know the run cannot extend its deadline. */
static void test_unknown_while_running(void) {
    struct fake f;

    stand_at(BEGIN);
    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", WAITS);
    fake_grant(&f, DEADLINE);
    fake_await_output(&f, "ready");
    clock_file_go_on(&own_clock);
    fake_hang_up(&f);
    fake_accept_again(&f, FAKE_RUN);
    fake_reply(&f, "{'error': 'io.berth.NoSuchRun', 'parameters': {'name': '" FAKE_RUN "'}}");
    fake_stop(&f);
    stand_at(BEFORE(302));
    settle(&f);
    stand_at(BEFORE(298));
    await_stopped(&f);
    clock_file_go_on(&own_clock);
    come_back(&f, -1, SIGTERM, "lease-lost");
    TEST_INT(fake_await_exit(&f), 76);
    fake_done(&f);
}

static void let_run(void) {
    clock_file_stand(&own_clock, 0);
}

static CU_TestInfo tests[] = {
    {"deadline without server", test_deadline_without_server},
    {"continue without server", test_continue_without_server},
    {"waits for time", test_waits_for_time},
    {"lost before the start", test_lost_before_the_start},
    {"unknown before the start", test_unknown_before_the_start},
    {"interrupted before the start", test_interrupted_before_the_start},
    {"deadline pushed", test_deadline_pushed},
    {"deadline pushed while stopped", test_deadline_pushed_while_stopped},
    {"restart while running", test_restart_while_running},
    {"ended while away", test_ended_while_away},
    {"unknown while running", test_unknown_while_running},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "run away", .pSetUpFunc = let_run, .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
