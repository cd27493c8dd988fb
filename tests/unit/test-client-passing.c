/* SPDX-License-Identifier: MIT */

/* What the client passes along arrives with the message that it belongs to, however full the socket is. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/socket.h"
#include "cli/client.h"
#include "tests/harness/test.h"

#define MANY 20000 /* calls: more than a socket takes */

static char path[64];
static int listener;
static sd_event *event;

static void up(void) {
    snprintf(path, sizeof(path), "/tmp/test-passing-%d.sock", (int) getpid());
    listener = socket_listen(path, SOCK_STREAM, 0600);
    CU_ASSERT_FATAL(listener >= 0);
    client_set_socket(path);
    TEST_INT(sd_event_new(&event), 0);
}

static void down(void) {
    client_set_socket(NULL);
    event = sd_event_unref(event);
    (void) close(listener);
    (void) unlink(path);
}

static void on_reply(_unused_ struct client *c, _unused_ struct client_reply *reply, _unused_ void *userdata) {
}
static void on_gone(_unused_ struct client *c, _unused_ int error, _unused_ void *userdata) {
}

/* Reads one piece; the number of the message that its last byte is of, if a descriptor came along, else -1. */
static int read_piece(int fd, size_t *messages, unsigned *ret_passed) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } control;
    char data[1000];
    struct iovec iov = {data, sizeof(data)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    int number = -1, got;

    for (ssize_t i = 0; i < n; i++) {
        if (i == n - 1 && h)
            number = (int) *messages;
        *messages += data[i] == '\0';
    }
    if (h) {
        memcpy(&got, CMSG_DATA(h), sizeof(got));
        (void) close(got);
        ++*ret_passed;
    }
    return n > 0 ? number : -2;
}

/* MANY calls, of which number `at` has a descriptor; how many of them are sent while nobody reads is the socket's affair. */
static void pass_at(int at) {
    _cleanup_(client_freep) struct client *c = NULL;
    const struct client_handler handler = {.on_reply = on_reply, .on_gone = on_gone};
    _cleanup_close_ int server = -1, passed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    size_t messages = 0;
    unsigned n_passed = 0;
    int number = -1;

    TEST_INT(client_connect(&c), 0);
    server = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    TEST_INT(client_attach(c, event, 0, &handler), 0);
    for (int i = 0; i < MANY; i++)
        TEST_INT(client_send_fd(c, "io.berth.Hold", json_pack("{s:i}", "i", i), 0, i == at ? passed : -1), 0);
    while (messages < MANY) {
        int k = read_piece(server, &messages, &n_passed);

        if (k >= 0)
            number = k;
        else if (k == -2)
            CU_ASSERT_FATAL(sd_event_run(event, 5 * USEC_PER_SEC) > 0);
    }
    TEST_INT(number, at);
    TEST_INT(n_passed, 1);
}

static void test_passing(void) {
    pass_at(0);
    pass_at(1);
    pass_at(MANY / 2);
    pass_at(MANY - 1);
}

static void test_one_at_a_time(void) {
    _cleanup_(client_freep) struct client *c = NULL;
    const struct client_handler handler = {.on_reply = on_reply, .on_gone = on_gone};
    int r = 0, n = 0;

    TEST_INT(client_connect(&c), 0);
    TEST_INT(client_attach(c, event, 0, &handler), 0);
    while (n < 100000 && (r = client_send_fd(c, "io.berth.Hold", NULL, 0, listener)) == 0)
        n++;
    TEST_INT(r, -EBUSY); /* when nothing more could be sent and one was waiting */
    TEST_INT(client_send_fd(c, "io.berth.Hold", NULL, 0, -1), 0);
}

static CU_TestInfo tests[] = {{"passing", test_passing}, {"one at a time", test_one_at_a_time}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "client passing", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
