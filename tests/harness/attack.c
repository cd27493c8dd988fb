/* SPDX-License-Identifier: MIT */
#include "tests/harness/attack.h"

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/socket.h"
#include "tests/harness/slow-close.h"
#include "tests/harness/test.h"

#define NOBODY 65534
#define ATTACKS_A_LISTENER 512 /* its queue holds no more than some thousands */
#define CONNECTIONS_MAX 4500
#define READERS 1000
#define PATIENCE (20 * USEC_PER_SEC)

struct attack {
    pid_t pid;
    atomic_uint n, n_sent;
};

static const char packet[] = "hello\nversion=1\n", call[] = "{\"method\":\"io.berth.Version\"}";

/* Runs in a process of its own: if that has the last reference after all, its close does not sleep. Returns
 * whether the message was sent. */
static bool attach(int socket, const char *text, size_t size, int flags) {
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        int fd = slow_close_socket();

        _exit(fd >= 0 && slow_close_send(socket, text, size, fd, flags) > 0 ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void freeze(struct attack *a, const char *path, int type) {
    const char *text = type == SOCK_STREAM ? call : packet;
    size_t size = type == SOCK_STREAM ? sizeof(call) : sizeof(packet) - 1;

    slow_close_begin(); /* here, not in the process that ends */
    for (unsigned i = 0;; i++) {
        int fd = socket_connect(path, type);

        if (fd < 0) {
            (void) poll(NULL, 0, 1);
            continue;
        }
        if (i % 4 == 1) /* behind what is read */
            (void) !send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (i % 4 == 2) /* after an empty packet, or no call */
            (void) !send(fd, "x", type == SOCK_STREAM, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (attach(fd, text, size, i % 4 == 3 && type == SOCK_STREAM ? MSG_OOB : 0))
            a->n_sent++;
        a->n++;
        (void) poll(NULL, 0, 2); /* leaves a processor to the victims */
        if (i % 8 < 4) {
            struct pollfd p = {.fd = fd, .events = POLLIN | POLLHUP};

            (void) poll(&p, 1, 20);
        }
        close(fd);
        if (i % ATTACKS_A_LISTENER == ATTACKS_A_LISTENER - 1)
            slow_close_end(), slow_close_begin();
    }
}

static void occupy(struct attack *a, const char *path, int type, size_t bytes) {
    char *half = calloc(1, bytes + 1);
    unsigned n = 0;

    memset(half, ' ', bytes);
    for (;;) {
        int fd = n < CONNECTIONS_MAX ? socket_connect(path, type) : -1;

        if (fd < 0) {
            (void) poll(NULL, 0, 1);
            continue;
        }
        for (size_t sent = 0; sent < bytes;) {
            ssize_t k = send(fd, half, bytes - sent, MSG_NOSIGNAL);

            if (k <= 0)
                break;
            sent += (size_t) k;
        }
        n++;
        a->n++;
    }
}

static void never_read(struct attack *a, const char *path) {
    static const char calls[] =
        "{\"method\":\"io.berth.Pools\"}\0{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"io.berth\"}}";
    static int fds[READERS];

    memset(fds, -1, sizeof(fds));
    for (unsigned i = 0;; i++) {
        int *fd = &fds[i % READERS];

        if (*fd < 0)
            *fd = socket_connect(path, SOCK_STREAM);
        if (*fd >= 0 && send(*fd, calls, sizeof(calls), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
            a->n++;
        else if (*fd < 0 || errno != EAGAIN)
            *fd = close_fd(*fd);
        if (i % READERS == READERS - 1)
            (void) poll(NULL, 0, 1);
    }
}

static _Noreturn void attack_main(struct attack *a, enum attack_kind kind, const char *path, int type, uid_t uid) {
    struct rlimit limit = {CONNECTIONS_MAX + 500, CONNECTIONS_MAX + 500};

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void) setrlimit(RLIMIT_NOFILE, &limit);
    if (uid != geteuid() && (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(uid) < 0))
        _exit(1);
    switch (kind) {
    case ATTACK_FREEZE:
        freeze(a, path, type);
        break;
    case ATTACK_SILENT:
        occupy(a, path, type, 0);
        break;
    case ATTACK_HALVES:
        occupy(a, path, type, 200 * 1024);
        break;
    case ATTACK_SLOW:
        never_read(a, path);
        break;
    }
    _exit(1);
}

struct attack *attack_start(enum attack_kind kind, const char *path, int type, uid_t uid) {
    struct attack *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    CU_ASSERT_FATAL(a != MAP_FAILED);
    pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0)
        attack_main(a, kind, path, type, uid);
    a->pid = pid; /* set only here: the child shares the memory */
    return a;
}

unsigned attack_sent(const struct attack *a) {
    return a->n_sent;
}

bool attack_await(const struct attack *a, unsigned n) {
    usec_t until = clock_boottime() + PATIENCE;

    while (a->n < n && clock_boottime() < until)
        (void) poll(NULL, 0, 5);
    return a->n >= n;
}

struct attack *attack_end(struct attack *a) {
    if (!a)
        return NULL;
    (void) kill(a->pid, SIGKILL);
    while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void) munmap(a, sizeof(*a));
    return NULL;
}
