/* SPDX-License-Identifier: MIT */

/* Guards that a real berth-runner prepares before the grant: nothing runs before it, and nothing is left
 * without it. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/protocol.h"
#include "runner/runs.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

#define TOKEN 1763640079999999

#define SHOWS(name, more) TEST_OUT(name, "echo $BERTH_TOKEN $BERTH_RUN", more)
#define ALLOW "overlap = \"allow\" "

static struct test_runner t;
static struct message m; /* large */

static void send_prepare(char run, const char *job) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_PREPARE);
    message_put(&w, "run", test_runner_id(run));
    message_put(&w, "job", job);
    message_put(&w, "hash", test_runner_hash(&t, job));
    message_put(&w, "pools", "db:2,net:1");
    message_put(&w, "scopes", "cc");
    message_put(&w, "namespace", "n");
    message_put(&w, "host", "h");
    message_put_u64(&w, "queued", 1763640079123000);
    message_put_u64(&w, "queued-boot", 1000000);
    TEST_INT(message_send(t.fd, &w), 0);
}

/* Returns a connection to the guard. *m: its state. */
static int prepare(char run, const char *job) {
    int guard;

    send_prepare(run, job);
    test_await(t.fd, &m, PROTOCOL_PREPARED);
    TEST_FIELD(&m, "run", test_runner_id(run));
    guard = test_runner_guard(&t, run);
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "prepared");
    TEST_FIELD(&m, "token", NULL);
    TEST_FIELD(&m, "pid", NULL);
    return guard;
}

static void grant(int guard, usec_t deadline) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_GRANT);
    message_put_u64(&w, "token", TOKEN);
    message_put_u64(&w, "ticket", TOKEN - 1);
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(guard, &w), 0);
}

/* The command ran to its end with the token of the grant. */
static void check_ran(int guard, const char *output) {
    _cleanup_free_ char *text = NULL;
    char expected[80];

    test_await(guard, &m, PROTOCOL_STARTED);
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "0");
    CU_ASSERT(test_number(&m, "token") == TOKEN && test_number(&m, "ticket") == TOKEN - 1);
    text = test_runner_read(&t, output);
    snprintf(expected, sizeof(expected), "%" PRIu64 " %s\n", (uint64_t) TOKEN, test_runner_id('1'));
    TEST_STRING(text, expected);
    test_guard_finish(guard);
}

/* Started the usual way, it runs to its end: nothing is in its way. */
static void check_starts(const char *job) {
    test_runner_run(&t, &m, '1', job);
    TEST_FIELD(&m, "code", "0");
    CU_ASSERT(test_runner_has(&t, "a.out"));
    test_runner_settle(&t);
    CU_ASSERT(test_runner_is_clean(&t));
}

static void test_granted(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    test_runner_settle(&t);
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    grant(guard, clock_boottime() + 100 * USEC_PER_SEC);
    check_ran(guard, "a.out");
    CU_ASSERT(test_runner_is_clean(&t));
    test_runner_done(&t);
}

/* Sent while the guard is still forking its command: the gate is not closed for it. */
static void test_granted_at_once(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    send_prepare('1', "a");
    test_await(t.fd, &m, PROTOCOL_PREPARED);
    guard = test_runner_guard(&t, '1');
    grant(guard, USEC_INFINITY);
    test_await(guard, &m, PROTOCOL_STATE);
    check_ran(guard, "a.out");
    test_runner_done(&t);
}

/* R12: too little time is left before the deadline; the next heartbeat moves it. */
static void test_granted_late(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    grant(guard, clock_boottime());
    test_runner_settle(&t);
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    test_guard_set_deadline(guard, clock_boottime() + 100 * USEC_PER_SEC);
    test_await(guard, &m, PROTOCOL_ACK);
    check_ran(guard, "a.out");
    test_runner_done(&t);
}

/* Killed before it has read the grant: berthd learns that the command has not run. */
static void test_killed_before_grant(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    TEST_INT(kill((pid_t) test_number(&m, "guard"), SIGSTOP), 0);
    grant(guard, USEC_INFINITY);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "lost", NULL);
    TEST_FIELD(&m, "stage", "stop");
    CU_ASSERT(test_number(&m, "errno") == ECANCELED);
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    check_starts("a");
    test_runner_done(&t);
}

/* Stopped while it waits for such a deadline. */
static void test_stopped_at_gate(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    grant(guard, clock_boottime());
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "stage", "stop");
    TEST_FIELD(&m, "reason", "stopped");
    test_guard_finish(guard);
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    CU_ASSERT(test_runner_is_clean(&t));
    test_runner_done(&t);
}

static void end_guard(int guard) {
    (void) close_fd(guard);
}

static void speak_nonsense(int guard) {
    test_say(guard, PROTOCOL_STOP, "reason", "stopped"); /* there is nothing to stop */
    test_await_end(guard);
    (void) close_fd(guard);
}

static void kill_guard(int guard) {
    test_kill_and_wait((pid_t) test_number(&m, "guard"));
    test_await_end(guard);
    (void) close_fd(guard);
}

static void freeze_guard(int guard) {
    (void) kill((pid_t) test_number(&m, "guard"), SIGSTOP);
    (void) close_fd(guard);
}

/* Whatever ends the guard before the grant: the run is started as if it had never been prepared. */
static void check_ended_by(void (*end)(int guard)) {
    test_runner_begin(&t, SHOWS("a", ""), getuid());
    end(prepare('1', "a"));
    check_starts("a");
    test_runner_done(&t);
}

