/* SPDX-License-Identifier: MIT */

/* The proxy of the fault suite harms what it was set to harm and nothing else: a Redis that reads slowly
 * keeps its connection. */

#include "tests/harness/redis/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/socket.h"
#include "tests/harness/test.h"

#define PATIENCE 10000                  /* ms, for what must come */
#define QUIET 200                       /* ms, in which nothing more is taken: both sockets and the proxy are full */
#define MOST ((size_t) 64 << 20)        /* by then it must be */
#define ANSWER ((size_t) 1 << 19)

static char folder[] = "/tmp/berth-proxy-XXXXXX", front[64], back[64];
static struct proxy proxy, tcp_proxy;
static unsigned port;
static int listener = -1, berthd = -1, redis = -1;

/* Finds a free port. */
static int find_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *) &address, size) < 0 || getsockname(fd, (struct sockaddr *) &address, &size) < 0)
        return -1;
    port = ntohs(address.sin_port);
    return 0;
}

static int set_up(void) {
    char name[16];

    if (!mkdtemp(folder) || find_port() < 0)
        return -1;
    snprintf(name, sizeof(name), ":%u", port);
    snprintf(front, sizeof(front), "%s/front", folder);
    snprintf(back, sizeof(back), "%s/back", folder);
    listener = socket_listen(back, SOCK_STREAM, 0600);
    return listener < 0 || proxy_start(&proxy, front, back) < 0 ? -1 : proxy_start(&tcp_proxy, name, back);
}

static int tear_down(void) {
    proxy_done(&proxy);
    proxy_done(&tcp_proxy);
    listener = close_fd(listener);
    (void) unlink(back);
    return rmdir(folder);
}

static bool await(int fd, short events, int timeout) {
    struct pollfd polled = {.fd = fd, .events = events};

    return poll(&polled, 1, timeout) > 0 && (polled.revents & events);
}

static void meet_by(int fd) {
    berthd = fd;
    CU_ASSERT_FATAL(berthd >= 0 && await(listener, POLLIN, PATIENCE));
    redis = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CU_ASSERT_FATAL(redis >= 0);
}

static void meet(void) {
    meet_by(socket_connect(front, SOCK_STREAM));
}

static void part(void) {
    berthd = close_fd(berthd);
    redis = close_fd(redis);
}

static char byte_at(size_t i) {
    return (char) (i * 31 + i / 251);
}

/* Sends up to size bytes, as long as the peer takes them. Returns how many; the connection may be gone. */
static size_t tell(int fd, size_t from, size_t size, int timeout) {
    char data[5000];
    size_t sent = 0;

    while (sent < size && await(fd, POLLOUT, timeout)) {
        size_t n = size - sent < sizeof(data) ? size - sent : sizeof(data);
        ssize_t k;

        for (size_t i = 0; i < n; i++)
            data[i] = byte_at(from + sent + i);
        k = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && errno != EAGAIN)
            break;
        sent += k > 0 ? (size_t) k : 0;
    }
    return sent;
}

/* Returns how many of these bytes arrived unchanged. */
static size_t receive(int fd, size_t from, size_t size) {
    char data[7000];
    size_t got = 0;

    while (got < size && await(fd, POLLIN, PATIENCE)) {
        size_t room = size - got < sizeof(data) ? size - got : sizeof(data);
        ssize_t n = recv(fd, data, room, MSG_DONTWAIT);

        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            if (data[i] != byte_at(from + got + (size_t) i))
                return got + (size_t) i;
        got += (size_t) n;
    }
    return got;
}

/* The proxy holds the sender up, and no byte is lost. */
static void send_to_a_peer_that_does_not_read(int sender, int receiver) {
    size_t sent = tell(sender, 0, MOST, QUIET);

    CU_ASSERT(sent > 0 && sent < MOST);
    TEST_INT(receive(receiver, 0, sent), sent);
    TEST_INT(tell(sender, sent, 1000, PATIENCE), 1000); /* the connection lives on */
    TEST_INT(receive(receiver, sent, 1000), 1000);
}

static void test_slow_redis(void) {
    meet();
    send_to_a_peer_that_does_not_read(berthd, redis);
    part();
}

static void test_slow_berthd(void) {
    meet();
    send_to_a_peer_that_does_not_read(redis, berthd);
    part();
}

/* By TCP the kernel takes a part of a piece. */
static void test_slow_network(void) {
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t) port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_FATAL(fd >= 0 && connect(fd, (const struct sockaddr *) &address, sizeof(address)) == 0);
    meet_by(fd);
    send_to_a_peer_that_does_not_read(redis, berthd);
    part();
}

/* A peer that does not read holds up no other connection and no other direction. */
static void test_others_go_on(void) {
    int slow[2];

    meet();
    CU_ASSERT(tell(berthd, 0, MOST, QUIET) < MOST);
    TEST_INT(tell(redis, 0, 1000, PATIENCE), 1000);
    TEST_INT(receive(berthd, 0, 1000), 1000);
    slow[0] = berthd;
    slow[1] = redis;
    meet();
    TEST_INT(tell(berthd, 0, 1000, PATIENCE), 1000);
    TEST_INT(receive(redis, 0, 1000), 1000);
    part();
    berthd = slow[0];
    redis = slow[1];
    part();
}

/* Bytes that were held back arrive first, and whole. */
static void test_held_back(void) {
    meet();
    proxy_set(&proxy, PROXY_HOLD, 0, false);
    TEST_INT(tell(redis, 0, ANSWER, PATIENCE), ANSWER);
    CU_ASSERT(!await(berthd, POLLIN, QUIET));
    proxy_set(&proxy, PROXY_PASS, 0, false);
    TEST_INT(tell(redis, ANSWER, 1000, PATIENCE), 1000);
    TEST_INT(receive(berthd, 0, ANSWER + 1000), ANSWER + 1000);
    part();
}

static CU_TestInfo tests[] = {
    {"slow Redis", test_slow_redis}, {"slow berthd", test_slow_berthd}, {"slow network", test_slow_network},
    {"others go on", test_others_go_on}, {"held back", test_held_back},     CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "proxy", .pInitFunc = set_up, .pCleanupFunc = tear_down, .pTests = tests});
