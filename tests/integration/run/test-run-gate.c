/* SPDX-License-Identifier: MIT */
/* The child of `berth run` that is forked near the head of the queue and waits at its gate. The test is
 * berthd. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/process-tree.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define WAITING(is_near) "{'parameters': {'state': 'waiting', 'run': '" FAKE_RUN "', 'is_near': " is_near "}, 'continues': true}"
#define STOP(reason) "{'parameters': {'state': 'stop', 'run': '" FAKE_RUN "', 'reason': '" reason "'}, 'continues': true}"
#define TURN (2 * USEC_PER_MSEC)

static size_t count_children(struct fake *f, pid_t *ret) {
    int n = process_tree_list(f->pid, NULL, 0, ret, 1);

    return n > 0 ? (size_t) n : 0;
}

static pid_t await_child(struct fake *f) {
    pid_t pid = 0;

    for (int i = 0; count_children(f, &pid) == 0 && i < 10000; i++)
        CU_ASSERT_TRUE_FATAL(fake_is_running(f, TURN));
    CU_ASSERT_FATAL(pid > 0);
    return pid;
}

static void await_no_child(struct fake *f) {
    for (int i = 0; count_children(f, NULL) > 0 && i < 10000; i++)
        CU_ASSERT_TRUE_FATAL(fake_is_running(f, TURN));
    TEST_INT(count_children(f, NULL), 0);
}

/* Starts `berth run` and tells it that it is near the head. Returns a pidfd of the child that it forks. */
static int begin(struct fake *f, const char *script) {
    int pidfd;

    fake_init(f);
    fake_run(f, "-p db -v -- sh -c", script);
    fake_accept(f);
    json_decref(fake_expect(f, "io.berth.Hold"));
    fake_reply(f, WAITING("true"));
    pidfd = pidfd_open(await_child(f), 0);
    CU_ASSERT_FATAL(pidfd >= 0);
    return pidfd;
}

static void check_ended(int pidfd) {
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    TEST_INT(poll(&p, 1, 30000), 1);
    close_fd(pidfd);
}

/* Waits until the child has ended and its parent has reaped it. */
static void check_gone(struct fake *f, int pidfd) {
    check_ended(pidfd);
    await_no_child(f);
}

/* The same process becomes the command, with the token and the hold of the grant. */
static void granted(void) {
    struct fake f;
    int pidfd = begin(&f, "test -n \"$BERTH_TOKEN\" && test -p /proc/self/fd/$BERTH_HOLD && test -n \"$BERTH_RUN\" && exit 3");
    pid_t child = await_child(&f);

    TEST_STRING(f.text, "");
    fake_reply_granted(&f, 0, true);
    fake_expect_started(&f);
    TEST_INT(f.command, child);
    fake_expect_ended(&f, 3, -1, NULL);
    fake_await_hold_over(&f);
    TEST_INT(fake_await_exit(&f), 3);
    close_fd(pidfd);
    fake_done(&f);
}

static void not_near(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -v -- sh -c", "exit 3");
    fake_accept(&f);
    json_decref(fake_expect(&f, "io.berth.Hold"));
    fake_reply(&f, FAKE_WAITING);
    while (!strstr(fake_errors(&f), "waiting"))
        CU_ASSERT_TRUE_FATAL(fake_is_running(&f, TURN));
    TEST_INT(count_children(&f, NULL), 0);
    fake_reply_granted(&f, 0, true);
    fake_expect_started(&f);
    fake_expect_ended(&f, 3, -1, NULL);
    TEST_INT(fake_await_exit(&f), 3);
    fake_done(&f);
}

static void signalled(int signal) {
    struct fake f;
    int pidfd = begin(&f, "echo started");

    TEST_INT(kill(f.pid, signal), 0);
    fake_expect_end(&f);
    TEST_INT(fake_await_exit(&f), -signal);
    TEST_STRING(f.text, "");
    check_ended(pidfd);
    fake_done(&f);
}

