/* SPDX-License-Identifier: MIT */
#include "daemon/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/harness/test.h"

#define RUN "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

struct fixture {
    char directory[64];
    sd_event *event;
    struct hold *hold;
    struct hold_handler handler;
    unsigned over;
    bool free_in_handler;
};

static void on_over(struct hold *h, void *userdata) {
    struct fixture *f = userdata;

    TEST_INT(h == f->hold, true);
    f->over++;
    if (f->free_in_handler)
        f->hold = hold_free(h);
}

static void fixture_init(struct fixture *f) {
    *f = (struct fixture) {.directory = "/tmp/test-hold-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f->directory));
    TEST_INT(sd_event_new(&f->event), 0);
    f->handler = (struct hold_handler) {.on_over = on_over, .userdata = f};
}

static void fixture_done(struct fixture *f) {
    f->hold = hold_free(f->hold);
    sd_event_unref(f->event);
    TEST_INT(rmdir(f->directory), 0); /* nothing is left */
}

static const char *path_of(const struct fixture *f, const char *name) {
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->directory, name);
    return path;
}

static bool exists(const struct fixture *f, const char *name) {
    return access(path_of(f, name), F_OK) == 0;
}

/* Everything that is to happen by now. */
static void settle(struct fixture *f) {
    while (sd_event_run(f->event, 0) > 0)
        ;
}

/* Until it is over, or 5 s. */
static void await_over(struct fixture *f) {
    usec_t end = clock_boottime() + 5 * USEC_PER_SEC;

    while (f->over == 0 && clock_boottime() < end)
        (void) sd_event_run(f->event, 100 * USEC_PER_MSEC);
    TEST_INT(f->over, 1);
}

static void write_record(struct message_writer *w, const char *run, const char *token) {
    message_begin(w, "hold");
    message_put(w, "run", run);
    message_put(w, "token", token);
}

/* Returns the write end. */
static int begin(struct fixture *f) {
    struct message_writer w;
    int fd = -1;

    write_record(&w, RUN, "1");
    TEST_INT(hold_new(&f->hold, f->event, f->directory, RUN, &w, &f->handler, &fd), 0);
    TEST_INT(fd >= 0, true);
    TEST_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    return fd;
}

/* A command: lives until its own pipe is closed. */
static pid_t command_start(int *ret_end, int also_holds) {
    int fds[2], ready[2];
    pid_t pid;
    char c;

    TEST_INT(pipe2(fds, O_CLOEXEC), 0);
    TEST_INT(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        for (int fd = 3; fd < 64; fd++)
            if (fd != fds[0] && fd != also_holds)
                close(fd);
        while (read(fds[0], &c, 1) < 0)
            ;
        _exit(0);
    }
    close(fds[0]);
    close(ready[1]);
    TEST_INT(read(ready[0], &c, 1), 0); /* it has closed what it does not hold */
    close(ready[0]);
    *ret_end = fds[1];
    return pid;
}

static void command_end(pid_t pid, int end) {
    close(end);
    TEST_INT(waitpid(pid, NULL, 0), pid);
}

static struct message gathered;
static unsigned n_gathered;

static void on_found(const char *run, const struct message *record, void *userdata) {
    (void) userdata;
    n_gathered++;
    TEST_STRING(run, RUN);
    TEST_STRING(message_get(record, "run"), RUN);
}

/* What a restarted berthd finds; the record is read once more, because the one shown is gone after the call. */
static unsigned gather(struct fixture *f) {
    _cleanup_free_ char *text = NULL;
    size_t size;

    n_gathered = 0;
    TEST_INT(hold_gather(f->directory, on_found, NULL), 0);
    if (n_gathered > 0 && file_read(path_of(f, RUN ".claim"), 8192, &text, &size) == 0)
        TEST_INT(message_parse(&gathered, text, size), 0);
    return n_gathered;
}

static void reopen(struct fixture *f) {
    f->hold = hold_detach(f->hold);
    TEST_INT(exists(f, RUN), true);
    CU_ASSERT_EQUAL_FATAL(gather(f), 1);
    TEST_INT(hold_open(&f->hold, f->event, f->directory, RUN, &gathered, &f->handler), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->hold);
}

