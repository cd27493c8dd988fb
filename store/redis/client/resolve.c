/* SPDX-License-Identifier: MIT */
#include "store/redis/client/resolve.h"

#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/timer.h"

struct redis_resolve {
    redis_resolve_fn fn;
    void *userdata;
    pid_t pid;       /* our child, which only reap() waits for; 0: reaped */
    usec_t deadline;
    int fd;          /* to which the child writes all addresses as one text before it exits */
    struct redis_addresses addresses;
    sd_event_source *io;
    struct timer timer;
};

bool redis_resolve_is_address(const char *host) {
    unsigned char buffer[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, buffer) == 1 || inet_pton(AF_INET6, host, buffer) == 1;
}

#define TOO_LATE "the lookup took too long"
#define TEXT_SIZE (RESOLVE_ADDRESSES_MAX * (RESOLVE_ADDRESS_SIZE + 1))

/* Formats all addresses of a name as lines. Returns their length, 0 if there are none: then the text is the reason.
 * Link-local addresses with a zone are left out. */
static size_t find_addresses(const char *host, int flags, char text[static TEXT_SIZE]) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags}, *found = NULL;
    size_t used = 0, n = 0;
    int error = getaddrinfo(host, NULL, &hints, &found);

    (void) snprintf(text, TEXT_SIZE, "%s", error != 0 ? gai_strerror(error) : "it has only link-local addresses");
    if (error != 0)
        return 0;
    for (const struct addrinfo *a = found; a && n < RESOLVE_ADDRESSES_MAX; a = a->ai_next) {
        char address[NI_MAXHOST];

        if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0, NI_NUMERICHOST) != 0 ||
            !redis_resolve_is_address(address))
            continue;
        used += (size_t) snprintf(text + used, TEXT_SIZE - used, "%s\n", address);
        n++;
    }
    freeaddrinfo(found);
    return used;
}

static _Noreturn void child(const char *host, int fd, pid_t parent) {
    char text[TEXT_SIZE];
    size_t n;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    /* Descriptors that the parent closes meanwhile must not stay open here. */
    (void) close_range(3, (unsigned) fd - 1, 0);
    (void) close_range((unsigned) fd + 1, ~0U, 0);
    n = find_addresses(host, AI_ADDRCONFIG, text);
    if (n == 0) /* such as ::1 on a machine with no other address of its family */
        n = find_addresses(host, 0, text);
    if (n == 0)
        n = strlen(text); /* the reason */
    _exit(send(fd, text, n, MSG_NOSIGNAL) == (ssize_t) n ? 0 : 1);
}

static void parse_addresses(struct redis_addresses *addresses, char *text) {
    char *line;

    (void) snprintf(addresses->why, sizeof(addresses->why), "%.60s", *text ? text : "the resolver ended");
    while ((line = strsep(&text, "\n")) && addresses->n < RESOLVE_ADDRESSES_MAX)
        if (redis_resolve_is_address(line))
            (void) snprintf(addresses->items[addresses->n++], RESOLVE_ADDRESS_SIZE, "%s", line);
}

/* Kills and reaps the child, also after its answer: its memory is a copy of ours. */
static void reap(struct redis_resolve *resolve) {
    if (resolve->pid <= 0)
        return;
    (void) kill(resolve->pid, SIGKILL); /* not reaped yet, so the pid is still its own */
    while (waitpid(resolve->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    resolve->pid = 0;
}

static int resolve_on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
    struct redis_resolve *resolve = userdata;
    char text[TEXT_SIZE + 1];
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    (void) revents;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    text[n > 0 ? n : 0] = '\0';
    (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
    timer_off(&resolve->timer);
    reap(resolve);
    parse_addresses(&resolve->addresses, clock_boottime() < resolve->deadline ? text : (char[]) {TOO_LATE});
    resolve->fn(&resolve->addresses, resolve->userdata);
    return 0;
}

static void resolve_on_timer(void *userdata) {
    struct redis_resolve *resolve = userdata;

    (void) sd_event_source_set_enabled(resolve->io, SD_EVENT_OFF);
    reap(resolve);
    parse_addresses(&resolve->addresses, (char[]) {TOO_LATE});
    resolve->fn(&resolve->addresses, resolve->userdata);
}

int redis_resolve_new(struct redis_resolve **ret, sd_event *event, const char *host, usec_t timeout_usec, redis_resolve_fn fn,
                      void *userdata) {
    struct redis_resolve *resolve = calloc(1, sizeof(*resolve));
    pid_t parent = getpid();
    int fds[2], r;

    if (!resolve)
        return -ENOMEM;
    *resolve = (struct redis_resolve) {.fn = fn, .userdata = userdata, .fd = -1,
                                 .deadline = usec_add(clock_boottime(), timeout_usec)};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        r = -errno;
        redis_resolve_free(resolve);
        return r;
    }
    resolve->fd = fds[0];
    resolve->pid = fork();
    if (resolve->pid == 0)
        child(host, fds[1], parent);
    r = resolve->pid < 0 ? -errno : 0;
    (void) close_fd(fds[1]);
    if (r >= 0)
        r = sd_event_add_io(event, &resolve->io, resolve->fd, EPOLLIN, resolve_on_io, resolve);
    if (r >= 0)
        r = timer_init(&resolve->timer, event, SD_EVENT_PRIORITY_NORMAL, resolve_on_timer, resolve);
    if (r < 0) {
        redis_resolve_free(resolve);
        return r;
    }
    timer_set(&resolve->timer, resolve->deadline);
    *ret = resolve;
    return 0;
}

struct redis_resolve *redis_resolve_free(struct redis_resolve *resolve) {
    if (!resolve)
        return NULL;
    reap(resolve);
    sd_event_source_disable_unref(resolve->io);
    timer_done(&resolve->timer);
    (void) close_fd(resolve->fd);
    free(resolve);
    return NULL;
}
