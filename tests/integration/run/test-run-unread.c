/* SPDX-License-Identifier: MIT */

/* Nobody reads the standard error of `berth run`, as on a stopped terminal or behind a pager. The command starts and is stopped as
 * always, and its permits are free then. The messages come when somebody reads. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

static struct host *ant;
static char path[96];
static int fifo = -1;

/* Makes a FIFO that is full. */
static void up(void) {
    char filling[4096];

    memset(filling, '.', sizeof(filling));
    cluster_up();
    ant = host_up("ant", "pool \"db\" { limit = 1 }\n");
    snprintf(path, sizeof(path), "%s/errors", ant->runtime);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
    fifo = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    CU_ASSERT_FATAL(fifo >= 0);
    while (write(fifo, filling, sizeof(filling)) > 0)
        ;
}

static void down(void) {
    close(fifo);
    cluster_down();
}

/* Starts `berth run OPTIONS` with the FIFO as its standard error. */
static struct child *start(const char *options, const char *command) {
    char program[512], text[1024];
    char *const argv[] = {(char[]) {"sh"}, (char[]) {"-c"}, text, NULL};

    snprintf(text, sizeof(text), "exec %s --socket %s run -p db %s -- %s 2>%s", place_program(program, sizeof(program), "berth"), ant->socket, options, command, path);
    return host_spawn(ant, argv, NULL);
}

/* Reads the FIFO until `berth run` has ended. Its messages follow the filling. */
static void expect_messages(struct child *c, int status, const char *messages) {
    static char text[1 << 20];
    size_t size = 0;
    ssize_t n;

    for (bool ended = false; !ended;) {
        ended = child_await(c, 20 * USEC_PER_MSEC);
        while ((n = read(fifo, text + size, sizeof(text) - 1 - size)) > 0)
            size += (size_t) n;
    }
    text[size] = '\0';
    TEST_INT(c->exit_code, status);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, messages));
    child_free(c);
}

static void starts_and_times_out(void) {
    struct child *c = start("-v --timeout 300ms --name unread", "sleep 60");

    host_await(ant, "started", "job=unread");
    host_await(ant, "exited", "job=unread result=timeout");
    host_await(ant, "released", "job=unread");
    TEST_INT(berth(ant, "run -n -p db -- true"), 0);
    CU_ASSERT(!child_await(c, 100 * USEC_PER_MSEC));
    expect_messages(c, 124, "berth: stopped after its timeout of 300ms\n");
}

static void can_be_interrupted(void) {
    struct child *c = start("-v --name short", "true");

    host_await(ant, "released", "job=short");
    CU_ASSERT(!child_await(c, 100 * USEC_PER_MSEC));
    child_kill(c, SIGTERM);
    CU_ASSERT_FATAL(child_await(c, 10 * USEC_PER_SEC));
    TEST_INT(c->signal, SIGTERM);
    child_free(c);
}

static CU_TestInfo tests[] = {
    {"starts and times out", starts_and_times_out},
    {"can be interrupted", can_be_interrupted},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "unread", .pTests = tests, .pSetUpFunc = up, .pTearDownFunc = down});
