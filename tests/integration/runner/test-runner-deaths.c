/* SPDX-License-Identifier: MIT */
/* Guards or the runner are killed: no process of a run is left, and berthd receives a report. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/cleanup.h"
#include "base/process/process-tree.h"
#include "base/protocol.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

static struct test_runner t;
static struct message m; /* large */

/* A command that hides a process in a session of its own, and writes the pid to a file. */
#define HIDES TEST_SH("hides", "setsid sh -c 'echo $$ >@/pid; exec sleep 1000' & sleep 1000")

static pid_t hidden_pid(uint64_t *ret_start) {
    _cleanup_free_ char *text = test_runner_read(&t, "pid");
    pid_t pid = (pid_t) strtol(text, NULL, 10);

    TEST_INT(process_start_time(pid, ret_start), 0);
    return pid;
}

/* A zombie is not alive. */
static bool is_alive(pid_t pid, uint64_t start) {
    _cleanup_close_ int pidfd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    uint64_t now = 0;

    return pidfd >= 0 && process_start_time(pid, &now) == 0 && now == start && poll(&p, 1, 0) == 0;
}

static void start_again(void) {
    test_runner_start(&t);
    test_runner_connect_again(&t);
}

static void guard_dies(uid_t uid) {
    uint64_t start = 0;
    pid_t pid;

    test_runner_begin(&t, HIDES, uid);
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    CU_ASSERT(kill(test_runner_guard_pid(&t, &m, '1'), SIGKILL) == 0);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    CU_ASSERT(!is_alive(pid, start)); /* no report while a process is left */
    TEST_FIELD(&m, "lost", "1");
    TEST_FIELD(&m, "job", "hides");
    TEST_FIELD(&m, "token", "1763640079123456");
    TEST_FIELD(&m, "code", NULL);
    CU_ASSERT(test_runner_has_file(&t, '1', ".report") && !test_runner_has_file(&t, '1', ".sock") &&
              !test_runner_has_file(&t, '1', ".guard"));
    test_runner_done(&t);
}

static void test_guard_dies(void) {
    guard_dies(getuid());
    if (getuid() == 0)
        guard_dies(NOBODY); /* without a cgroup to kill */
}

static void test_guard_dies_others_live(void) {
    uint64_t start = 0;
    pid_t pid;

    TEST_NEEDS_ROOT();
    test_runner_begin(&t, HIDES TEST_SH("other", "sleep 1000"), NOBODY);
    test_runner_begin_run(&t, &m, '1', "hides");
    test_runner_begin_run(&t, &m, '2', "other");
    pid = hidden_pid(&start);
    CU_ASSERT(kill(test_runner_guard_pid(&t, &m, '2'), SIGKILL) == 0);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('2'));
    CU_ASSERT(is_alive(pid, start)); /* processes below a living guard are left alone */
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    CU_ASSERT(!is_alive(pid, start));
    test_runner_done(&t);
}