static void test_writer_closes(void) {
    struct fixture f;
    int fd;

    fixture_init(&f);
    fd = begin(&f);
    settle(&f);
    TEST_INT(f.over, 0);
    TEST_INT(exists(&f, RUN) && exists(&f, RUN ".claim"), true);
    close(fd);
    settle(&f);
    TEST_INT(f.over, 1);
    f.hold = hold_free(f.hold);
    TEST_INT(exists(&f, RUN) || exists(&f, RUN ".claim"), false);
    fixture_done(&f);
}

static void test_freed_in_handler(void) {
    struct fixture f;

    fixture_init(&f);
    f.free_in_handler = true;
    close(begin(&f));
    settle(&f);
    TEST_INT(f.over, 1);
    CU_ASSERT_PTR_NULL(f.hold);
    fixture_done(&f);
}

static void test_last_writer_counts(void) {
    struct fixture f;
    int fd, second;

    fixture_init(&f);
    fd = begin(&f);
    second = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    settle(&f);
    TEST_INT(f.over, 0);
    close(second);
    settle(&f);
    TEST_INT(f.over, 1);
    fixture_done(&f);
}

static void test_command_writes(void) {
    char block[4096] = "";
    struct fixture f;
    int fd, n;

    fixture_init(&f);
    fd = begin(&f);
    for (n = 0; write(fd, block, sizeof(block)) > 0; n++)
        ;
    TEST_INT(n > 0 && errno == EAGAIN, true);
    settle(&f); /* thrown away: ends, and does not spin */
    TEST_INT(f.over, 0);
    TEST_INT(write(fd, block, sizeof(block)), sizeof(block));
    close(fd);
    settle(&f);
    TEST_INT(f.over, 1);
    fixture_done(&f);
}

static void test_command_outlives_fifo(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0);
    close(fd);
    settle(&f);
    TEST_INT(f.over, 0);
    command_end(pid, end);
    await_over(&f);
    fixture_done(&f);
}

static void test_fifo_outlives_command(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0);
    command_end(pid, end);
    settle(&f);
    TEST_INT(f.over, 0);
    close(fd);
    settle(&f);
    TEST_INT(f.over, 1);
    fixture_done(&f);
}

static void test_command_inherits(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, fd);
    close(fd); /* `berth run` was killed, nobody told the pid: the command has it still */
    settle(&f);
    TEST_INT(f.over, 0);
    command_end(pid, end);
    await_over(&f);
    fixture_done(&f);
}

static void test_no_such_command(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    command_end(pid, end);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), -ESRCH);
    TEST_INT(hold_watch_command(f.hold, getpid(), 0), -EINVAL);
    TEST_INT(hold_watch_command(f.hold, getpid(), 1), -EINVAL);
    TEST_INT(hold_watch_command(f.hold, getpid(), -5), -EINVAL);
    close(fd); /* the FIFO alone decides */
    settle(&f);
    TEST_INT(f.over, 1);
    TEST_INT(hold_watch_command(f.hold, getpid(), getpid()), -ESRCH);
    fixture_done(&f);
}

/* A client can make the hold of its own processes longer, not lend it to somebody else's. */
static void test_stranger(void) {
    struct fixture f;
    int fd, end, other_end;
    pid_t client, stranger;

    fixture_init(&f);
    fd = begin(&f);
    client = command_start(&end, -1);
    stranger = command_start(&other_end, -1);
    TEST_INT(hold_watch_command(f.hold, client, stranger), -EPERM);
    TEST_INT(hold_watch_command(f.hold, client, getpid()), -EPERM);
    close(fd);
    settle(&f);
    TEST_INT(f.over, 1);
    command_end(client, end);
    command_end(stranger, other_end);
    fixture_done(&f);
}

static void test_zombie_is_gone(void) {
    struct fixture f;
    siginfo_t info;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    close(end);
    TEST_INT(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), -ESRCH);
    close(fd);
    settle(&f);
    TEST_INT(f.over, 1);
    TEST_INT(waitpid(pid, NULL, 0), pid);
    fixture_done(&f);
}

static void test_restart_with_writer(void) {
    struct fixture f;
    int fd;

    fixture_init(&f);
    fd = begin(&f);
    reopen(&f);
    TEST_STRING(message_get(&gathered, "token"), "1");
    settle(&f);
    TEST_INT(f.over, 0);
    close(fd);
    settle(&f);
    TEST_INT(f.over, 1);
    fixture_done(&f);
}