static void test_withdrawn(void) {
    int guard;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    (void) close_fd(guard);
    test_runner_done(&t); /* which checks that nothing is left */
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    check_ended_by(end_guard);
}

static void test_other_message(void) {
    check_ended_by(speak_nonsense);
}

static void test_guard_killed(void) {
    check_ended_by(kill_guard);
}

static void test_guard_frozen(void) {
    check_ended_by(freeze_guard);
}

/* The command is killed where it waits: the grant forks another one. */
static void test_child_killed(void) {
    _cleanup_close_ int guard = -1;
    char path[64];
    pid_t child = 0;
    FILE *children;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) test_number(&m, "guard"), (int) test_number(&m, "guard"));
    for (usec_t end = clock_boottime() + 10 * USEC_PER_SEC; child == 0 && clock_boottime() < end;) {
        children = fopen(path, "re");
        if (children && fscanf(children, "%d", &child) != 1)
            child = 0;
        if (children)
            (void) fclose(children);
    }
    CU_ASSERT_FATAL(child > 0);
    test_kill_and_wait(child);
    grant(guard, USEC_INFINITY);
    check_ran(guard, "a.out");
    test_runner_done(&t);
}

/* From the grant on a dead guard is a dead run, which has its token. */
static void test_killed_after_grant(void) {
    int guard;

    test_runner_begin(&t, TEST_OUT("a", "echo yes; sleep 1000", ""), getuid());
    guard = prepare('1', "a");
    grant(guard, USEC_INFINITY);
    free(test_runner_read(&t, "a.out"));
    test_kill_and_wait((pid_t) test_number(&m, "guard"));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    CU_ASSERT(test_number(&m, "token") == TOKEN);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_settle(&t);
    (void) close_fd(guard);
    test_runner_done(&t);
}

/* The guards of a runner end with it. */
static void test_runner_killed(void) {
    int guard;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    test_runner_end(&t, SIGKILL);
    test_await_end(guard);
    (void) close_fd(guard);
    test_runner_start(&t);
    test_runner_join(&t);
    CU_ASSERT(test_runner_is_clean(&t));
    check_starts("a");
    test_runner_done(&t);
}

/* The guards of an earlier berthd are gone before the runner reports to the next one what there is; also a frozen guard. */
static void check_next_berthd(bool is_frozen) {
    int guard;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('1', "a");
    if (is_frozen)
        (void) kill((pid_t) test_number(&m, "guard"), SIGSTOP);
    test_runner_join(&t); /* fails if another message than `recovered` follows hello */
    CU_ASSERT(test_runner_is_clean(&t));
    (void) close_fd(guard);
    check_starts("a");
    test_runner_done(&t);
}

static void test_next_berthd(void) {
    check_next_berthd(false);
    check_next_berthd(true);
}

/* A job that allows no overlap: the prepared guard makes way, and the other run is started after it has ended. */
static void test_overlap(void) {
    int guard;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    guard = prepare('2', "a");
    send_prepare('3', "a");
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "overlap");
    test_runner_begin_run(&t, &m, '1', "a");
    test_await_end(guard);
    (void) close_fd(guard);
    CU_ASSERT(!test_runner_has_file(&t, '2', ".guard"));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "0");
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_settle(&t);
    test_runner_done(&t);
}

/* And the other way round: while a run is not over, no other one is prepared. */
static void test_no_overlap(void) {
    test_runner_begin(&t, TEST_JOB("a", "sleep 1000", "output = \"null\" "), getuid());
    test_runner_begin_run(&t, &m, '1', "a");
    send_prepare('2', "a");
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "overlap");
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_settle(&t);
    test_runner_done(&t);
}

/* A berthd that was taken over prepares no more than that. */
static void test_bound(void) {
    static const char ids[] = "0123456789abcdef";
    int guards[RUNS_PREPARED_MAX];

    test_runner_begin(&t, SHOWS("a", ALLOW), getuid());
    for (size_t i = 0; i < RUNS_PREPARED_MAX; i++)
        guards[i] = prepare(ids[i], "a");
    send_prepare('f', "a");
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "too-many-runs");
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('3'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "stage", "stop");
    (void) close_fd(guards[3]);
    guards[3] = prepare('3', "a");
    send_prepare('3', "a"); /* it is prepared already */
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    for (size_t i = 0; i < RUNS_PREPARED_MAX; i++)
        (void) close_fd(guards[i]);
    test_runner_done(&t);
}

/* What only a grant may say, or a guard knows. */
static void test_malformed(void) {
    struct message_writer w;

    test_runner_begin(&t, SHOWS("a", ""), getuid());
    test_runner_begin_start(&w, '1', "a", test_runner_hash(&t, "a"));
    message_put(&w, "prepared", "1");
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "bad-request");
    CU_ASSERT(test_runner_is_clean(&t));
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"granted", test_granted},
    {"granted at once", test_granted_at_once},
    {"granted late", test_granted_late},
    {"stopped at the gate", test_stopped_at_gate},
    {"killed before it has read the grant", test_killed_before_grant},
    {"withdrawn", test_withdrawn},
    {"another message than a grant", test_other_message},
    {"the guard is killed", test_guard_killed},
    {"the guard is frozen", test_guard_frozen},
    {"the command is killed at its gate", test_child_killed},
    {"the guard is killed after the grant", test_killed_after_grant},
    {"the runner is killed", test_runner_killed},
    {"the next berthd", test_next_berthd},
    {"a start overlaps", test_overlap},
    {"would overlap", test_no_overlap},
    {"bound", test_bound},
    {"malformed", test_malformed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "prepared", .pTests = tests});
