/* SPDX-License-Identifier: MIT */
/* berthd as the first process of a container: orphans are reaped, signals reach berthd, and its exit status is that of the
 * container. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/pid1.h"
#include "tests/harness/test.h"

#define PATIENCE (20 * USEC_PER_SEC)

static int first[2]; /* has the pid of PID 1 as it is outside */
static int ready[2]; /* has a byte for each step of berthd */

/* Runs as PID 1 of a new namespace; berthd() takes the part of berthd. Returns the pid of its parent. */
static pid_t start(int (*berthd)(void)) {
    int status = 0;
    pid_t pid;

    (void) fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    if (unshare(CLONE_NEWPID) < 0)
        _exit(99);
    pid = fork();
    if (pid == 0) {
        (void) setenv("LISTEN_PID", "1", 1);
        _exit(pid1_serve(&status) ? status : berthd());
    }
    (void) write(first[1], &pid, sizeof(pid));
    _exit(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

static void open_pipes(void) {
    TEST_INT(pipe(first), 0);
    TEST_INT(pipe(ready), 0);
}

static void close_pipes(void) {
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(ready[i]);
    }
}

static int end_of(pid_t pid) {
    int status = 0;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int leaves_an_orphan(void) {
    usec_t until = clock_boottime() + PATIENCE;
    char word[16];
    int fds[2];
    pid_t pid, orphan = 0;

    if (pipe(fds) < 0)
        return 97;
    pid = fork();
    if (pid == 0) {
        orphan = fork();
        if (orphan == 0)
            _exit(0);
        _exit(write(fds[1], &orphan, sizeof(orphan)) == (ssize_t) sizeof(orphan) ? 0 : 1);
    }
    if (waitpid(pid, NULL, 0) != pid || read(fds[0], &orphan, sizeof(orphan)) != (ssize_t) sizeof(orphan))
        return 96; /* nobody took the end of a child of berthd */
    while (kill(orphan, 0) == 0 && clock_boottime() < until)
        (void) sched_yield();
    (void) snprintf(word, sizeof(word), "%d", (int) getpid());
    return getpid() == 1 ? 95 : strcmp(getenv("LISTEN_PID"), word) != 0 ? 94 : errno == ESRCH ? 7 : 93;
}

static void test_orphans_are_reaped(void) {
    TEST_NEEDS_ROOT();
    open_pipes();
    TEST_INT(end_of(start(leaves_an_orphan)), 7);
    close_pipes();
}

static int awaits_signal(void) {
    sigset_t set;
    int signal = 0;

    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    (void) write(ready[1], &set, 1);
    if (sigwait(&set, &signal) != 0 || signal != SIGHUP)
        return 97;
    (void) write(ready[1], &set, 1);
    (void) sigwait(&set, &signal);
    (void) sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void) raise(signal == SIGTERM ? SIGKILL : SIGABRT);
    return 96;
}

/* Awaits the next step of berthd. Without it kills all processes of the namespace, so that the test ends. */
static void await_step(pid_t pid) {
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    char c;

    TEST_INT(poll(&p, 1, (int) (PATIENCE / USEC_PER_MSEC)), 1);
    if (p.revents == 0)
        (void) kill(pid, SIGKILL);
    else
        TEST_INT(read(ready[0], &c, 1), 1);
}

static void test_signals_are_passed_on(void) {
    pid_t parent, pid = 0;

    TEST_NEEDS_ROOT();
    open_pipes();
    parent = start(awaits_signal);
    TEST_INT(read(first[0], &pid, sizeof(pid)), sizeof(pid));
    CU_ASSERT_FATAL(pid > 1);
    await_step(pid);
    TEST_INT(kill(pid, SIGHUP), 0);
    await_step(pid);
    TEST_INT(kill(pid, SIGTERM), 0);
    TEST_INT(end_of(parent), 128 + SIGKILL);
    close_pipes();
}

static void test_not_the_first(void) {
    int status = 5;

    if (getpid() != 1)
        TEST_INT(pid1_serve(&status), false);
    TEST_INT(status, 5);
}

static CU_TestInfo tests[] = {
    {"orphans are reaped", test_orphans_are_reaped},
    {"signals are passed on", test_signals_are_passed_on},
    {"not the first process", test_not_the_first},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "pid1", .pTests = tests});
