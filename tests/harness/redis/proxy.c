/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/socket.h"

#define PAIRS_MAX 32
#define PIECES_MAX 256 /* kept back of one direction */
#define PIECE_SIZE 16384

struct proxy_control {
    _Atomic int mode;
    _Atomic uint64_t delay;
    _Atomic bool subscriber_only;
    _Atomic unsigned harmed, led; /* led grows when target has changed */
    char target[108];
};

struct piece {
    usec_t due;
    size_t size;
    char *data;
};

struct pair { /* a connection of berthd's and ours to Redis */
    int fds[2];                  /* 0: berthd, 1: Redis */
    int shadow;                  /* for doubled requests; its answers are ignored */
    struct piece pieces[2][PIECES_MAX]; /* read from fds[x], not passed on yet */
    size_t n[2];
    bool subscriber;
    unsigned n_answers;
};

static struct pair pairs[PAIRS_MAX];
static size_t n_pairs;
static struct proxy_control *control;

static void close_pair(size_t k) {
    struct pair *p = &pairs[k];

    p->shadow = close_fd(p->shadow);
    for (size_t side = 0; side < 2; side++) {
        p->fds[side] = close_fd(p->fds[side]);
        for (size_t i = 0; i < p->n[side]; i++)
            free(p->pieces[side][i].data);
    }
    n_pairs--;
    if (k < n_pairs)
        *p = pairs[n_pairs];
}

static enum proxy_mode mode_of(const struct pair *p) {
    return control->subscriber_only && !p->subscriber ? PROXY_PASS : (enum proxy_mode) control->mode;
}

/* Returns how much the peer takes now; -1: it is gone. */
static ssize_t send_some(int fd, const char *data, size_t size) {
    ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

static bool keep(struct pair *p, size_t side, const char *data, size_t size, usec_t due) {
    struct piece *piece = &p->pieces[side][p->n[side]];

    if (p->n[side] == PIECES_MAX || !(piece->data = malloc(size)))
        return false;
    memcpy(piece->data, data, size);
    piece->size = size;
    piece->due = due;
    p->n[side]++;
    return true;
}

/* Nothing overtakes kept data, and the proxy waits for a slow or stopped peer as a network does: all scripts
 * together are more than a unix socket takes (wmem_default). */
static bool pass(struct pair *p, size_t side, const char *data, size_t size) {
    ssize_t n = p->n[side] > 0 ? 0 : send_some(p->fds[!side], data, size);

    return n >= 0 && ((size_t) n == size || keep(p, side, data + n, size - (size_t) n, 0));
}

/* Waits for a Redis that does not read, but not for long. */
static bool pass_to_shadow(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t n = send_some(fd, data, size);

        if (n < 0 || (n == 0 && poll(&(struct pollfd) {.fd = fd, .events = POLLOUT}, 1, 1000) <= 0))
            return false;
        data += n;
        size -= (size_t) n;
    }
    return true;
}

static void double_request(struct pair *p, const char *data, size_t size) {
    char ignored[4096];

    if (p->shadow < 0)
        p->shadow = socket_connect(control->target, SOCK_STREAM);
    if (p->shadow >= 0 && !pass_to_shadow(p->shadow, data, size))
        p->shadow = close_fd(p->shadow);
    while (p->shadow >= 0 && recv(p->shadow, ignored, sizeof(ignored), MSG_DONTWAIT) > 0)
        ;
}

/* Treats a piece from this side. Returns whether the connection lives on. */
static bool treat(struct pair *p, size_t side, const char *data, size_t size) {
    enum proxy_mode mode = mode_of(p);
    bool answer = side == 1;

    if (mode != PROXY_PASS && (answer || mode != PROXY_DROP_NEXT))
        control->harmed++;
    switch (mode) {
    case PROXY_CUT: return false;
    case PROXY_HOLE: return true;
    case PROXY_DEAF: return answer ? pass(p, side, data, size) : true;
    case PROXY_MUTE: return answer ? true : pass(p, side, data, size);
    case PROXY_HOLD: return keep(p, side, data, size, USEC_INFINITY);
    case PROXY_HOLD_REPLIES:
        return answer && !p->subscriber ? keep(p, side, data, size, USEC_INFINITY) : pass(p, side, data, size);
    case PROXY_DELAY: return keep(p, side, data, size, clock_boottime() + control->delay);
    case PROXY_TRUNCATE:
        if (answer)
            (void) pass(p, side, data, size / 2);
        return !answer && pass(p, side, data, size);
    case PROXY_LOSE_ANSWER: return !answer && pass(p, side, data, size);
    case PROXY_DOUBLE:
        if (!answer && !p->subscriber)
            double_request(p, data, size);
        return pass(p, side, data, size);
    case PROXY_ECHO: return pass(p, side, data, size) && (!answer || pass(p, side, data, size));
    case PROXY_DROP_SOME: return answer && ++p->n_answers % 4 == 0 ? true : pass(p, side, data, size);
    case PROXY_DROP_NEXT:
        if (!answer)
            return pass(p, side, data, size);
        control->mode = PROXY_PASS;
        return true;
    case PROXY_GARBAGE: return pass(p, side, data, size) && (!answer || pass(p, side, "?what\r\n", 7));
    case PROXY_PASS: break;
    }
    return pass(p, side, data, size);
}

/* Returns whether the first kept piece may go now. */
static bool is_due(const struct pair *p, size_t side) {
    enum proxy_mode mode = mode_of(p);

    if (mode == PROXY_HOLD_REPLIES && side == 1 && !p->subscriber)
        return false;
    return p->n[side] > 0 && mode != PROXY_HOLD && (p->pieces[side][0].due <= clock_boottime() || mode != PROXY_DELAY);
}

