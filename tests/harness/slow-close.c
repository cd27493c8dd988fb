/* SPDX-License-Identifier: MIT */
#include "tests/harness/slow-close.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

static int listener = -1; /* never accepts: the peers stay in its queue */
static struct sockaddr_in address;

int slow_close_begin(void) {
    const int small = 4096; /* its connections inherit it: the rest stays unsent */
    socklen_t size = sizeof(address);

    address = (struct sockaddr_in) {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) < 0 || bind(listener, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(listener, 4096) < 0 ||
        getsockname(listener, (struct sockaddr *) &address, &size) < 0)
        return -errno;
    return 0;
}

int slow_close_socket(void) {
    const struct linger linger = {.l_onoff = 1, .l_linger = SLOW_CLOSE_TIME};
    const int size = 4096; /* little, for there may be thousands */
    static const char bytes[65536];
    _cleanup_close_ int fd = -1;

    if (listener < 0 && slow_close_begin() < 0)
        return -errno;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ||
        connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0)
        return -errno;
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) /* more than the peer buffers */
        ;
    return steal_fd(&fd);
}

void slow_close_end(void) {
    listener = close_fd(listener);
}

ssize_t slow_close_send(int socket, const void *data, size_t size, int fd, int flags) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char copy[4096];
    struct iovec iov = {copy, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)};
    struct cmsghdr *h = CMSG_FIRSTHDR(&message);

    memcpy(copy, data, size);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &fd, sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL | flags);
}

ssize_t slow_close_attack(int socket, const void *data, size_t size, int flags) {
    _cleanup_close_ int fd = slow_close_socket();
    ssize_t n = fd < 0 ? fd : slow_close_send(socket, data, size, fd, flags);
    /* This close does not sleep while the message has another reference. Without a message it must not sleep
     * either. */
    const struct linger none = {0};

    if (n < 0 && fd >= 0)
        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    return n;
}
