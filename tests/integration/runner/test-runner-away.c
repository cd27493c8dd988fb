/* SPDX-License-Identifier: MIT */

/* Runs end while berthd, or also berth-runner, is down: their reports wait for the next berthd. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

static struct test_runner t;
static struct message m; /* large */

/* Ends the job that waits for its FIFO. */
static void let_go(void) {
    _cleanup_fclose_ FILE *go = NULL;
    char path[80];

    snprintf(path, sizeof(path), "%s/go", t.directory);
    CU_ASSERT_FATAL((go = fopen(path, "w")) != NULL && fputs("\n", go) >= 0);
}

static void make_fifo(void) {
    char path[80];

    snprintf(path, sizeof(path), "%s/go", t.directory);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
}
#define WAITS TEST_SH("waits", "read x <@/go; exit 4")

static void hello_brings_report(void) {
    test_runner_connect_again(&t);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "code", "4");
    test_await(t.fd, &m, PROTOCOL_RECOVERED);
}

static void test_all_away(void) {
    _cleanup_close_ int pidfd = -1;
    struct pollfd p = {.events = POLLIN};

    test_runner_init(&t, WAITS, getuid());
    make_fifo();
    test_runner_join(&t);
    test_runner_begin_run(&t, &m, '1', "waits");
    p.fd = pidfd = pidfd_open(test_runner_guard_pid(&t, &m, '1'), 0);
    test_runner_end(&t, SIGTERM);
    test_await_end(t.fd);
    let_go();
    test_runner_await_file(&t, '1', ".report");
    CU_ASSERT(poll(&p, 1, 10000) == 1); /* else the runner would report the guard as well */
    test_runner_start(&t);
    hello_brings_report();
    hello_brings_report(); /* again, until berthd sends "forget" */
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_settle(&t);
    CU_ASSERT(!test_runner_has_file(&t, '1', ".report"));
    test_runner_join(&t);
    test_runner_done(&t);
}

static void test_berthd_away(void) {
    bool is_reported = false;

    test_runner_init(&t, WAITS, getuid());
    make_fifo();
    test_runner_join(&t);
    test_runner_begin_run(&t, &m, '1', "waits");
    t.fd = close_fd(t.fd);
    let_go();
    test_runner_await_file(&t, '1', ".report");
    test_runner_connect_again(&t);
    /* The guard may still be ending, so the runner may list it as well. */
    for (int i = 0; i < 3 && !(is_reported && message_is(&m, PROTOCOL_RECOVERED)); i++) {
        int r;

        while ((r = message_receive(t.fd, &m)) == -EAGAIN)
            ;
        TEST_INT(r, 0);
        is_reported = is_reported || message_is(&m, PROTOCOL_REPORT);
    }
    CU_ASSERT(is_reported && message_is(&m, PROTOCOL_RECOVERED));
    test_runner_done(&t);
}

#define MANY 5000

/* berthd gets all reports, although it reads none before the runner has sent all. */
static void test_many_reports(void) {
    struct pollfd p = {.events = POLLIN};
    unsigned n = 0;
    int r = 0;

    test_runner_begin(&t, TEST_SH("a", "exit 0"), getuid());
    t.fd = close_fd(t.fd);
    for (unsigned i = 0; i < MANY; i++) {
        char path[160], id[ID_TEXT_SIZE];
        struct message_writer w;

        snprintf(id, sizeof(id), "%032x", i);
        message_begin(&w, PROTOCOL_REPORT);
        message_put(&w, "run", id);
        message_put(&w, "reason", "none");
        snprintf(path, sizeof(path), "%s/run/runner/runs/%s.report", t.directory, id);
        CU_ASSERT_EQUAL_FATAL(file_write_atomic(path, w.text, w.size, 0600), 0);
    }
    p.fd = t.fd = test_runner_connect(&t);
    test_say(t.fd, PROTOCOL_HELLO, "version", "1");
    do {
        CU_ASSERT_EQUAL_FATAL(poll(&p, 1, 10000), 1);
        r = message_receive(t.fd, &m);
        n += r == 0 && message_is(&m, PROTOCOL_REPORT);
    } while (r == 0 && !message_is(&m, PROTOCOL_RECOVERED));
    TEST_INT(r, 0);
    TEST_INT(n, MANY);
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"many reports", test_many_reports},
    {"all away", test_all_away},
    {"berthd away", test_berthd_away},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "runner-away", .pTests = tests});
