/* SPDX-License-Identifier: MIT */

/* Malformed, oversized, slow and half-closed control clients hurt nobody else: while they are connected and after, `berth` works. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 1 }\n"

static struct host *ant;

static void up(void) {
    cluster_up_patient();
    ant = host_up("ant", POOLS);
}

static int client(void) {
    int fd = socket_connect(ant->socket, SOCK_STREAM);

    TEST_FATAL(fd >= 0, "no control socket");
    return fd;
}

static void others_work(void) {
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0);
    host_await_pool(ant, "db", "used", 0);
}

/* What is answered until nothing comes for a moment or the connection ends; whether it ended. */
static bool read_answer(int fd, char *answer, size_t size, int wait_msec) {
    size_t n = 0;
    ssize_t got;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, wait_msec) <= 0)
            break;
        got = read(fd, answer + n, size - 1 - n);
        if (got <= 0 && !(got < 0 && errno == EAGAIN)) {
            answer[n] = '\0';
            return true;
        }
        n += got > 0 ? (size_t) got : 0;
        if (n > 0 && answer[n - 1] == '\0')
            break;
    }
    answer[n] = '\0';
    return false;
}

static void nonsense(void) {
    static const struct {
        const char *text;
        size_t size; /* with the NUL that ends a message */
    } messages[] = {
#define MESSAGE(text) {text, sizeof(text)}
        MESSAGE(""), MESSAGE("GET / HTTP/1.1\r\n\r\n"), MESSAGE("{"), MESSAGE("[]"), MESSAGE("null"), MESSAGE("{}"), MESSAGE("{\"method\": 1}"),
        MESSAGE("{\"method\": \"\"}"), MESSAGE("{\"method\": \"io.berth\"}"), MESSAGE("{\"method\": \"io.berth.Nonsense\"}"),
        MESSAGE("{\"method\": \"io.berth.Start\"}"), MESSAGE("{\"method\": \"io.berth.Start\", \"parameters\": []}"),
        MESSAGE("{\"method\": \"io.berth.Start\", \"parameters\": {\"job\": 7}}"),
        MESSAGE("{\"method\": \"io.berth.Start\", \"parameters\": {\"job\": \"a b\"}}"),
        MESSAGE("{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": \"db\", \"name\": \"x\"}, \"more\": true}"),
        MESSAGE("{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": [\"d{b\"], \"name\": \"x\"}, \"more\": true}"),
        MESSAGE("{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": [], \"name\": \"x\"}, \"more\": true}"),
        MESSAGE("{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": [\"db:-1\"], \"name\": \"x\"}, \"more\": true}"),
        MESSAGE("{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": [\"db\"], \"name\": \"a\\nb\"}, \"more\": true}"),
        MESSAGE("{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": [\"db\"], \"name\": \"x\"}}"), /* without "more" */
        MESSAGE("{\"method\": \"io.berth.SetLimit\", \"parameters\": {\"pool\": \"db\", \"limit\": -1}}"),
        MESSAGE("{\"method\": \"io.berth.SetLimit\", \"parameters\": {\"pool\": \"db\", \"limit\": 1e99}}"),
        MESSAGE("{\"method\": \"io.berth.Revoke\", \"parameters\": {\"claim\": \"../../etc/passwd\"}}"),
        MESSAGE("{\"method\": \"io.berth.Started\", \"parameters\": {\"run\": \"x\", \"pid\": 1}, \"oneway\": true}"),
        MESSAGE("\xff\xfe\xfd"), MESSAGE("{\"method\": \"io.berth.Start\", \"parameters\": {\"job\": \"\\u0000\"}}"),
    };
    char answer[65536];

    for (size_t i = 0; i < ELEMENTSOF(messages); i++) {
        _cleanup_close_ int fd = client();

        CU_ASSERT_EQUAL(write(fd, messages[i].text, messages[i].size), (ssize_t) messages[i].size);
        if (!read_answer(fd, answer, sizeof(answer), 200) && answer[0] && !strstr(answer, "\"error\"")) {
            printf("%s: %s\n", messages[i].text, answer);
            CU_FAIL("nonsense was taken for sense");
        }
    }
    others_work();
}

static void oversized(void) {
    _cleanup_close_ int fd = client();
    static char much[65536];
    size_t sent = 0;
    char answer[4096];
    usec_t until = clock_boottime() + HOST_PATIENCE;

    memset(much, 'x', sizeof(much));
    while (clock_boottime() < until) {
        ssize_t n = send(fd, much, sizeof(much), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EAGAIN)
            break;
        sent += n > 0 ? (size_t) n : 0;
        child_turn(clock_boottime() + USEC_PER_MSEC);
    }
    CU_ASSERT(clock_boottime() < until); /* cut off */
    CU_ASSERT(sent < 16 * 1024 * 1024);
    (void) read_answer(fd, answer, sizeof(answer), 0);
    others_work();
}

static void slow_and_half_closed(void) {
    _cleanup_close_ int slow = client(), half = client(), silent = client();
    static const char begin[] = "{\"method\": \"io.berth.Poo", hold[] =
        "{\"method\": \"io.berth.Hold\", \"parameters\": {\"pools\": [\"db\"], \"name\": \"half\"}, \"more\": true}";
    char answer[65536];

    CU_ASSERT_EQUAL(write(slow, begin, sizeof(begin) - 1), (ssize_t) sizeof(begin) - 1);
    CU_ASSERT_EQUAL(write(half, begin, sizeof(begin) - 1), (ssize_t) sizeof(begin) - 1);
    TEST_INT(shutdown(half, SHUT_WR), 0);
    others_work();
    CU_ASSERT(read_answer(half, answer, sizeof(answer), 2000));
    half = close_fd(half);
    half = client();
    CU_ASSERT_EQUAL(write(half, hold, sizeof(hold)), (ssize_t) sizeof(hold));
    host_await(ant, "granted", "job=half");
    half = close_fd(half); /* with the answer unread: nobody has the hold */
    others_work();
    (void) silent;
}

/* One who asks and never reads. */
static void deaf(void) {
    _cleanup_close_ int fd = client();
    static const char call[] = "{\"method\": \"io.berth.Pools\"}";
    unsigned n = 0;

    while (n < 20000 && send(fd, call, sizeof(call), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) sizeof(call))
        n++;
    others_work();
    CU_ASSERT(n > 0);
}

static void many(void) {
    int fds[300];

    for (size_t i = 0; i < ELEMENTSOF(fds); i++)
        fds[i] = client();
    others_work();
    for (size_t i = 0; i < ELEMENTSOF(fds); i++)
        (void) close(fds[i]);
    others_work();
}

static CU_TestInfo tests[] = {
    {"nonsense", nonsense},   {"oversized", oversized}, {"slow and half-closed", slow_and_half_closed},
    {"deaf", deaf},           {"many", many},           CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "bad clients", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
