/* SPDX-License-Identifier: MIT */
/* Guards of a real berth-runner: what they tell berthd, and when they stop a command. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/protocol.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/runner.h"
#include "tests/harness/test.h"

/* The stop timeout is long enough for a busy machine to deliver the signal. */
#define WAITS(name, more) \
    TEST_COMMAND(name, "trap 'exit 7' TERM; echo ready; sleep 1000 & wait", "output = \"@/" name ".out\" stop-timeout = \"5s\" " more)
#define DEAF(name, more) TEST_OUT(name, "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 1000; done", more)

#define STANDS_AT (1000 * USEC_PER_SEC)

static struct test_runner t;
static struct clock_file guard_clock;
static struct message m; /* large */

static void start(char run, const char *job, usec_t deadline) {
    struct message_writer w;

    test_runner_begin_start(&w, run, job, test_runner_hash(&t, job));
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_STARTING);
}

/* A connection to the guard of run 1, once its command is ready. */
static int join_ready(const char *output) {
    int guard = test_runner_guard(&t, '1');

    free(test_runner_read(&t, output));
    test_await(guard, &m, PROTOCOL_STATE);
    if (!message_get(&m, "pid"))
        test_await(guard, &m, PROTOCOL_STARTED);
    return guard;
}

static void finish(int guard) {
    test_say(guard, PROTOCOL_DONE, NULL, NULL);
    test_await_end(guard);
}

static void say_deadline(int guard, usec_t deadline) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_DEADLINE);
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(guard, &w), 0);
}

static bool is_clean(void) {
    static const char *const suffixes[] = {".sock", ".guard", ".report"};
    char name[80];

    for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
        snprintf(name, sizeof(name), "run/runner/runs/%s%s", test_runner_id('1'), suffixes[i]);
        if (test_runner_has(&t, name))
            return false;
    }
    return true;
}

static void test_talk(void) {
    _cleanup_close_ int guard = -1;
    usec_t deadline = clock_boottime() + 100 * USEC_PER_SEC;
    char text[24], pid[24];

    test_runner_begin(&t, WAITS("a", ""), getuid());
    start('1', "a", deadline);
    guard = join_ready("a.out");
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
    TEST_FIELD(&m, "phase", "running");
    TEST_FIELD(&m, "on-lease-lost", "stop");
    TEST_FIELD(&m, "stop-timeout", "5000000");
    TEST_FIELD(&m, "reason", NULL);
    snprintf(text, sizeof(text), "%" PRIu64, deadline);
    TEST_FIELD(&m, "deadline", text);
    CU_ASSERT(test_number(&m, "pid") > 0 && test_number(&m, "started") > 0 && test_number(&m, "guard") > 0);
    snprintf(pid, sizeof(pid), "%" PRIu64, test_number(&m, "pid"));
    test_say(guard, PROTOCOL_DONE, NULL, NULL); /* nothing is done yet: ignored */
    say_deadline(guard, deadline + 1);
    test_await(guard, &m, PROTOCOL_ACK);
    CU_ASSERT(test_number(&m, "deadline") == deadline + 1);
    say_deadline(guard, USEC_INFINITY);
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
    finish(guard);
    CU_ASSERT(is_clean());
    test_runner_done(&t);
}

static void test_newest_wins(void) {
    _cleanup_close_ int old = -1, new = -1;

    test_runner_begin(&t, WAITS("a", ""), getuid());
    start('1', "a", USEC_INFINITY);
    old = join_ready("a.out");
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
    finish(old);
    test_runner_done(&t);
}

static void test_leaves_report(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, WAITS("a", ""), getuid());
    start('1', "a", USEC_INFINITY);
    guard = join_ready("a.out");
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
    start('1', "a", USEC_INFINITY);
    guard = join_ready("a.out");
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
    finish(guard);
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
    start('1', "a", USEC_INFINITY);
    test_as_stranger(fail_to_call_guard);
    test_runner_open_up(&t, guard_socket());
    test_as_stranger(call_guard);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    test_runner_done(&t);
}

/* The guard's clock stands from now on, and goes on when we say so. */
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

/* A guard that has answered twice has seen meanwhile what time it is. */
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