static void test_restart_without_writer(void) {
    struct fixture f;
    int fd;

    fixture_init(&f);
    fd = begin(&f);
    f.hold = hold_detach(f.hold);
    close(fd); /* while no berthd was there: poll() alone would never tell */
    CU_ASSERT_EQUAL_FATAL(gather(&f), 1);
    TEST_INT(hold_open(&f.hold, f.event, f.directory, RUN, &gathered, &f.handler), 0);
    TEST_INT(f.over, 0); /* not in the call */
    settle(&f);
    TEST_INT(f.over, 1);
    fixture_done(&f);
}

static void test_restart_with_command(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0);
    close(fd);
    reopen(&f);
    reopen(&f); /* its identity is kept over the second restart, too */
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0); /* told once more by the client that came back */
    reopen(&f);
    settle(&f);
    TEST_INT(f.over, 0);
    command_end(pid, end);
    await_over(&f);
    fixture_done(&f);
}

static void test_restart_after_command(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0);
    f.hold = hold_detach(f.hold);
    command_end(pid, end);
    CU_ASSERT_EQUAL_FATAL(gather(&f), 1);
    TEST_INT(hold_open(&f.hold, f.event, f.directory, RUN, &gathered, &f.handler), 0);
    settle(&f);
    TEST_INT(f.over, 0); /* the FIFO is held */
    close(fd);
    settle(&f);
    TEST_INT(f.over, 1);
    fixture_done(&f);
}

/* The record with one field replaced, as if another process had the pid now, or another boot had written it. */
static void tamper(struct fixture *f, const char *key, const char *value) {
    struct message_writer w;

    CU_ASSERT_EQUAL_FATAL(gather(f), 1);
    message_begin(&w, gathered.verb);
    for (size_t i = 0; i < gathered.n_fields; i++)
        message_put(&w, gathered.fields[i].key, strcmp(gathered.fields[i].key, key) == 0 ? value : gathered.fields[i].value);
    TEST_INT(w.error, 0);
    TEST_INT(file_write_atomic(path_of(f, RUN ".claim"), w.text, w.size, 0600), 0);
}

/* What went wrong elsewhere: hashicorp/nomad#23969. */
static void test_reused_pid(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0);
    f.hold = hold_detach(f.hold);
    close(fd);
    tamper(&f, "command-start", "12345"); /* the pid lives, but began at another time */
    CU_ASSERT_EQUAL_FATAL(gather(&f), 1);
    TEST_INT(hold_open(&f.hold, f.event, f.directory, RUN, &gathered, &f.handler), 0);
    settle(&f);
    TEST_INT(f.over, 1);
    command_end(pid, end);
    fixture_done(&f);
}

static void test_other_boot(void) {
    struct fixture f;
    int fd;

    fixture_init(&f);
    fd = begin(&f);
    f.hold = hold_detach(f.hold);
    tamper(&f, "boot", OTHER);
    TEST_INT(gather(&f), 0); /* nothing of it can be alive */
    TEST_INT(exists(&f, RUN) || exists(&f, RUN ".claim"), false);
    close(fd);
    fixture_done(&f);
}

static void test_write_record(void) {
    struct message_writer w;
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0);
    write_record(&w, RUN, "2");
    TEST_INT(hold_write_record(f.hold, &w), 0);
    reopen(&f);
    TEST_STRING(message_get(&gathered, "token"), "2");
    close(fd);
    settle(&f);
    TEST_INT(f.over, 0); /* the new record did not forget the command */
    command_end(pid, end);
    await_over(&f);
    message_put(&w, "Wrong Key", "x");
    TEST_INT(hold_write_record(f.hold, &w), w.error);
    TEST_INT(w.error < 0, true);
    fixture_done(&f);
}

static void touch(const struct fixture *f, const char *name, const char *text) {
    TEST_INT(file_write_atomic(path_of(f, name), text, strlen(text), 0600), 0);
}