static void interrupted(void) {
    signalled(SIGINT);
    signalled(SIGTERM);
    signalled(SIGHUP);
}

static void stopped(void) {
    struct fake f;
    int pidfd = begin(&f, "echo started");

    fake_reply(&f, STOP("revoked"));
    TEST_INT(fake_await_exit(&f), 75);
    TEST_STRING(f.text, "");
    check_ended(pidfd);
    fake_done(&f);
}

static void killed(void) {
    struct fake f;
    int pidfd = begin(&f, "echo started");

    TEST_INT(kill(f.pid, SIGKILL), 0);
    TEST_INT(fake_await_exit(&f), -SIGKILL);
    check_ended(pidfd);
    TEST_STRING(f.text, "");
    fake_done(&f);
}

/* The run keeps its child when berthd restarts, until the next berthd replies that it is not near the
 * head. */
static void berthd_restarted(void) {
    struct fake f;
    int pidfd = begin(&f, "exit 3");
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    fake_hang_up(&f);
    fake_accept_again(&f, FAKE_RUN);
    TEST_INT(poll(&p, 1, 0), 0); /* the child lives */
    fake_reply(&f, WAITING("false"));
    check_gone(&f, pidfd);
    fake_reply_granted(&f, 0, true);
    fake_expect_started(&f);
    fake_expect_ended(&f, 3, -1, NULL);
    TEST_INT(fake_await_exit(&f), 3);
    fake_done(&f);
}

/* The child is killed, for example for lack of memory. The start forks another one. */
static void child_killed(void) {
    struct fake f;
    int pidfd = begin(&f, "exit 3");

    TEST_INT(pidfd_send_signal(pidfd, SIGKILL, NULL, 0), 0);
    check_gone(&f, pidfd);
    fake_reply_granted(&f, 0, true);
    fake_expect_started(&f);
    fake_expect_ended(&f, 3, -1, NULL);
    TEST_INT(fake_await_exit(&f), 3);
    fake_done(&f);
}

/* berthd does not know the run any more: `berth run` claims again, as a new run. */
static void forgotten(void) {
    struct fake f;
    int pidfd = begin(&f, "exit 3");

    fake_hang_up(&f);
    fake_accept_again(&f, FAKE_RUN);
    fake_reply(&f, "{'error': 'io.berth.NoSuchRun', 'parameters': {'name': '" FAKE_RUN "'}}");
    json_decref(fake_expect(&f, "io.berth.Hold"));
    check_gone(&f, pidfd);
    TEST_INT(kill(f.pid, SIGTERM), 0);
    TEST_INT(fake_await_exit(&f), -SIGTERM);
    fake_done(&f);
}

/* The deadline of the grant is too near for a start, and then the lease is lost. `berth run` ends the
 * child and waits again. */
static void lease_lost(void) {
    struct fake f;
    int pidfd = begin(&f, "echo started");

    fake_reply_granted(&f, clock_boottime() + 100 * USEC_PER_MSEC, true);
    while (!strstr(fake_errors(&f), "granted"))
        CU_ASSERT_TRUE_FATAL(fake_is_running(&f, TURN));
    fake_reply(&f, STOP("lease-lost"));
    json_decref(fake_expect(&f, "io.berth.Ended"));
    check_gone(&f, pidfd);
    fake_await_hold_over(&f);
    TEST_INT(kill(f.pid, SIGTERM), 0);
    TEST_INT(fake_await_exit(&f), -SIGTERM);
    TEST_STRING(f.text, "");
    fake_done(&f);
}

static CU_TestInfo tests[] = {
    {"granted", granted},
    {"not near", not_near},
    {"interrupted", interrupted},
    {"stopped", stopped},
    {"killed", killed},
    {"berthd restarted", berthd_restarted},
    {"child killed", child_killed},
    {"forgotten", forgotten},
    {"lease lost", lease_lost},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run gate", .pTests = tests});