/* Nobody says anything: the kill is sent 100 ms before the deadline, the stop signal a stop timeout of 200 ms before that. */
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
    finish(guard);
    test_runner_done(&t);
    clock_file_done(&guard_clock);
}

static void test_deadline(void) {
    begin_on_clock(DEAF("deaf", ""));
    start('1', "deaf", STANDS_AT + 10 * USEC_PER_SEC);
    close_fd(join_ready("deaf.out"));
    stops_for(STANDS_AT + 10 * USEC_PER_SEC);
}

static void test_deadline_pushed(void) {
    usec_t deadline = STANDS_AT + 5 * USEC_PER_SEC; /* an earlier one is taken, too */
    int guard;

    begin_on_clock(DEAF("deaf", ""));
    start('1', "deaf", STANDS_AT + 10 * USEC_PER_SEC);
    guard = join_ready("deaf.out");
    for (int i = 0; i < 3; i++) {
        deadline += USEC_PER_SEC;
        say_deadline(guard, deadline);
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
    start('1', "deaf", STANDS_AT + NEEDED - 1);
    guard = join_waiting();
    say_deadline(guard, STANDS_AT + NEEDED - 1);
    test_await(guard, &m, PROTOCOL_ACK);
    close_fd(guard);
    guard = join_waiting();
    CU_ASSERT(!test_runner_has(&t, "deaf.out"));
    say_deadline(guard, STANDS_AT + NEEDED);
    test_await(guard, &m, PROTOCOL_ACK);
    close_fd(guard);
    close_fd(join_ready("deaf.out"));
    stops_for(STANDS_AT + NEEDED);
}

static void test_has_time(void) {
    begin_on_clock(DEAF("deaf", ""));
    start('1', "deaf", STANDS_AT + NEEDED);
    close_fd(join_ready("deaf.out"));
    stops_for(STANDS_AT + NEEDED);
}

static void test_deadline_passed(void) {
    int guard;

    begin_on_clock(DEAF("deaf", ""));
    start('1', "deaf", STANDS_AT + 1);
    guard = join_waiting();
    clock_file_stand(&guard_clock, STANDS_AT + 9 * USEC_PER_SEC);
    close_fd(guard);
    guard = join_waiting();
    clock_file_stand(&guard_clock, STANDS_AT + 11 * USEC_PER_SEC); /* nobody gives it a new one */
    was_not_begun(guard, ETIME, "deadline", "none");
    finish(guard);
    end_clock();
}

/* The runner itself came to it too late. */
static void test_late(void) {
    struct message_writer w;

    begin_on_clock(DEAF("deaf", ""));
    test_runner_begin_start(&w, '1', "deaf", test_runner_hash(&t, "deaf"));
    message_put_u64(&w, "deadline", STANDS_AT);
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "late");
    CU_ASSERT(is_clean());
    end_clock();
}

static void test_stopped_while_waiting(void) {
    int guard;

    begin_on_clock(DEAF("deaf", ""));
    start('1', "deaf", STANDS_AT + 1);
    guard = join_waiting();
    test_say(guard, PROTOCOL_STOP, "reason", "lease-lost");
    was_not_begun(guard, ECANCELED, "stop", "lease-lost");
    finish(guard);
    end_clock();
}

static void test_continue(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, WAITS("a", "on-lease-lost = \"continue\""), getuid());
    start('1', "a", clock_boottime());
    guard = join_ready("a.out");
    say_deadline(guard, clock_boottime());
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
    finish(guard);
    test_runner_done(&t);
}

static void test_timeout(void) {
    test_runner_begin(&t, WAITS("a", "timeout = \"1s\""), getuid());
    start('1', "a", USEC_INFINITY);
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
    {"strangers", test_strangers},
    {"deadline", test_deadline},
    {"deadline pushed", test_deadline_pushed},
    {"deadline passed", test_deadline_passed},
    {"late", test_late},
    {"waits for time", test_waits_for_time},
    {"has time", test_has_time},
    {"stopped while it waits for time", test_stopped_while_waiting},
    {"continue", test_continue},
    {"timeout", test_timeout},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "guard", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