static bool flush_kept(struct pair *p, size_t side) {
    while (is_due(p, side)) {
        struct piece *first = &p->pieces[side][0];
        ssize_t n = send_some(p->fds[!side], first->data, first->size);

        if (n < 0)
            return false;
        first->size -= (size_t) n;
        memmove(first->data, first->data + n, first->size);
        if (first->size > 0)
            return true;
        free(first->data);
        memmove(first, first + 1, --p->n[side] * sizeof(*first));
    }
    return true;
}

static bool read_piece(struct pair *p, size_t side) {
    char data[PIECE_SIZE];
    ssize_t n = recv(p->fds[side], data, sizeof(data), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    /* A half-open connection stays half-open, whatever the other end does. */
    if (n == 0)
        return false;
    if (side == 0 && memmem(data, (size_t) n, "SSUBSCRIBE", 10))
        p->subscriber = true;
    return treat(p, side, data, (size_t) n);
}

static void accept_one(int listener) {
    struct pair *p = &pairs[n_pairs];
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), to;

    if (fd < 0)
        return;
    to = n_pairs == PAIRS_MAX || control->mode == PROXY_CUT ? -1 : socket_connect(control->target, SOCK_STREAM);
    if (to < 0) {
        (void) close(fd);
        return;
    }
    *p = (struct pair) {.fds = {fd, to}, .shadow = -1};
    n_pairs++;
}

static void turn_pairs(struct pollfd *polled, bool has_events) {
    for (size_t k = n_pairs; k-- > 0;) {
        bool ok = !(mode_of(&pairs[k]) == PROXY_CUT);

        for (size_t side = 0; side < 2 && ok; side++) {
            if (has_events && (polled[2 * k + side].revents & ~POLLOUT))
                ok = read_piece(&pairs[k], side);
            ok = ok && flush_kept(&pairs[k], side);
        }
        if (!ok)
            close_pair(k);
    }
}

/* A treated piece becomes two at most; without room for them its sender waits. */
static short events_of(const struct pair *p, size_t side) {
    bool room = p->n[side] + 2 <= PIECES_MAX;

    return (short) ((room ? POLLIN : 0) | (is_due(p, !side) ? POLLOUT : 0));
}

/* Returns when a kept piece may go, or a look at the mode is due. */
static usec_t next_turn(void) {
    usec_t next = clock_boottime() + (control->mode == PROXY_PASS ? 20 : 5) * USEC_PER_MSEC;

    if (control->mode == PROXY_DELAY)
        for (size_t k = 0; k < n_pairs; k++)
            for (size_t side = 0; side < 2; side++)
                if (pairs[k].n[side] > 0 && pairs[k].pieces[side][0].due < next)
                    next = pairs[k].pieces[side][0].due;
    return next;
}

_Noreturn static void run(int listener) {
    unsigned led = 0;

    for (;;) {
        struct pollfd fds[2 * PAIRS_MAX + 1];
        size_t polled = n_pairs;
        struct timespec left;
        int n;

        for (size_t k = 0; k < polled; k++)
            for (size_t side = 0; side < 2; side++)
                fds[2 * k + side] = (struct pollfd) {.fd = pairs[k].fds[side], .events = events_of(&pairs[k], side)};
        fds[2 * polled] = (struct pollfd) {.fd = listener, .events = POLLIN};
        left = (struct timespec) {.tv_nsec = (long) usec_sub(next_turn(), clock_boottime()) * 1000};
        n = ppoll(fds, 2 * polled + 1, &left, NULL);
        if (led != control->led)
            while (n_pairs > 0)
                close_pair(n_pairs - 1);
        else
            turn_pairs(fds, n > 0);
        led = control->led;
        if (n > 0 && fds[2 * polled].revents)
            accept_one(listener);
    }
}

static int listen_on_port(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) strtoul(port, NULL, 10))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ? close_fd(fd) : fd;
}

static int listen_on(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ? close_fd(fd) : fd;
}

int proxy_start(struct proxy *p, const char *path, const char *target) {
    _cleanup_close_ int listener = path[0] == ':' ? listen_on_port(path + 1) : listen_on(path);
    pid_t parent = getpid();

    *p = (struct proxy) {0};
    snprintf(p->path, sizeof(p->path), "%s", path);
    p->control = mmap(NULL, sizeof(*p->control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener < 0 || p->control == MAP_FAILED || listen(listener, 64) < 0)
        return -errno;
    snprintf(p->control->target, sizeof(p->control->target), "%s", target);
    p->pid = fork();
    if (p->pid < 0)
        return -errno;
    if (p->pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_NAME, "test-proxy");
        if (getppid() != parent)
            _exit(0);
        control = p->control;
        run(listener);
    }
    return 0;
}

void proxy_set(struct proxy *p, enum proxy_mode mode, usec_t delay, bool subscriber_only) {
    p->control->delay = delay;
    p->control->subscriber_only = subscriber_only;
    p->control->mode = (int) mode;
}

void proxy_lead(struct proxy *p, const char *target) {
    snprintf(p->control->target, sizeof(p->control->target), "%s", target);
    p->control->led++;
}

unsigned proxy_harmed(const struct proxy *p) {
    return p->control->harmed;
}

void proxy_done(struct proxy *p) {
    if (p->pid > 0) {
        (void) kill(p->pid, SIGKILL);
        (void) waitpid(p->pid, NULL, 0);
        (void) munmap(p->control, sizeof(*p->control));
        (void) unlink(p->path);
    }
    *p = (struct proxy) {0};
}
