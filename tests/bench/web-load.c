/* SPDX-License-Identifier: MIT */
#include "tests/bench/web-load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/bench/daemon.h"

#define OPEN_TIME (60 * USEC_PER_SEC)
#define ANSWER_SIZE 65536
#define OVERVIEW "GET /api/1/overview HTTP/1.1\r\nHost: localhost\r\n"

struct connection {
    int fd;       /* -1: closed */
    usec_t due;   /* of the request that it waits for; 0: none */
    size_t n;     /* bytes sent by a slow one, or received of an answer */
    bool is_stream; /* berth-web has answered with 200 */
    char *answer; /* ANSWER_SIZE bytes; of WEB_REQUESTS alone */
};

static struct connection connections[WEB_LOAD_CONNECTIONS];

/* --- connections --- */

static int connect_tcp(unsigned port, int flags) {
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 && errno != EINPROGRESS)
        fd = close_fd(fd);
    return fd;
}

/* Without success the connection stays closed until its next turn. */
static void open_one(const struct web_load *load, struct connection *c) {
    char call[256];
    int n = snprintf(call, sizeof(call), "GET /api/1/stream?pool=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", load->pool);

    *c = (struct connection) {.fd = load->port > 0 ? connect_tcp(load->port, SOCK_NONBLOCK)
                                                   : socket_connect(load->path, SOCK_STREAM),
                              .answer = c->answer};
    if (c->fd < 0)
        c->fd = -1;
    else if (load->kind <= WEB_STOPPERS && send(c->fd, call, (size_t) n, MSG_NOSIGNAL) != n)
        c->fd = close_fd(c->fd);
}

/* --- one turn a second of each connection --- */