/* Signals to the process group of the runner, as from a terminal, do not reach its guards. */
static void test_session(void) {
    pid_t guard;

    test_runner_begin(&t, TEST_SH("waits", "sleep 1000"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    guard = test_runner_guard_pid(&t, &m, '1');
    TEST_INT(getsid(guard), guard);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    test_runner_done(&t);
}

static void test_runner_dies(void) {
    _cleanup_close_ int guard = -1;

    test_runner_begin(&t, TEST_SH("waits", "echo here; trap 'exit 7' TERM; sleep 1000 & wait"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    close_fd(test_guard_join(&t, &m, '1', "waits.out"));
    test_runner_end(&t, SIGKILL);
    test_await_end(t.fd);
    start_again();
    test_await(t.fd, &m, PROTOCOL_GUARD);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
    test_runner_send_start(&t, '1', "waits");
    test_await(t.fd, &m, PROTOCOL_EXISTS);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    TEST_FIELD(&m, "phase", "running");
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "7");
    test_say(guard, PROTOCOL_DONE, NULL, NULL);
    test_await_end(guard);
    test_runner_done(&t);
}

static void runner_and_guard_die(uid_t uid, bool guard_first) {
    uint64_t start = 0;
    pid_t pid, guard;

    test_runner_begin(&t, HIDES, uid);
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    guard = test_runner_guard_pid(&t, &m, '1');
    test_runner_end(&t, SIGKILL);
    if (guard_first)
        test_kill_and_wait(guard);
    start_again();
    if (!guard_first) {
        test_await(t.fd, &m, PROTOCOL_GUARD);
        test_await(t.fd, &m, PROTOCOL_RECOVERED);
        CU_ASSERT(kill(guard, SIGKILL) == 0); /* a guard that is not this runner's child */
    }
    /* A run that is being reaped has processes: `recovered` comes after its report. */
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    CU_ASSERT(!is_alive(pid, start));
    if (guard_first)
        test_await(t.fd, &m, PROTOCOL_RECOVERED);
    test_runner_done(&t);
}

/* When guard and runner die, the command dies with its guard. */
static void test_command_is_not_left_alone(void) {
    _cleanup_close_ int pidfd = -1;
    struct pollfd p = {.events = POLLIN};
    pid_t guard;

    test_runner_begin(&t, TEST_SH("waits", "echo $$ >@/pid; exec sleep 1000"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    {
        _cleanup_free_ char *text = test_runner_read(&t, "pid");

        p.fd = pidfd = pidfd_open((pid_t) strtol(text, NULL, 10), 0);
        CU_ASSERT_FATAL(pidfd >= 0);
    }
    guard = test_runner_guard_pid(&t, &m, '1');
    test_runner_end(&t, SIGKILL);
    test_kill_and_wait(guard);
    CU_ASSERT(poll(&p, 1, 10000) == 1);
    start_again();
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    test_runner_done(&t);
}

/* berthd must not receive `recovered` while processes of the run may be alive. */
static void test_recovered_waits(void) {
    uint64_t start = 0;
    int status = 0;
    pid_t pid, guard;

    test_runner_begin(&t, HIDES, getuid());
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    guard = test_runner_guard_pid(&t, &m, '1');
    test_runner_end(&t, SIGKILL);
    test_kill_and_wait(guard);
    test_runner_start_as_child(&t);
    test_await(t.fd, &m, PROTOCOL_HELLO);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    CU_ASSERT(!is_alive(pid, start));
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
    t.fd = close_fd(t.fd); /* the runner ends with its socket */
    CU_ASSERT(waitpid(t.pid, &status, 0) == t.pid);
    TEST_INT(status, 0);
    t.pid = 0;
    test_runner_done(&t);
}

static void test_both_die(void) {
    _cleanup_free_ char *cgroup = NULL;

    runner_and_guard_die(getuid(), true);
    runner_and_guard_die(getuid(), false);
    if (getuid() == 0 && cgroup_find_own(&cgroup) == 0) { /* without a cgroup BERTH_RUN names the run */
        runner_and_guard_die(NOBODY, true);
        runner_and_guard_die(NOBODY, false);
    }
}

/* A process that SIGKILL does not end keeps the run open. berthd receives a message that names the
 * process. */
static void test_outlives_kill(void) {
    struct clock_file clock;
    uint64_t start = 0;
    char path[96];
    pid_t pid;

    test_runner_prepare(&t, getuid());
    (void) snprintf(path, sizeof(path), "%s/clock", t.directory);
    clock_file_make(&clock, path);
    t.environment = clock.environment;
    test_runner_configure(&t, HIDES);
    test_runner_start(&t);
    test_runner_join(&t);
    test_runner_begin_run(&t, &m, '1', "hides");
    pid = hidden_pid(&start);
    clock_file_lose_kills(&clock, true);
    CU_ASSERT(kill(test_runner_guard_pid(&t, &m, '1'), SIGKILL) == 0);
    test_runner_settle(&t);
    CU_ASSERT(is_alive(pid, start));
    clock_file_jump(&clock, 10 * USEC_PER_SEC);
    test_await(t.fd, &m, PROTOCOL_STUCK);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    CU_ASSERT(strstr(message_get(&m, "text"), " (sleep), state ") != NULL); /* either process */
    clock_file_jump(&clock, 3600 * USEC_PER_SEC);
    test_await(t.fd, &m, PROTOCOL_STUCK); /* again */
    clock_file_lose_kills(&clock, false);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    CU_ASSERT(!is_alive(pid, start));
    test_runner_done(&t);
    clock_file_done(&clock);
}

static void test_kill_unknown(void) {
    test_runner_begin(&t, TEST_SH("a", "exit 0"), getuid());
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "lost", "1");
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

/* An earlier berthd received the report of the run. The next one knows only the id, and has the run
 * killed. */
static void test_kill_of_one_that_ends(void) {
    _cleanup_close_ int guard = -1, pidfd = -1;
    struct pollfd p = {.events = POLLIN};

    test_runner_begin(&t, TEST_SH("a", "exit 0") TEST_SH("waits", "echo >@/there; exec sleep 1000"), getuid());
    test_runner_begin_run(&t, &m, '1', "waits");
    close_fd(test_guard_join(&t, &m, '1', "there"));
    pidfd = pidfd_open(test_runner_guard_pid(&t, &m, '1'), 0);
    CU_ASSERT_FATAL(pidfd >= 0);
    guard = test_runner_guard(&t, '1');
    test_await(guard, &m, PROTOCOL_STATE);
    test_say(guard, PROTOCOL_STOP, "reason", "stopped");
    test_await(guard, &m, PROTOCOL_STOPPING);
    test_await(guard, &m, PROTOCOL_REPORT);
    CU_ASSERT_FATAL(kill(t.pid, SIGSTOP) == 0);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1')); /* the runner reads it first when it goes on */
    test_say(guard, PROTOCOL_DONE, NULL, NULL);
    p.fd = pidfd;
    CU_ASSERT(poll(&p, 1, 10000) == 1);
    CU_ASSERT_FATAL(kill(t.pid, SIGCONT) == 0);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "lost", "1");
    test_runner_run(&t, &m, '1', "a");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"guard dies", test_guard_dies},
    {"guard dies, others live", test_guard_dies_others_live},
    {"session", test_session},
    {"runner dies", test_runner_dies},
    {"both die", test_both_die},
    {"a command is not left alone", test_command_is_not_left_alone},
    {"recovered waits", test_recovered_waits},
    {"a process outlives its kill", test_outlives_kill},
    {"kill unknown", test_kill_unknown},
    {"kill of one that ends", test_kill_of_one_that_ends},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "runner-deaths", .pTests = tests});
