/* SPDX-License-Identifier: MIT */

/* Descriptors that clients pass (SCM_RIGHTS): one at most, for one call. A hostile client can make us hold no more than that, and not for
 * longer than its message may take; it takes the place of a client. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/control-internal.h"

/* All that one recvmsg(2) brought are closed but the last one. How many there were. */
static size_t take_all(struct msghdr *message, int *ret_fd) {
    size_t n = 0;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        size_t count = h->cmsg_len > CMSG_LEN(0) ? (h->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            close_fd(*ret_fd);
            memcpy(ret_fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
        }
        n += count;
    }
    return n;
}

/* What is wrong with that many at once; NULL: nothing. */
static const char *check(const struct control_client *c, size_t n) {
    if (n > 1 || c->passed_fd >= 0)
        return "one descriptor at most comes along with a call";
    if (!control_has_room(c->control, c->privileged))
        return "berthd has too many clients to take a descriptor";
    return NULL;
}

ssize_t passed_receive(struct control_client *c, size_t size, const char **ret_why) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))]; /* what the kernel finds no room for here it closes */
    } control;
    struct iovec iov = {c->in + c->in_size, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    _cleanup_close_ int fd = -1;
    size_t passed;
    ssize_t n;

    if (!c->privileged) /* has no call for one: all are closed by the kernel, without having been ours */
        return recv(c->fd, c->in + c->in_size, size, MSG_DONTWAIT);
    n = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return n;
    passed = take_all(&message, &fd);
    if (passed == 0 && message.msg_flags & MSG_CTRUNC) { /* no descriptors are left here: as if the connection had not been taken */
        errno = EMFILE;
        return -1;
    }
    if (passed == 0 || n == 0)
        return n;
    *ret_why = message.msg_flags & MSG_CTRUNC ? check(c, 2) : check(c, passed);
    if (*ret_why)
        return n;
    /* A receive ends with the piece that carried descriptors (unix(7)), so its last byte is of their message. */
    c->passed_fd = steal_fd(&fd);
    c->passed_at = c->in_size + (size_t) n - 1;
    c->control->n_passed++;
    return n;
}

int passed_take(struct control_client *c, size_t begin, size_t size) {
    if (c->passed_fd < 0 || c->passed_at < begin || c->passed_at >= begin + size)
        return -1;
    c->control->n_passed--;
    return steal_fd(&c->passed_fd);
}

void passed_drop_bytes(struct control_client *c, size_t begin, size_t size) {
    if (c->passed_fd >= 0 && c->passed_at >= begin + size)
        c->passed_at -= size;
}

void passed_close(struct control_client *c) {
    if (c->passed_fd < 0)
        return;
    c->passed_fd = close_fd(c->passed_fd);
    c->control->n_passed--;
}
