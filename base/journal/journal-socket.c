/* SPDX-License-Identifier: MIT */

/* The socket of journald. Without a journald journal.c writes a line to standard error instead.
 *
 * A full queue is retried after a while. Whether EPOLLOUT reports room in a peer's queue depends on the
 * kernel, and it requires a connection, which is lost when journald makes its socket again. */

#include "base/journal/journal-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/list.h"
#include "base/timer.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define SEND_BUFFER (8 << 20)            /* as sd_journal_send(3) has it; the kernel may allow less */
#define RETRY_MIN (10 * USEC_PER_MSEC)   /* doubled each time that journald takes nothing */
#define RETRY_MAX (500 * USEC_PER_MSEC)
#define DRAIN_PAUSE 1 /* ms; nothing else runs then, and the socket holds few entries (net.unix.max_dgram_qlen) */

struct kept {
    struct list in_kept;
    size_t size;
    char entry[];
};

struct journal_socket {
    int fd;
    struct list kept;        /* struct kept, the oldest first */
    size_t kept_bytes, n_kept;
    uint64_t n_lost;         /* since nothing was kept last */
    struct timer timer;      /* all zero: no loop yet */
    usec_t retry;            /* pause before the next attempt */
    journal_socket_fn on_lost;
    void *userdata;
};

/* --- one entry --- */

static int send_message(int fd, const struct msghdr *message) {
    return sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Passes an entry that is too long for a datagram as a sealed file. */
static int send_as_file(int fd, struct sockaddr_un *address, const void *entry, size_t size) {
    _cleanup_close_ int file = memfd_create("journal-entry", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {};
    struct msghdr message = {.msg_name = address, .msg_namelen = sizeof(*address), .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int r = file < 0 ? -errno : file_write(file, entry, size);

    if (r < 0)
        return r;
    if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    control.header = (struct cmsghdr) {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
    return send_message(fd, &message);
}

static int send_now(int fd, const void *entry, size_t size) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
    struct iovec text = {.iov_base = (void *) entry, .iov_len = size};
    struct msghdr message = {.msg_name = &address, .msg_namelen = sizeof(address), .msg_iov = &text, .msg_iovlen = 1};
    int r = send_message(fd, &message);

    return r == -EMSGSIZE || r == -ENOBUFS ? send_as_file(fd, &address, entry, size) : r;
}

/* Returns whether journald listens and may take the entry later. */
static bool is_for_later(int r) {
    return r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -ETOOMANYREFS;
}

/* --- kept entries --- */

static void keep(struct journal_socket *s, const void *entry, size_t size) {
    size_t bytes = sizeof(struct kept) + size;
    struct kept *k = s->n_lost == 0 && bytes <= JOURNAL_SOCKET_KEPT_MAX - s->kept_bytes ? malloc(bytes) : NULL;

    if (!k) { /* all later entries are lost as well until nothing is kept: one gap, reported once */
        s->n_lost++;
        return;
    }
    k->size = size;
    memcpy(k->entry, entry, size);
    list_append(&s->kept, &k->in_kept);
    s->kept_bytes += bytes;
    s->n_kept++;
}

static void drop(struct journal_socket *s, struct kept *k) {
    list_unlink(&k->in_kept);
    s->kept_bytes -= sizeof(*k) + k->size;
    s->n_kept--;
    free(k);
}

/* Sends what journald takes. No error is final, because journald may restart. */
static void flush(struct journal_socket *s) {
    uint64_t n_lost = s->n_lost;

    while (!list_is_empty(&s->kept)) {
        struct kept *k = list_first(&s->kept, struct kept, in_kept);

        if (send_now(s->fd, k->entry, k->size) < 0)
            return;
        s->retry = RETRY_MIN;
        drop(s, k);
    }
    s->n_lost = 0;
    if (n_lost > 0)
        s->on_lost(n_lost, s->userdata);
}

static void set_timer(struct journal_socket *s) {
    if (list_is_empty(&s->kept) && s->n_lost == 0)
        s->retry = RETRY_MIN;
    else
        timer_set_in(&s->timer, s->retry);
}

static void journal_socket_on_time(void *userdata) {
    struct journal_socket *s = userdata;

    s->retry = usec_add(s->retry, s->retry) < RETRY_MAX ? 2 * s->retry : RETRY_MAX;
    flush(s);
    set_timer(s);
}

/* --- the module --- */

int journal_socket_new(struct journal_socket **ret, journal_socket_fn on_lost, void *userdata) {
    const int size = SEND_BUFFER;
    struct journal_socket *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0) {
        int r = -errno;

        free(s);
        return r;
    }
    (void) setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    list_init(&s->kept);
    s->retry = RETRY_MIN;
    s->on_lost = on_lost;
    s->userdata = userdata;
    *ret = s;
    return 0;
}

struct journal_socket *journal_socket_free(struct journal_socket *s) {
    if (!s)
        return NULL;
    while (!list_is_empty(&s->kept))
        drop(s, list_first(&s->kept, struct kept, in_kept));
    timer_done(&s->timer);
    close_fd(s->fd);
    free(s);
    return NULL;
}

int journal_socket_attach(struct journal_socket *s, sd_event *event) {
    int r = timer_init(&s->timer, event, SD_EVENT_PRIORITY_NORMAL, journal_socket_on_time, s);

    if (r < 0)
        return r;
    set_timer(s);
    return 0;
}

int journal_socket_send(struct journal_socket *s, const void *entry, size_t size) {
    bool waited = !list_is_empty(&s->kept) || s->n_lost > 0;
    int r = -EAGAIN;

    if (waited)
        flush(s);
    if (list_is_empty(&s->kept) && s->n_lost == 0)
        r = send_now(s->fd, entry, size);
    if (r < 0 && !is_for_later(r))
        return r;
    if (r < 0)
        keep(s, entry, size);
    if (!waited) /* else it is set */
        set_timer(s);
    return 0;
}

uint64_t journal_socket_drain(struct journal_socket *s, usec_t within) {
    usec_t until = usec_add(clock_monotonic(), within);

    for (flush(s); !list_is_empty(&s->kept) && clock_monotonic() < until; flush(s))
        (void) poll(NULL, 0, DRAIN_PAUSE);
    return s->n_kept + s->n_lost;
}
