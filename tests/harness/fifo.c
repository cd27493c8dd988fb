/* SPDX-License-Identifier: MIT */
#include "tests/harness/fifo.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/harness/test.h"

/* No test needs as many turns of the loop: a source that is always ready would keep it busy for ever. */
#define TURNS_MAX 100

struct fifo fifo;

/* --- the hold --- */

static void on_over(struct hold *h, _unused_ void *userdata) {
    TEST_INT(h == fifo.hold, true);
    fifo.over++;
    if (fifo.free_in_handler)
        fifo.hold = hold_free(h);
}

void fifo_up(void) {
    fifo = (struct fifo) {.directory = "/tmp/test-hold-XXXXXX", .handler = {.on_over = on_over}};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(fifo.directory));
    TEST_INT(sd_event_new(&fifo.event), 0);
}

void fifo_down(void) {
    fifo.hold = hold_free(fifo.hold);
    fifo.event = sd_event_unref(fifo.event);
    TEST_INT(rmdir(fifo.directory), 0); /* nothing is left */
}

const char *fifo_path(const char *name) {
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", fifo.directory, name);
    return path;
}

bool fifo_exists(const char *name) {
    return access(fifo_path(name), F_OK) == 0;
}

void fifo_expect_over(unsigned n) {
    unsigned turns = 0;

    while (turns < TURNS_MAX && sd_event_run(fifo.event, 0) > 0)
        turns++;
    TEST_INT(turns < TURNS_MAX, true);
    TEST_INT(fifo.over, n);
}

void fifo_await_over(void) {
    usec_t end = clock_boottime() + 5 * USEC_PER_SEC;

    while (fifo.over == 0 && clock_boottime() < end)
        (void) sd_event_run(fifo.event, 100 * USEC_PER_MSEC);
    TEST_INT(fifo.over, 1);
}

void fifo_record(struct message_writer *w, const char *token) {
    message_begin(w, "hold");
    message_put(w, "run", FIFO_RUN);
    message_put(w, "token", token);
}

int fifo_begin(void) {
    struct message_writer w;
    int fd = -1;

    fifo_record(&w, "1");
    TEST_INT(hold_new(&fifo.hold, fifo.event, fifo.directory, FIFO_RUN, &w, &fifo.handler, &fd), 0);
    TEST_INT(fd >= 0, true);
    TEST_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    return fd;
}

int fifo_begin_with_command(pid_t *ret_pid, int *ret_end) {
    struct message_writer w;
    int fd = fifo_begin();

    fifo_record(&w, "1");
    *ret_pid = command_start(ret_end, -1);
    TEST_INT(hold_watch_command(fifo.hold, getpid(), *ret_pid), 0);
    TEST_INT(hold_write_record(fifo.hold, &w), 0);
    return fd;
}

/* --- its command --- */

pid_t command_start(int *ret_end, int also_holds) {
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
    TEST_INT(read(ready[0], &c, 1), 0); /* the child has closed all it does not hold */
    close(ready[0]);
    *ret_end = fds[1];
    return pid;
}

void command_end(pid_t pid, int end) {
    close(end);
    TEST_INT(waitpid(pid, NULL, 0), pid);
}

/* --- what a restarted berthd finds --- */

static unsigned n_found;

static void on_found(const char *run, const struct message *record, _unused_ void *userdata) {
    n_found++;
    TEST_STRING(run, FIFO_RUN);
    TEST_STRING(message_get(record, "run"), FIFO_RUN);
}

/* Reads the record again, because it is valid only during the call. */
unsigned fifo_recover(void) {
    _cleanup_free_ char *text = NULL;
    size_t size;

    n_found = 0;
    TEST_INT(hold_recover(fifo.directory, on_found, NULL), 0);
    if (n_found > 0 && file_read(fifo_path(FIFO_RUN ".claim"), 8192, &text, &size) == 0)
        TEST_INT(message_parse(&fifo.found, text, size), 0);
    return n_found;
}

void fifo_open(void) {
    CU_ASSERT_EQUAL_FATAL(fifo_recover(), 1);
    TEST_INT(hold_open(&fifo.hold, fifo.event, fifo.directory, FIFO_RUN, &fifo.found, &fifo.handler), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fifo.hold);
}

void fifo_reopen(void) {
    fifo.hold = hold_detach(fifo.hold);
    TEST_INT(fifo_exists(FIFO_RUN), true);
    fifo_open();
}