static bool is_closed(const struct connection *c) {
    struct pollfd p = {.fd = c->fd};

    return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

/* Notes the answer to a call for a stream. Before berth-web has seen that older ones have ended, it is 503: the
 * connection is closed and opened at its next turn. */
static void take_answer(struct connection *c) {
    char answer[12];

    if (c->is_stream || recv(c->fd, answer, sizeof(answer), MSG_PEEK | MSG_DONTWAIT) != sizeof(answer))
        return;
    c->is_stream = memcmp(answer, "HTTP/1.1 200", sizeof(answer)) == 0;
    if (!c->is_stream)
        c->fd = close_fd(c->fd);
}

static void take_turn(const struct web_load *load, struct connection *c) {
    static const char request[] = OVERVIEW "X-Slow: yes\r\n\r\n";
    char buffer[65536];

    if (c->fd >= 0 && is_closed(c)) {
        load->counts->n_closed++;
        c->fd = close_fd(c->fd);
    }
    if (c->fd < 0)
        open_one(load, c);
    else if (load->kind != WEB_SLOW)
        take_answer(c);
    if (c->fd < 0)
        return;
    if (load->kind == WEB_SLOW && send(c->fd, &request[c->n % (sizeof(request) - 1)], 1, MSG_NOSIGNAL) == 1)
        c->n++;
    while (load->kind == WEB_READERS && c->is_stream && recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
        ;
}

static bool is_open(const struct web_load *load, const struct connection *c) {
    return c->fd >= 0 && (c->is_stream || load->kind == WEB_SLOW);
}

_Noreturn static void take_turns(const struct web_load *load) {
    usec_t begun = clock_boottime();

    for (uint64_t turn = 0;; turn++) {
        usec_t due = begun + turn * USEC_PER_SEC / load->n;
        struct connection *c = &connections[turn % load->n];
        bool was_open = is_open(load, c);

        while (clock_boottime() < due)
            (void) poll(NULL, 0, 1);
        take_turn(load, c);
        load->counts->n_open += is_open(load, c);
        load->counts->n_open -= was_open;
    }
}

/* --- requests at a rate --- */

/* Returns whether the answer is whole. */
static bool is_whole(const char *answer, size_t n) {
    const char *end = memmem(answer, n, "\r\n\r\n", 4), *length = memmem(answer, n, "Content-Length: ", 16);

    if (strncmp(answer, "HTTP/1.1 200", n < 12 ? n : 12) != 0)
        rig_fail("berth-web answers %.40s", answer);
    return end && length && n >= (size_t) (end + 4 - answer) + strtoul(length + 16, NULL, 10);
}

static void read_answer(const struct web_load *load, struct connection *c) {
    ssize_t n = recv(c->fd, c->answer + c->n, ANSWER_SIZE - 1 - c->n, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN))
        rig_fail("berth-web has closed a connection");
    c->n += n > 0 ? (size_t) n : 0;
    c->answer[c->n] = '\0';
    if (c->n == 0 || !is_whole(c->answer, c->n))
        return;
    if (load->counts->n_samples < WEB_LOAD_SAMPLES)
        load->counts->usec[load->counts->n_samples++] = (double) (clock_boottime() - c->due);
    c->due = 0;
    c->n = 0;
}

/* A request whose time comes while all connections are busy is sent later, but its time counts from there. */
_Noreturn static void send_requests(const struct web_load *load) {
    static const char request[] = OVERVIEW "\r\n";
    struct pollfd polled[WEB_LOAD_CONNECTIONS];
    usec_t begun = clock_boottime();
    uint64_t n_sent = 0;

    for (;;) {
        usec_t due = begun + n_sent * USEC_PER_SEC / load->rate;

        for (unsigned i = 0; i < load->n && due <= clock_boottime(); i++) {
            struct connection *c = &connections[i];

            if (c->due > 0)
                continue;
            if (send(c->fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != sizeof(request) - 1)
                rig_fail("berth-web takes no request");
            c->due = due;
            due = begun + ++n_sent * USEC_PER_SEC / load->rate;
        }
        for (unsigned i = 0; i < load->n; i++)
            polled[i] = (struct pollfd) {.fd = connections[i].due > 0 ? connections[i].fd : -1, .events = POLLIN};
        (void) ppoll(polled, load->n, &(struct timespec) {.tv_nsec = 200000}, NULL);
        for (unsigned i = 0; i < load->n; i++)
            if (polled[i].revents)
                read_answer(load, &connections[i]);
    }
}

static void open_kept(const struct web_load *load) {
    for (unsigned i = 0; i < load->n; i++) {
        connections[i] = (struct connection) {.fd = connect_tcp(load->port, 0), .answer = malloc(ANSWER_SIZE)};
        if (connections[i].fd < 0 || !connections[i].answer)
            rig_fail("no connection to berth-web");
        load->counts->n_open++;
    }
}

/* Takes no processor from those who are measured: it is in the class below theirs. With real-time priority for all, that is the
 * usual class, where it goes before the other processes of a busy machine. */
static void step_aside(void) {
    bool is_usual = sched_getscheduler(0) == SCHED_OTHER;

    if (sched_setscheduler(0, is_usual ? SCHED_IDLE : SCHED_OTHER, &(struct sched_param) {0}) < 0 ||
        (!is_usual && setpriority(PRIO_PROCESS, 0, -20) < 0))
        rig_fail("no other class for the clients of berth-web");
}

static void run(void *userdata) {
    const struct web_load *load = userdata;

    if (load->is_elsewhere)
        step_aside();
    for (size_t i = 0; i < WEB_LOAD_CONNECTIONS; i++)
        connections[i].fd = -1;
    if (load->kind != WEB_REQUESTS)
        take_turns(load);
    open_kept(load);
    send_requests(load);
}

/* --- begin and end --- */

void web_load_start(struct web_load *load) {
    usec_t end = clock_boottime() + OPEN_TIME;

    load->counts = mmap(NULL, sizeof(*load->counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (load->counts == MAP_FAILED || (load->pid = command_fork(run, load)) < 0)
        rig_fail("no process for the clients of berth-web");
    while (*(volatile unsigned *) &load->counts->n_open < load->n) {
        if (clock_boottime() > end)
            rig_fail("%u of %u connections to berth-web", load->counts->n_open, load->n);
        (void) poll(NULL, 0, 20);
    }
}

void web_load_end(struct web_load *load) {
    if (kill(load->pid, SIGKILL) < 0 || command_wait(load->pid) != 128 + SIGKILL)
        rig_fail("the clients of berth-web have failed");
}

void web_load_done(struct web_load *load) {
    (void) munmap(load->counts, sizeof(*load->counts));
}

double web_load_ask(unsigned port, const char *path) {
    static char answer[256 * 1024];
    usec_t begun = clock_boottime();
    int fd = connect_tcp(port, 0);
    char call[256];
    int n = snprintf(call, sizeof(call), "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    ssize_t size = 0, all = 0;

    if (fd >= 0 && send(fd, call, (size_t) n, MSG_NOSIGNAL) == n)
        while ((size_t) all < sizeof(answer) && (size = recv(fd, answer + all, sizeof(answer) - (size_t) all, 0)) > 0)
            all += size;
    close_fd(fd);
    return all > 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0 ? (double) (clock_boottime() - begun) : -1;
}
