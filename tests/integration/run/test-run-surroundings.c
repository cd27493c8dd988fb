/* SPDX-License-Identifier: MIT */
/* What `berth run` finds where it starts: children that a shell had before `exec berth run`, and a /proc of another PID
 * namespace. The test is berthd. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define OVER "the output is over"

/* As `exec > >(tee log)`: a child passes on what `berth run` and its command write, and sees the end of it only when
 * `berth run` has ended. */
static void have_reader(struct fake *f) {
    int fds[2];
    char c;

    (void) f;
    if (pipe(fds) < 0)
        _exit(99);
    if (fork() == 0) {
        close(fds[1]);
        while (read(fds[0], &c, 1) > 0)
            (void) write(STDOUT_FILENO, &c, 1);
        (void) write(STDOUT_FILENO, OVER, sizeof(OVER) - 1);
        _exit(0);
    }
    if (dup2(fds[1], STDOUT_FILENO) < 0)
        _exit(99);
    (void) close_range(3, ~0U, 0);
}

static void ends_beside_a_reader(const char *words, const char *script, int code, int signal, const char *result, int status) {
    struct fake f;

    fake_init(&f);
    fake_in_child = have_reader;
    fake_run(&f, words, script);
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_expect_ended(&f, code, signal, result);
    TEST_INT(fake_await_exit(&f), status);
    fake_await_output(&f, OVER); /* so no signal has ended the reader */
    fake_done(&f);
}

static void test_reader_of_the_output(void) {
    ends_beside_a_reader("-p db -- sh -c", "exit 3", 3, -1, NULL, 3);
    ends_beside_a_reader("-p db -- sh -c", "(exec sleep 0.1) & exit 4", 4, -1, NULL, 4);
    ends_beside_a_reader("-p db --timeout 1s --stop-timeout 100ms -- sh -c", "trap '' TERM; sleep 100 & wait; wait", -1, SIGKILL,
                         "timeout", 124);
}

/* As `(sleep 60; kill $$) & exec berth run ...` */
static void have_watchdog(struct fake *f) {
    char c;

    (void) f;
    if (fork() == 0) {
        if (read(STDIN_FILENO, &c, 1) == 1)
            (void) kill(getppid(), SIGTERM);
        _exit(0);
    }
}

static void test_signal_of_a_watchdog(void) {
    struct fake f;

    fake_init(&f);
    fake_in_child = have_watchdog;
    fake_run(&f, "-p db -- sh -c", "exec sleep 100");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    TEST_INT(write(f.keys, "x", 1), 1);
    fake_expect_ended(&f, -1, SIGTERM, NULL);
    TEST_INT(fake_await_exit(&f), -SIGTERM);
    fake_done(&f);
}

/* As `unshare --pid --fork`: /proc stays that of the namespace outside. There the pid of the command is that of this
 * process, which has not called exec. */
static void be_in_a_namespace(struct fake *f) {
    pid_t pid, outside = getpid();
    int status, fd;

    (void) f;
    if (unshare(CLONE_NEWPID) < 0)
        _exit(98);
    pid = fork();
    if (pid == 0) {
        fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || dprintf(fd, "%d", (int) outside - 1) < 0)
            _exit(97);
        close(fd);
        return;
    }
    _exit(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

static void test_foreign_proc(void) {
    struct fake f;

    TEST_NEEDS_ROOT();
    fake_init(&f);
    fake_in_child = be_in_a_namespace;
    fake_run(&f, "-p db -- sh -c", "exit 9");
    fake_grant(&f, 0);
    fake_expect_started(&f);
    fake_expect_ended(&f, 9, -1, NULL);
    TEST_INT(fake_await_exit(&f), 9);
    TEST_STRING(fake_errors(&f), "");
    fake_done(&f);
}

static CU_TestInfo tests[] = {
    {"a reader of the output", test_reader_of_the_output},
    {"the signal of a watchdog", test_signal_of_a_watchdog},
    {"/proc of another namespace", test_foreign_proc},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run surroundings", .pTests = tests});
