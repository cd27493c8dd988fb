/* SPDX-License-Identifier: MIT */
/* Many guards hang, and the leases of their runs end in a quarter of a second. What takes berth-runner long
 * must not delay the kill of the other runs. */

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/cgroup.h"
#include "base/protocol.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

#define LONG TEST_OUT("long", "sleep 1000 & echo $!; wait", "")
#define UNKNOWN "23456789abcdef" /* runs that the runner does not know: it answers their kill at once */

static struct test_runner t;
static struct message m; /* large */

static void kill_unknown(void) {
    for (const char *id = UNKNOWN; *id; id++)
        test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id(*id));
}

static void await_report(char id) {
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id(id));
    TEST_FIELD(&m, "lost", "1");
}

/* Starts run 1. Stores the pids of its guard, and of a child of its command. The child does not end with
 * them. */
static void start_run(pid_t *ret_guard, pid_t *ret_child) {
    _cleanup_free_ char *text = NULL;

    test_runner_begin(&t, LONG, getuid());
    test_runner_begin_run(&t, &m, '1', "long");
    *ret_guard = test_runner_guard_pid(&t, &m, '1');
    text = test_runner_read(&t, "long.out");
    *ret_child = (pid_t) strtol(text, NULL, 10);
    CU_ASSERT_FATAL(*ret_child > 1);
}

/* Lets the runner run only while this process waits. */
static void get_ahead(cpu_set_t *ret_before) {
    const struct sched_param none = {0};
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    TEST_INT(sched_getaffinity(0, sizeof(*ret_before), ret_before), 0);
    TEST_INT(sched_setaffinity(0, sizeof(one), &one), 0);
    TEST_INT(sched_setaffinity(t.pid, sizeof(one), &one), 0);
    TEST_INT(sched_setscheduler(t.pid, SCHED_IDLE, &none), 0);
}

/* The kill of a run reaches its cgroup before berth-runner reads the next message. */
static void test_kill_at_once(void) {
    _cleanup_free_ char *cgroup = NULL;
    _cleanup_close_ int pidfd = -1;
    pid_t guard, child;
    cpu_set_t before;

    if (cgroup_find_own(&cgroup) < 0)
        return;
    start_run(&guard, &child);
    pidfd = pidfd_open(child, 0);
    get_ahead(&before);
    TEST_INT(kill(t.pid, SIGSTOP), 0);
    test_say(t.fd, PROTOCOL_KILL, "run", test_runner_id('1'));
    for (int i = 0; i < 8; i++)
        kill_unknown();
    TEST_INT(kill(t.pid, SIGCONT), 0);
    await_report(*UNKNOWN);
    TEST_INT(kill(t.pid, SIGSTOP), 0); /* it has more than a hundred messages to read */
    if (!test_runner_wait_for(pidfd, POLLIN))
        CU_FAIL("the kill did not reach the run");
    TEST_INT(kill(t.pid, SIGCONT), 0);
    TEST_INT(sched_setaffinity(0, sizeof(before), &before), 0);
    do
        test_await(t.fd, &m, PROTOCOL_REPORT);
    while (strcmp(message_get(&m, "run"), test_runner_id('1')) != 0);
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"kill at once", test_kill_at_once},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "reap-many", .pTests = tests});
