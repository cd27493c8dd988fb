/* SPDX-License-Identifier: MIT */

/* TLS over a network that passes single bytes, or nothing after the first ones: an attempt succeeds, or ends by
 * connect-timeout, without a busy loop. */

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/harness/port.h"
#include "tests/harness/runner/attempt.h"
#include "tests/harness/test.h"

#define TIMEOUT (500 * USEC_PER_MSEC)

static struct tls_place place;
static struct redis_server server;
static unsigned port;

static int open_socket(unsigned at, bool is_listener) {
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t) at), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || (is_listener ? bind(fd, (struct sockaddr *) &in, sizeof(in)) < 0 || listen(fd, 16) < 0
                               : connect(fd, (struct sockaddr *) &in, sizeof(in)) < 0))
        _exit(1);
    return fd;
}

/* Passes `piece` bytes at a time, and from the server at most `most` in all. */
static _Noreturn void pass(int client, size_t piece, size_t most) {
    struct pollfd fds[2] = {{.fd = client, .events = POLLIN},
                            {.fd = open_socket(port, false), .events = POLLIN}};
    char data[4096];

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (poll(fds, 2, -1) > 0)
        for (size_t i = 0; i < 2; i++) {
            ssize_t n = fds[i].revents ? recv(fds[i].fd, data, i == 1 && most < piece ? most : piece, 0) : 1;

            if (n <= 0 || (fds[i].revents && send(fds[1 - i].fd, data, (size_t) n, MSG_NOSIGNAL) != n))
                _exit(0);
            if (i == 1 && fds[i].revents)
                most -= (size_t) n;
            if (most == 0)
                fds[1].fd = -1;
        }
    _exit(0);
}

static pid_t relay_start(unsigned *ret_port, size_t piece, size_t most) {
    int listener, client;
    pid_t pid;

    *ret_port = port_reserve();
    listener = open_socket(*ret_port, true);
    pid = fork();
    if (pid != 0) {
        (void) close(listener);
        return pid;
    }
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) signal(SIGCHLD, SIG_IGN);
    while ((client = accept(listener, NULL, NULL)) >= 0) {
        if (fork() == 0)
            pass(client, piece, most);
        (void) close(client);
    }
    _exit(0);
}

static void relay_end(pid_t pid) {
    CU_ASSERT(pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static usec_t processor_time(void) {
    struct rusage u;

    (void) getrusage(RUSAGE_SELF, &u);
    return (usec_t) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * USEC_PER_SEC +
           (usec_t) (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void test_pieces(void) {
    static const size_t pieces[] = {1, 5, 17, 1000};

    for (size_t i = 0; i < ELEMENTSOF(pieces); i++) {
        struct attempt a;
        unsigned at;
        pid_t relay = relay_start(&at, pieces[i], SIZE_MAX);

        attempt_begin(&a, &place, "localhost", at);
        attempt_expect_up(&a, "up");
        relay_end(relay);
    }
}

static void test_stalls(void) {
    static const size_t most[] = {1, 5, 17, 500, 1000};

    for (size_t i = 0; i < ELEMENTSOF(most); i++) {
        struct attempt a;
        usec_t began = clock_boottime(), used = processor_time();
        unsigned at;
        pid_t relay = relay_start(&at, 4096, most[i]);

        attempt_begin(&a, &place, "127.0.0.1", at); /* looking up a name could use up the time */
        a.settings.tls.server_name = (char *) "localhost";
        a.settings.connect_timeout_usec = TIMEOUT;
        attempt_expect_down(&a, REDIS_ERROR_BUSY,
                            i < 4 ? "no answer in time: does it speak TLS on this port?" : "in time");
        CU_ASSERT(clock_boottime() >= began + TIMEOUT);
        CU_ASSERT(processor_time() - used < TIMEOUT / 20);
        relay_end(relay);
    }
}

static CU_TestInfo tests[] = {
    {"pieces", test_pieces},
    {"stalls", test_stalls},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "redis-tls-relay", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = 1;

    if (tls_place_init(&place) == 0 &&
        tls_place_sign(&place, "ca", "server", "x", "DNS:localhost", -1, 20) == 0)
        port = tls_server_start(&server, &place, "no");
    if (port == 0)
        puts("no redis-server with TLS, or no openssl");
    else
        r = test_main(argc, argv, suites);
    redis_server_done(&server);
    tls_place_done(&place);
    return r;
}
