/* SPDX-License-Identifier: MIT */

/* A hold lasts as long as a process has the FIFO's write end open, or the command lives. Then its files
 * are removed. */

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/fifo.h"
#include "tests/harness/test.h"

static void test_writer_closes(void) {
    int fd = fifo_begin();

    fifo_expect_over(0);
    TEST_INT(fifo_exists(FIFO_RUN) && fifo_exists(FIFO_RUN ".claim"), true);
    close(fd);
    fifo_expect_over(1);
    fifo.hold = hold_free(fifo.hold);
    TEST_INT(fifo_exists(FIFO_RUN) || fifo_exists(FIFO_RUN ".claim"), false);
}

static void test_freed_in_handler(void) {
    fifo.free_in_handler = true;
    close(fifo_begin());
    fifo_expect_over(1);
    CU_ASSERT_PTR_NULL(fifo.hold);
}

static void test_last_writer_counts(void) {
    int fd, second;

    fd = fifo_begin();
    second = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    fifo_expect_over(0);
    close(second);
    fifo_expect_over(1);
}

/* Data that a command writes to the FIFO stays there and does not wake berthd, which still notices the
 * end. */
static void test_command_writes(void) {
    char block[4096] = "";
    int fd, n;

    fd = fifo_begin();
    for (n = 0; write(fd, block, sizeof(block)) > 0; n++)
        TEST_INT(sd_event_run(fifo.event, 0), 0);
    TEST_INT(n > 0 && errno == EAGAIN, true);
    TEST_INT(sd_event_run(fifo.event, 0), 0);
    fifo_reopen(); /* a restarted berthd finds it full */
    fifo_expect_over(0);
    close(fd);
    fifo_expect_over(1);
}

static void test_command_outlives_fifo(void) {
    int fd, end;
    pid_t pid;

    fd = fifo_begin_with_command(&pid, &end);
    close(fd);
    fifo_expect_over(0);
    command_end(pid, end);
    fifo_await_over();
}

static void test_fifo_outlives_command(void) {
    int fd, end;
    pid_t pid;

    fd = fifo_begin_with_command(&pid, &end);
    command_end(pid, end);
    fifo_expect_over(0);
    close(fd);
    fifo_expect_over(1);
}

static void test_command_inherits(void) {
    int fd, end;
    pid_t pid;

    fd = fifo_begin();
    pid = command_start(&end, fd);
    close(fd); /* `berth run` was killed, without reporting the pid: the command still has the hold */
    fifo_expect_over(0);
    command_end(pid, end);
    fifo_await_over();
}

static void test_no_such_command(void) {
    int fd, end;
    pid_t pid;

    fd = fifo_begin();
    pid = command_start(&end, -1);
    command_end(pid, end);
    TEST_INT(hold_watch_command(fifo.hold, pid, pid), -ESRCH); /* of an unknown client: perhaps the pid of a container */
    TEST_INT(hold_get_pid(fifo.hold), 0);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), pid), -ESRCH);
    TEST_INT(hold_get_pid(fifo.hold), pid);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), 0), -EINVAL);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), 1), -EINVAL);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), -5), -EINVAL);
    close(fd); /* the FIFO alone decides */
    fifo_expect_over(1);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), getpid()), -ESRCH);
}

/* A client can extend the hold to its own processes, not to those of others. */
static void test_stranger(void) {
    int fd, end, other_end;
    pid_t client, stranger;

    fd = fifo_begin();
    client = command_start(&end, -1);
    stranger = command_start(&other_end, -1);
    TEST_INT(hold_watch_command(fifo.hold, client, stranger), -EPERM);
    TEST_INT(hold_watch_command(fifo.hold, client, getpid()), -EPERM);
    close(fd);
    fifo_expect_over(1);
    command_end(client, end);
    command_end(stranger, other_end);
}

static void test_zombie_is_gone(void) {
    siginfo_t info;
    int fd, end;
    pid_t pid;

    fd = fifo_begin();
    pid = command_start(&end, -1);
    close(end);
    TEST_INT(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), pid), -ESRCH);
    close(fd);
    fifo_expect_over(1);
    TEST_INT(waitpid(pid, NULL, 0), pid);
}

static void find_nothing(_unused_ const char *run, _unused_ const struct message *record, _unused_ void *userdata) {
    CU_FAIL("hold_recover() found a hold that nobody left");
}

static void test_no_directory(void) {
    struct message_writer w;
    int fd = 4711;

    fifo_record(&w, "1");
    TEST_INT(hold_new(&fifo.hold, fifo.event, "/nonexistent", FIFO_RUN, &w, &fifo.handler, &fd), -ENOENT);
    TEST_INT(hold_new(&fifo.hold, fifo.event, fifo.directory, "../../etc/passwd", &w, &fifo.handler, &fd), -EINVAL);
    message_put(&w, "Wrong Key", "x");
    TEST_INT(hold_new(&fifo.hold, fifo.event, fifo.directory, FIFO_RUN, &w, &fifo.handler, &fd), w.error);
    TEST_INT(fifo_exists(FIFO_RUN), false); /* no file is left */
    TEST_INT(fd, 4711);
    CU_ASSERT_PTR_NULL(fifo.hold);
    TEST_INT(hold_recover("/nonexistent", find_nothing, NULL), 0);
}

static void test_same_run_twice(void) {
    struct message_writer w;
    struct hold *second = NULL;
    int fd, other = -1;

    fd = fifo_begin();
    fifo_record(&w, "9");
    TEST_INT(hold_new(&second, fifo.event, fifo.directory, FIFO_RUN, &w, &fifo.handler, &other), -EEXIST);
    TEST_INT(fifo_exists(FIFO_RUN) && fifo_exists(FIFO_RUN ".claim"), true); /* the first one's files are not touched */
    close(fd);
}

static CU_TestInfo tests[] = {
    {"writer closes", test_writer_closes},
    {"freed in handler", test_freed_in_handler},
    {"last writer counts", test_last_writer_counts},
    {"command writes", test_command_writes},
    {"command outlives fifo", test_command_outlives_fifo},
    {"fifo outlives command", test_fifo_outlives_command},
    {"command inherits", test_command_inherits},
    {"no such command", test_no_such_command},
    {"stranger", test_stranger},
    {"zombie is gone", test_zombie_is_gone},
    {"no directory", test_no_directory},
    {"same run twice", test_same_run_twice},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "hold", .pSetUpFunc = fifo_up, .pTearDownFunc = fifo_down, .pTests = tests});
