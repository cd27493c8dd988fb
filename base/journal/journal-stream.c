/* SPDX-License-Identifier: MIT */
#include "base/journal/journal-stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STREAM_SOCKET "/run/systemd/journal/stdout"
#define STREAM_BUFFER (8 << 20) /* bytes that journald may be behind before the command must wait; as sd_journal_stream_fd(3) */

static int open_socket(void) {
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = STREAM_SOCKET};
    const int size = STREAM_BUFFER;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || shutdown(fd, SHUT_RD) < 0) {
        int r = -errno;

        close_fd(fd);
        return r;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    return fd;
}

/* Sends seven lines: identifier, unit (which journald accepts from root alone), priority, whether lines begin with a
 * priority of their own, and three places to which they are forwarded. */
static bool put_header(int fd, const char *identifier, const char *run, int priority) {
    _cleanup_free_ char *header = NULL;
    int n = asprintf(&header, "%s\n" JOURNAL_STREAM_UNIT_BEGIN "%s" JOURNAL_STREAM_UNIT_END "\n%d\n0\n0\n0\n0\n",
                     identifier, run, priority);

    if (n < 0)
        header = NULL;
    return n > 0 && send(fd, header, (size_t) n, MSG_NOSIGNAL) == n;
}

int journal_stream_open(const char *identifier, const char *run, int priority) {
    int fd = open_socket();

    if (fd >= 0 && put_header(fd, identifier, run, priority))
        return fd;
    close_fd(fd);
    fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return fd < 0 ? -errno : fd;
}
