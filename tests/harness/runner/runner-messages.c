/* SPDX-License-Identifier: MIT */

/* The messages between berth-runner, its guards and a test in the place of berthd. */

#include "tests/harness/runner/runner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/protocol.h"
#include "base/socket.h"
#include "conf/settings.h"
#include "tests/harness/test.h"

void test_await_any(int fd, struct message *m) {
    int r;

    while ((r = message_receive(fd, m)) == -EAGAIN)
        if (!test_runner_wait_for(fd, POLLIN)) {
            CU_FAIL_FATAL("no message came");
        }
    TEST_INT(r, 0);
    CU_ASSERT_FATAL(r == 0);
}

void test_await(int fd, struct message *m, const char *verb) {
    test_await_any(fd, m);
    TEST_STRING(m->verb, verb);
    CU_ASSERT_FATAL(strcmp(m->verb, verb) == 0);
}

uint64_t test_number(const struct message *m, const char *key) {
    uint64_t value = 0;

    TEST_INT(message_get_u64(m, key, &value), 0);
    return value;
}

void test_runner_begin_run(struct test_runner *t, struct message *m, char run, const char *job) {
    test_runner_send_start(t, run, job);
    test_await(t->fd, m, PROTOCOL_STARTING);
    TEST_FIELD(m, "run", test_runner_id(run));
}

void test_runner_run(struct test_runner *t, struct message *m, char run, const char *job) {
    test_runner_begin_run(t, m, run, job);
    test_await(t->fd, m, PROTOCOL_REPORT);
    TEST_FIELD(m, "run", test_runner_id(run));
    test_say(t->fd, PROTOCOL_FORGET, "run", test_runner_id(run));
}

void test_runner_prints(struct test_runner *t, struct message *m, const char *job, const char *expected) {
    _cleanup_free_ char *text = NULL;
    char name[40];

    test_runner_run(t, m, '1', job);
    TEST_FIELD(m, "errno", NULL);
    TEST_FIELD(m, "code", "0");
    snprintf(name, sizeof(name), "%s.out", job);
    text = test_runner_read(t, name);
    TEST_STRING(text, expected);
}

void test_runner_fails(struct test_runner *t, struct message *m, const char *job, int error, const char *stage) {
    test_runner_run(t, m, '1', job);
    TEST_INT(test_number(m, "errno"), error);
    TEST_FIELD(m, "stage", stage);
    TEST_FIELD(m, "code", NULL);
    TEST_FIELD(m, "started", NULL);
}

bool test_runner_has_file(struct test_runner *t, char run, const char *suffix) {
    char name[80];

    snprintf(name, sizeof(name), "run/runner/runs/%s%s", test_runner_id(run), suffix);
    return test_runner_has(t, name);
}

void test_runner_settle(struct test_runner *t) {
    struct message m;

    test_say(t->fd, PROTOCOL_KILL, "run", test_runner_id('e'));
    test_await(t->fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('e'));
}

void test_await_end(int fd) {
    struct message m;
    int r;

    while ((r = message_receive(fd, &m)) == -EAGAIN)
        if (!test_runner_wait_for(fd, POLLIN)) {
            CU_FAIL_FATAL("the connection was not closed");
        }
    TEST_INT(r, -ENOTCONN);
}

void test_say(int fd, const char *verb, const char *key, const char *value) {
    struct message_writer w;

    message_begin(&w, verb);
    if (key)
        message_put(&w, key, value);
    TEST_INT(message_send(fd, &w), 0);
}

static int connect_to(struct test_runner *t, const char *name) {
    int fd = socket_connect(test_runner_path(t, name), SOCK_SEQPACKET);

    CU_ASSERT_FATAL(fd >= 0);
    return fd;
}

void test_runner_cannot_connect(struct test_runner *t, const char *name) {
    TEST_INT(socket_connect(test_runner_path(t, name), SOCK_SEQPACKET), -EACCES);
}

void test_runner_open_up(struct test_runner *t, const char *name) {
    TEST_INT(chmod(test_runner_path(t, name), 0666), 0);
}

int test_runner_connect(struct test_runner *t) {
    return connect_to(t, "run/" PROTOCOL_RUNNER_SOCKET);
}

void test_runner_hello(_unused_ struct test_runner *t, int fd) {
    struct message m;

    test_say(fd, PROTOCOL_HELLO, "version", "1");
    test_await(fd, &m, PROTOCOL_HELLO);
    TEST_FIELD(&m, "version", "1");
}

