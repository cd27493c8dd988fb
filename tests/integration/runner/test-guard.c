/* SPDX-License-Identifier: MIT */

/* Guards of a real berth-runner: their messages to berthd. Deadlines are in test-guard-deadline.c. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/protocol.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

/* The stop timeout is long enough for a busy machine to deliver the signal. */
#define WAITS(name, more) \
    TEST_COMMAND(name, "trap 'exit 7' TERM; echo ready; sleep 1000 & wait", "output = \"@/" name ".out\" stop-timeout = \"5s\" " more)

static struct test_runner t;
static struct message m; /* large */

static void test_talk(void) {
    _cleanup_close_ int guard = -1;
    usec_t deadline = clock_boottime() + 100 * USEC_PER_SEC;
    char text[24], pid[24];

    test_runner_begin(&t, WAITS("a", ""), getuid());
    test_runner_start_until(&t, &m, '1', "a", deadline);
    guard = test_guard_join(&t, &m, '1', "a.out");
    close_fd(guard);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "job", "a");
    TEST_FIELD(&m, "hash", test_runner_hash(&t, "a"));
    TEST_FIELD(&m, "token", "1763640079123456");
    TEST_FIELD(&m, "ticket", "1763640079123455");
    TEST_FIELD(&m, "pools", "db:2,net:1");
    TEST_FIELD(&m, "queued", "1763640079123000");
    TEST_FIELD(&m, "queued-boot", "1000000");
    TEST_FIELD(&m, "phase", "running");
    TEST_FIELD(&m, "on-lease-lost", "stop");
    TEST_FIELD(&m, "stop-timeout", "5000000");
    TEST_FIELD(&m, "reason", NULL);
    snprintf(text, sizeof(text), "%" PRIu64, deadline);
    TEST_FIELD(&m, "deadline", text);
    CU_ASSERT(test_number(&m, "pid") > 0 && test_number(&m, "started") > 0 && test_number(&m, "guard") > 0);
    snprintf(pid, sizeof(pid), "%" PRIu64, test_number(&m, "pid"));
    test_say(guard, PROTOCOL_DONE, NULL, NULL); /* nothing is done yet: ignored */
    test_guard_set_deadline(guard, deadline + 1);
    test_await(guard, &m, PROTOCOL_ACK);
    CU_ASSERT(test_number(&m, "deadline") == deadline + 1);
    test_guard_set_deadline(guard, USEC_INFINITY);
    test_await(guard, &m, PROTOCOL_ACK);
    TEST_FIELD(&m, "deadline", NULL);
    test_say(guard, PROTOCOL_STOP, "reason", "revoked");
    test_await(guard, &m, PROTOCOL_STOPPING);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "reason", "revoked");
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "reason", "revoked");
    TEST_FIELD(&m, "code", "7");
    TEST_FIELD(&m, "gone-before", NULL);
    test_guard_finish(guard);
    CU_ASSERT(test_runner_is_clean(&t));
    test_runner_done(&t);
}

static void test_newest_wins(void) {
    _cleanup_close_ int old = -1, new = -1;

    test_runner_begin(&t, WAITS("a", ""), getuid());
    test_runner_start_until(&t, &m, '1', "a", USEC_INFINITY);
    old = test_guard_join(&t, &m, '1', "a.out");
    new = test_runner_guard(&t, '1');
    test_await(new, &m, PROTOCOL_STATE);
    test_await_end(old);
    test_say(new, PROTOCOL_STOP, "reason", "stopped");
    test_await(new, &m, PROTOCOL_STOPPING);
    test_await(new, &m, PROTOCOL_REPORT);
    /* A berthd that connects only now gets all of it again. */
    close_fd(old);
    old = test_runner_guard(&t, '1');
    test_await(old, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "done");
    TEST_FIELD(&m, "reason", "stopped");
    test_await(old, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "7");
    test_await_end(new);
    test_guard_finish(old);
    test_runner_done(&t);
}

static void test_leaves_report(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, WAITS("a", ""), getuid());
    test_runner_start_until(&t, &m, '1', "a", USEC_INFINITY);
    guard = test_guard_join(&t, &m, '1', "a.out");
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    guard = close_fd(guard); /* reported, but not acknowledged */
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "7");
    test_runner_done(&t);
}

static void closes(const char *text) {
    _cleanup_close_ int guard = test_runner_guard(&t, '1');

    test_await(guard, &m, PROTOCOL_STATE);
    TEST_INT(send(guard, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    test_await_end(guard);
}

static void test_malformed(void) {
    _cleanup_close_ int guard = -1;
    static char large[MESSAGE_SIZE_MAX + 2];

    test_runner_begin(&t, WAITS("a", ""), getuid());
    test_runner_start_until(&t, &m, '1', "a", USEC_INFINITY);
    guard = test_guard_join(&t, &m, '1', "a.out");
    closes("nonsense");
    closes("hello\nversion=1\n");
    closes("stop\n");
    closes("stop\nreason=none\n");
    closes("stop\nreason=whim\n");
    closes("deadline\ndeadline=soon\n");
    closes("deadline\ndeadline=-1\n");
    memset(large, 'a', sizeof(large) - 1);
    closes(large);
    close_fd(guard);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "running");
    TEST_FIELD(&m, "deadline", NULL);
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    test_guard_finish(guard);
    test_runner_done(&t);
}

/* Returns whether the C library can block the signal. It keeps two for itself, below SIGRTMIN. */
static bool can_be_blocked(int signal) {
    return signal != SIGKILL && signal != SIGSTOP && (signal <= SIGSYS || signal >= SIGRTMIN);
}

/* A guard that ended by a signal would lose the exit status. */
static void test_signals(void) {
    _cleanup_close_ int guard = -1;
    pid_t pid;

    test_runner_begin(&t, WAITS("a", ""), getuid());
    test_runner_start_until(&t, &m, '1', "a", USEC_INFINITY);
    pid = test_runner_guard_pid(&t, &m, '1');
    guard = test_guard_join(&t, &m, '1', "a.out");
    for (int signal = 1; signal < NSIG; signal++)
        if (can_be_blocked(signal))
            TEST_INT(kill(pid, signal), 0);
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "7");
    test_guard_finish(guard);
    test_runner_done(&t);
}

static const char *guard_socket(void) {
    static char name[128];

    snprintf(name, sizeof(name), "run/%s/%s%s", PROTOCOL_RUNS, test_runner_id('1'), PROTOCOL_SOCKET_SUFFIX);
    return name;
}

static void fail_to_call_guard(void) {
    test_runner_cannot_connect(&t, guard_socket());
}

static void call_guard(void) {
    test_await_end(test_runner_guard(&t, '1'));
}

static void test_strangers(void) {
    test_runner_begin(&t, WAITS("a", ""), getuid());
    test_runner_start_until(&t, &m, '1', "a", USEC_INFINITY);
    test_as_stranger(fail_to_call_guard);
    test_runner_open_up(&t, guard_socket());
    test_as_stranger(call_guard);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    test_runner_done(&t);
}

static void test_timeout(void) {
    test_runner_begin(&t, WAITS("a", "timeout = \"1s\""), getuid());
    test_runner_start_until(&t, &m, '1', "a", USEC_INFINITY);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "reason", "timeout");
    TEST_FIELD(&m, "code", "7");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"talk", test_talk},
    {"newest wins", test_newest_wins},
    {"leaves a report", test_leaves_report},
    {"malformed", test_malformed},
    {"signals", test_signals},
    {"strangers", test_strangers},
    {"timeout", test_timeout},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "guard", .pTests = tests});
