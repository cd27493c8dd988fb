/* SPDX-License-Identifier: MIT */

/* What a restarted berthd finds of a hold, intact or damaged. */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/harness/fifo.h"
#include "tests/harness/test.h"

static void test_restart_with_writer(void) {
    int fd = fifo_begin();

    fifo_reopen();
    TEST_STRING(message_get(&fifo.found, "token"), "1");
    fifo_expect_over(0);
    close(fd);
    fifo_expect_over(1);
}

static void test_restart_without_writer(void) {
    int fd = fifo_begin();

    fifo.hold = hold_detach(fifo.hold);
    close(fd); /* while no berthd ran: poll() would never report it */
    fifo_open();
    TEST_INT(fifo.over, 0); /* not from inside the call */
    fifo_expect_over(1);
}

static void test_restart_with_command(void) {
    struct message_writer w;
    int fd, end;
    pid_t pid;

    fd = fifo_begin_with_command(&pid, &end);
    close(fd);
    fifo_reopen();
    fifo_record(&w, "2");
    TEST_INT(hold_write_record(fifo.hold, &w), 0);
    fifo_reopen(); /* the record keeps the command's identity over the second restart, too */
    TEST_INT(hold_watch_command(fifo.hold, getpid(), pid), 0); /* the reconnected client reports it again */
    TEST_INT(hold_write_record(fifo.hold, &w), 0);
    fifo_reopen();
    fifo_expect_over(0);
    command_end(pid, end);
    fifo_await_over();
}

static void test_restart_after_command(void) {
    int fd, end;
    pid_t pid;

    fd = fifo_begin_with_command(&pid, &end);
    fifo.hold = hold_detach(fifo.hold);
    command_end(pid, end);
    fifo_open();
    fifo_expect_over(0); /* the FIFO is held */
    TEST_INT(hold_get_command(fifo.hold), 0);
    TEST_INT(hold_get_pid(fifo.hold), pid); /* berth doctor compares it with the processes */
    CU_ASSERT(!hold_is_released(fifo.hold));
    close(fd);
    CU_ASSERT(hold_is_released(fifo.hold));
    fifo_expect_over(1);
}

/* Replaces one field of the record, as if another process had the pid now, or another boot had written
 * the record. */
static void tamper(const char *key, const char *value) {
    struct message_writer w;

    CU_ASSERT_EQUAL_FATAL(fifo_recover(), 1);
    message_begin(&w, fifo.found.verb);
    for (size_t i = 0; i < fifo.found.n_fields; i++)
        message_put(&w, fifo.found.fields[i].key, strcmp(fifo.found.fields[i].key, key) == 0 ? value : fifo.found.fields[i].value);
    TEST_INT(w.error, 0);
    TEST_INT(file_write_atomic(fifo_path(FIFO_RUN ".claim"), w.text, w.size, 0600), 0);
}

/* Nomad had this bug: hashicorp/nomad#23969. */
static void test_reused_pid(void) {
    int fd, end;
    pid_t pid;

    fd = fifo_begin_with_command(&pid, &end);
    fifo.hold = hold_detach(fifo.hold);
    close(fd);
    tamper("command-start", "12345"); /* the pid lives, but began at another time */
    fifo_open();
    fifo_expect_over(1);
    command_end(pid, end);
}

static void test_other_boot(void) {
    int fd = fifo_begin();

    fifo.hold = hold_detach(fifo.hold);
    tamper("boot", FIFO_OTHER);
    TEST_INT(fifo_recover(), 0); /* no process of that boot can be alive */
    TEST_INT(fifo_exists(FIFO_RUN) || fifo_exists(FIFO_RUN ".claim"), false);
    close(fd);
}

static void test_write_record(void) {
    struct message_writer w;
    int fd, end;
    pid_t pid;

    fd = fifo_begin_with_command(&pid, &end);
    fifo_record(&w, "2");
    TEST_INT(hold_write_record(fifo.hold, &w), 0);
    fifo_reopen();
    TEST_STRING(message_get(&fifo.found, "token"), "2");
    close(fd);
    fifo_expect_over(0); /* the new record did not forget the command */
    command_end(pid, end);
    fifo_await_over();
    message_put(&w, "Wrong Key", "x");
    TEST_INT(hold_write_record(fifo.hold, &w), w.error);
    TEST_INT(w.error < 0, true);
}

static void touch(const char *name, const char *text) {
    TEST_INT(file_write_atomic(fifo_path(name), text, strlen(text), 0600), 0);
}

static void test_debris(void) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    int fd = fifo_begin();

    TEST_INT(mkfifo(fifo_path(FIFO_OTHER), 0600), 0); /* a FIFO without a record */
    TEST_INT(file_read(fifo_path(FIFO_RUN ".claim"), 8192, &text, &size), 0);
    touch("0000000000000000000000000000000d.claim", text); /* another run's */
    touch("0000000000000000000000000000000a.claim", "no message");
    touch("0000000000000000000000000000000b.claim", "hold\nrun=0000000000000000000000000000000b\n"); /* of no boot */
    touch("0000000000000000000000000000000c.claim", "");
    touch("something", "else");
    touch(".claim", "else");
    TEST_INT(fifo_recover(), 1);
    TEST_INT(fifo_exists(FIFO_OTHER) || fifo_exists("0000000000000000000000000000000a.claim") ||
                 fifo_exists("0000000000000000000000000000000b.claim") || fifo_exists("0000000000000000000000000000000c.claim") ||
                 fifo_exists("0000000000000000000000000000000d.claim") || fifo_exists("something") || fifo_exists(".claim"),
             false);
    TEST_INT(fifo_exists(FIFO_RUN) && fifo_exists(FIFO_RUN ".claim"), true);
    close(fd);
}

static void test_lost_fifo(void) {
    int fd, end;
    pid_t pid;

    fd = fifo_begin_with_command(&pid, &end);
    TEST_INT(unlink(fifo_path(FIFO_RUN)), 0); /* the FIFO was removed: the command alone decides */
    fifo.hold = hold_detach(fifo.hold);
    fifo_open();
    fifo_expect_over(0);
    command_end(pid, end);
    fifo_await_over();
    close(fd);
}

static void test_no_fifo_at_all(void) {
    int fd = fifo_begin();

    fifo.hold = hold_detach(fifo.hold);
    CU_ASSERT_EQUAL_FATAL(fifo_recover(), 1);
    TEST_INT(unlink(fifo_path(FIFO_RUN)), 0);
    touch(FIFO_RUN, "not a FIFO");
    TEST_INT(hold_open(&fifo.hold, fifo.event, fifo.directory, FIFO_RUN, &fifo.found, &fifo.handler), -ENOTSUP);
    TEST_INT(unlink(fifo_path(FIFO_RUN)), 0);
    TEST_INT(unlink(fifo_path(FIFO_RUN ".claim")), 0);
    close(fd);
}

static CU_TestInfo tests[] = {
    {"restart with writer", test_restart_with_writer},
    {"restart without writer", test_restart_without_writer},
    {"restart with command", test_restart_with_command},
    {"restart after command", test_restart_after_command},
    {"reused pid", test_reused_pid},
    {"other boot", test_other_boot},
    {"write record", test_write_record},
    {"debris", test_debris},
    {"lost fifo", test_lost_fifo},
    {"no fifo at all", test_no_fifo_at_all},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "hold-restart", .pSetUpFunc = fifo_up, .pTearDownFunc = fifo_down, .pTests = tests});
