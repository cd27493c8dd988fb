/* SPDX-License-Identifier: MIT */
#include "base/process/gate.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"

union control { /* of one descriptor */
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int gate_close(struct gate *gate) {
    int ends[2];

    if (gate->size > GATE_FACTS_MAX)
        return -EMSGSIZE;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    gate->parent = ends[0];
    gate->child = ends[1];
    return 0;
}

void gate_done(struct gate *gate) {
    gate->parent = close_fd(gate->parent);
    gate->child = close_fd(gate->child);
}

void gate_forget_child(struct gate *gate) {
    gate->child = close_fd(gate->child);
}

/* The first byte is there even without facts: an empty message would look like the end. */
int gate_open(struct gate *gate) {
    char begin = 1;
    struct iovec parts[] = {{&begin, sizeof(begin)}, {gate->facts, gate->size}};
    union control control = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = ELEMENTSOF(parts)};
    ssize_t n;
    int r;

    if (gate->fd && *gate->fd >= 0) {
        struct cmsghdr *header = &control.header;

        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), gate->fd, sizeof(int));
    }
    do
        n = sendmsg(gate->parent, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    r = n < 0 ? -errno : 0;
    gate_done(gate);
    return r == -ECONNRESET ? -EPIPE : r;
}

static void take_fd(struct gate *gate, struct msghdr *message) {
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);

    if (!gate->fd)
        return;
    *gate->fd = -1;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(gate->fd, CMSG_DATA(header), sizeof(int));
}

int gate_wait(struct gate *gate) {
    char begin = 0;
    struct iovec parts[] = {{&begin, sizeof(begin)}, {gate->facts, gate->size}};
    union control control;
    struct msghdr message = {
        .msg_iov = parts, .msg_iovlen = ELEMENTSOF(parts), .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n;

    if (gate->child < 0)
        return 0;
    gate->parent = close_fd(gate->parent); /* so that the child reads the end if the parent dies */
    do
        n = recvmsg(gate->child, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        _exit(0);
    if (n < 0)
        return errno;
    take_fd(gate, &message);
    gate_done(gate);
    if ((size_t) n != sizeof(begin) + gate->size || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return EMFILE; /* the limit on descriptors kept the hold out: CTRUNC */
    FAILPOINT("gate-passed");
    return 0;
}