static void test_debris(void) {
    struct fixture f;
    _cleanup_free_ char *text = NULL;
    size_t size;
    int fd;

    fixture_init(&f);
    fd = begin(&f);
    TEST_INT(mkfifo(path_of(&f, OTHER), 0600), 0); /* a FIFO without a record */
    TEST_INT(file_read(path_of(&f, RUN ".claim"), 8192, &text, &size), 0);
    touch(&f, "0000000000000000000000000000000d.claim", text); /* another run's */
    touch(&f, "0000000000000000000000000000000a.claim", "no message");
    touch(&f, "0000000000000000000000000000000b.claim", "hold\nrun=0000000000000000000000000000000b\n"); /* of no boot */
    touch(&f, "0000000000000000000000000000000c.claim", "");
    touch(&f, "something", "else");
    touch(&f, ".claim", "else");
    TEST_INT(gather(&f), 1);
    TEST_INT(exists(&f, OTHER) || exists(&f, "0000000000000000000000000000000a.claim") ||
                 exists(&f, "0000000000000000000000000000000b.claim") || exists(&f, "0000000000000000000000000000000c.claim") ||
                 exists(&f, "0000000000000000000000000000000d.claim") || exists(&f, "something") || exists(&f, ".claim"),
             false);
    TEST_INT(exists(&f, RUN) && exists(&f, RUN ".claim"), true);
    close(fd);
    fixture_done(&f);
}

static void test_no_directory(void) {
    struct message_writer w;
    struct fixture f;
    int fd = 4711;

    fixture_init(&f);
    write_record(&w, RUN, "1");
    TEST_INT(hold_new(&f.hold, f.event, "/nonexistent", RUN, &w, &f.handler, &fd), -ENOENT);
    TEST_INT(hold_new(&f.hold, f.event, f.directory, "../../etc/passwd", &w, &f.handler, &fd), -EINVAL);
    message_put(&w, "Wrong Key", "x");
    TEST_INT(hold_new(&f.hold, f.event, f.directory, RUN, &w, &f.handler, &fd), w.error);
    TEST_INT(exists(&f, RUN), false); /* no file is left */
    TEST_INT(fd, 4711);
    CU_ASSERT_PTR_NULL(f.hold);
    TEST_INT(hold_gather("/nonexistent", on_found, NULL), 0);
    fixture_done(&f);
}

static void test_lost_fifo(void) {
    struct fixture f;
    int fd, end;
    pid_t pid;

    fixture_init(&f);
    fd = begin(&f);
    pid = command_start(&end, -1);
    TEST_INT(hold_watch_command(f.hold, getpid(), pid), 0);
    TEST_INT(unlink(path_of(&f, RUN)), 0); /* somebody cleaned up: the command alone decides */
    f.hold = hold_detach(f.hold);
    CU_ASSERT_EQUAL_FATAL(gather(&f), 1);
    TEST_INT(hold_open(&f.hold, f.event, f.directory, RUN, &gathered, &f.handler), 0);
    settle(&f);
    TEST_INT(f.over, 0);
    command_end(pid, end);
    await_over(&f);
    close(fd);
    fixture_done(&f);
}

static void test_no_fifo_at_all(void) {
    struct fixture f;
    int fd;

    fixture_init(&f);
    fd = begin(&f);
    f.hold = hold_detach(f.hold);
    CU_ASSERT_EQUAL_FATAL(gather(&f), 1);
    TEST_INT(unlink(path_of(&f, RUN)), 0);
    touch(&f, RUN, "not a FIFO");
    TEST_INT(hold_open(&f.hold, f.event, f.directory, RUN, &gathered, &f.handler), -ENOTSUP);
    TEST_INT(unlink(path_of(&f, RUN)), 0);
    TEST_INT(unlink(path_of(&f, RUN ".claim")), 0);
    close(fd);
    fixture_done(&f);
}

static void test_same_run_twice(void) {
    struct message_writer w;
    struct fixture f;
    struct hold *second = NULL;
    int fd, other = -1;

    fixture_init(&f);
    fd = begin(&f);
    write_record(&w, RUN, "9");
    TEST_INT(hold_new(&second, f.event, f.directory, RUN, &w, &f.handler, &other), -EEXIST);
    TEST_INT(exists(&f, RUN) && exists(&f, RUN ".claim"), true); /* the first one's files are not touched */
    close(fd);
    fixture_done(&f);
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
    {"restart with writer", test_restart_with_writer},
    {"restart without writer", test_restart_without_writer},
    {"restart with command", test_restart_with_command},
    {"restart after command", test_restart_after_command},
    {"reused pid", test_reused_pid},
    {"other boot", test_other_boot},
    {"write record", test_write_record},
    {"debris", test_debris},
    {"no directory", test_no_directory},
    {"lost fifo", test_lost_fifo},
    {"no fifo at all", test_no_fifo_at_all},
    {"same run twice", test_same_run_twice},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "hold", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
