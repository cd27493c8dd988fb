/* SPDX-License-Identifier: MIT */

/* Who was handed a hold: the descriptor proves it, and nothing that can be had without having been given it does. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/fifo.h"
#include "tests/harness/test.h"

static void test_handed(void) {
    _cleanup_close_ int fd = fifo_begin(), copy = dup(fd);

    TEST_INT(hold_is_held_by(fifo.hold, fd), true);
    TEST_INT(hold_is_held_by(fifo.hold, copy), true);
    fifo_reopen(); /* a restarted berthd knows it, too */
    TEST_INT(hold_is_held_by(fifo.hold, copy), true);
}

static void test_not_handed(void) {
    _cleanup_close_ _unused_ int fd = fifo_begin(), path = open(fifo_path(FIFO_RUN), O_PATH | O_CLOEXEC);
    _cleanup_close_ int reader = open(fifo_path(FIFO_RUN), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int fds[2];

    TEST_INT(path >= 0 && reader >= 0 && null >= 0, true);
    TEST_INT(hold_is_held_by(fifo.hold, path), false); /* whoever sees a holder in /proc has that */
    TEST_INT(hold_is_held_by(fifo.hold, reader), false);
    TEST_INT(hold_is_held_by(fifo.hold, null), false);
    TEST_INT(hold_is_held_by(fifo.hold, -1), false);
    TEST_INT(hold_is_held_by(fifo.hold, 9999), false);
    TEST_INT(pipe2(fds, O_CLOEXEC), 0);
    TEST_INT(hold_is_held_by(fifo.hold, fds[1]), false);
    close(fds[0]);
    close(fds[1]);
}

/* A FIFO in the place of ours, or one whose inode is used again, is another one. */
static void test_replaced(void) {
    _cleanup_close_ int fd = fifo_begin(), other = -1;

    TEST_INT(unlink(fifo_path(FIFO_RUN)), 0);
    TEST_INT(mkfifo(fifo_path(FIFO_RUN), 0600), 0);
    other = open(fifo_path(FIFO_RUN), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    TEST_INT(other >= 0, true);
    TEST_INT(hold_is_held_by(fifo.hold, other), false);
    TEST_INT(hold_is_held_by(fifo.hold, fd), true);
}

static void test_over(void) {
    int fd = fifo_begin(), command_end_fd;
    pid_t pid = command_start(&command_end_fd, -1);

    TEST_INT(hold_get_command(fifo.hold), 0);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), pid), 0);
    TEST_INT(hold_get_command(fifo.hold), pid);
    command_end(pid, command_end_fd);
    TEST_INT(hold_get_command(fifo.hold), 0); /* at once: its number may be somebody else's by now */
    fifo_expect_over(0);
    TEST_INT(hold_is_held_by(fifo.hold, fd), true);
    close(fd);
    fifo_await_over();
    TEST_INT(hold_is_held_by(fifo.hold, fd), false);
}

static CU_TestInfo tests[] = {
    {"handed", test_handed}, {"not handed", test_not_handed}, {"replaced", test_replaced}, {"over", test_over}, CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "hold handed", .pSetUpFunc = fifo_up, .pTearDownFunc = fifo_down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
