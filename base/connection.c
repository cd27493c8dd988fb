/* SPDX-License-Identifier: MIT */
#include "base/connection.h"

#include <errno.h>
#include <sys/socket.h>

#define END_TURNS 512 /* more pieces than a socket's buffer holds (net.core.wmem_max), even if each is an empty datagram */

int connection_prepare(int fd) {
    const int on = 1, off = 0;

    if (setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)) < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof(off)) < 0)
        return -errno;
    return 0;
}

ssize_t connection_receive(int fd, void *data, size_t size) {
    struct iovec iov = {data, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    /* Peeking duplicates the attached descriptors and drops the duplicates, which are not the last
     * references. */
    n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    if (message.msg_flags & MSG_CTRUNC)
        return -EBADMSG;
    if (message.msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    if (n == 0)
        return 0;
    n = recv(fd, data, (size_t) n, MSG_DONTWAIT); /* no more bytes than were peeked at */
    return n < 0 ? -errno : n;
}

/* Discards one more piece. 1: there may be more; 0: there is nothing; negative errno: it cannot
 * be discarded. */
static int connection_waste(int fd, bool is_stream) {
    char waste[16384];
    ssize_t n = connection_receive(fd, waste, sizeof(waste));

    if (n > 0 || n == -EINTR || n == -ECONNRESET)
        return 1;
    if (n == 0 && is_stream)
        return 0;
    if (n == 0 || n == -EMSGSIZE) /* an empty datagram, which looks like the end, or a long one */
        return recv(fd, waste, sizeof(waste), MSG_DONTWAIT) < 0 ? -errno : 1;
    return (int) n;
}

bool connection_end(int fd) {
    int type, r = 1;
    socklen_t size = sizeof(type);

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || shutdown(fd, SHUT_RDWR) < 0)
        return false;
    for (unsigned i = 0; i < END_TURNS && r > 0; i++)
        r = connection_waste(fd, type == SOCK_STREAM);
    return r == 0 || (r > 0 && type != SOCK_STREAM);
}