void test_runner_connect_again(struct test_runner *t) {
    close_fd(t->fd);
    t->fd = test_runner_connect(t);
    test_runner_hello(t, t->fd);
}

void test_runner_join(struct test_runner *t) {
    struct message m;

    test_runner_connect_again(t);
    test_await(t->fd, &m, PROTOCOL_RECOVERED);
}

const char *test_runner_id(char run) {
    static char id[ID_TEXT_SIZE];

    /* Of this program alone: cgroups are named after runs, and other tests run at the same time. */
    if (!id[0])
        id_make(id);
    id[0] = run;
    return id;
}

const char *test_runner_hash(struct test_runner *t, const char *job) {
    _cleanup_(settings_freep) struct settings *settings = NULL;
    const struct job_settings *found;
    struct settings_errors errors = {0};
    static char hash[17];
    const char *path = test_runner_path(t, "berth.conf");
    int r;

    CU_ASSERT_FATAL(seteuid(t->uid) == 0); /* as the runner, whose directory it is */
    r = settings_load(path, &settings, &errors);
    CU_ASSERT_FATAL(seteuid(getuid()) == 0);
    for (size_t i = 0; i < errors.n; i++)
        puts(errors.lines[i]);
    settings_errors_done(&errors);
    CU_ASSERT_FATAL(r == 0);
    found = settings_find_job(settings, job);
    CU_ASSERT_FATAL(found != NULL);
    memcpy(hash, found->hash, sizeof(hash));
    return hash;
}

void test_runner_begin_start(struct message_writer *w, char run, const char *job, const char *hash) {
    message_begin(w, PROTOCOL_START);
    message_put(w, "run", test_runner_id(run));
    message_put(w, "job", job);
    message_put(w, "hash", hash);
    message_put_u64(w, "token", 1763640079123456);
    message_put_u64(w, "ticket", 1763640079123455);
    message_put(w, "pools", "db:2,net:1");
    message_put(w, "scopes", "cc");
    message_put(w, "namespace", "n");
    message_put(w, "host", "h");
    message_put_u64(w, "queued", 1763640079123000);
    message_put_u64(w, "queued-boot", 1000000);
}

void test_runner_send_start(struct test_runner *t, char run, const char *job) {
    struct message_writer w;

    test_runner_begin_start(&w, run, job, test_runner_hash(t, job));
    TEST_INT(message_send(t->fd, &w), 0);
}

int test_runner_guard(struct test_runner *t, char run) {
    char name[80];

    snprintf(name, sizeof(name), "run/%s/%s%s", PROTOCOL_RUNS, test_runner_id(run), PROTOCOL_SOCKET_SUFFIX);
    return connect_to(t, name);
}

pid_t test_runner_guard_pid(struct test_runner *t, struct message *m, char run) {
    _cleanup_close_ int guard = test_runner_guard(t, run);

    test_await(guard, m, PROTOCOL_STATE);
    return (pid_t) test_number(m, "guard");
}

void test_runner_start_until(struct test_runner *t, struct message *m, char run, const char *job, usec_t deadline) {
    struct message_writer w;

    test_runner_begin_start(&w, run, job, test_runner_hash(t, job));
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(t->fd, &w), 0);
    test_await(t->fd, m, PROTOCOL_STARTING);
}

bool test_runner_is_clean(struct test_runner *t) {
    return !test_runner_has_file(t, '1', ".sock") && !test_runner_has_file(t, '1', ".guard") &&
           !test_runner_has_file(t, '1', ".report");
}

int test_guard_join(struct test_runner *t, struct message *m, char run, const char *output) {
    int guard = test_runner_guard(t, run);

    free(test_runner_read(t, output));
    test_await(guard, m, PROTOCOL_STATE);
    if (!message_get(m, "pid"))
        test_await(guard, m, PROTOCOL_STARTED);
    return guard;
}

void test_guard_set_deadline(int guard, usec_t deadline) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_DEADLINE);
    if (deadline != USEC_INFINITY)
        message_put_u64(&w, "deadline", deadline);
    TEST_INT(message_send(guard, &w), 0);
}

void test_guard_finish(int guard) {
    test_say(guard, PROTOCOL_DONE, NULL, NULL);
    test_await_end(guard);
}
