/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=fork */

/* `berth run` is killed right after its fork, before the child has called prctl(PR_SET_PDEATHSIG). Nothing
 * would stop this child at its deadline, so it must not become the command. */

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

static bool kills_parent; /* in `berth run` alone */

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void) {
    pid_t parent = getpid(), pid = __real_fork();

    if (pid == 0 && kills_parent) {
        struct pollfd end = {.fd = pidfd_open(parent, 0), .events = POLLIN};

        if (end.fd < 0 || kill(parent, SIGKILL) < 0 || poll(&end, 1, -1) != 1 || getppid() == parent || close(end.fd) < 0)
            _exit(99);
    }
    return pid;
}

static void arm(struct fake *f) {
    (void) f;
    kills_parent = true;
}

static void test_killed_after_its_fork(void) {
    struct fake f;

    fake_init(&f);
    fake_in_child = arm;
    fake_run(&f, "-p db -- sh -c", "echo started; read x");
    fake_grant(&f, 0);
    TEST_INT(fake_await_exit(&f), -SIGKILL);
    fake_await_hold_over(&f); /* the child has ended */
    TEST_INT(read(f.output, f.text, sizeof(f.text)), 0); /* without an exec */
    fake_done(&f);
}

/* The same without a kill: the command starts. */
static void test_not_killed(void) {
    struct fake f;

    fake_init(&f);
    fake_run(&f, "-p db -- sh -c", "echo started");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_await_output(&f, "started");
    fake_expect_ended(&f, 0, -1, NULL);
    TEST_INT(fake_await_exit(&f), 0);
    fake_done(&f);
}

static CU_TestInfo tests[] = {
    {"killed after its fork", test_killed_after_its_fork},
    {"not killed", test_not_killed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run killed", .pTests = tests});
