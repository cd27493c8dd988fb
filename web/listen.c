/* SPDX-License-Identifier: MIT */
#include "web/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"

#define ADDRESS_SIZE 64
#define BACKLOG 128

int listen_received(int fds[static LISTEN_MAX], bool is_unix[static LISTEN_MAX]) {
    int n = sd_listen_fds(true);

    if (n > LISTEN_MAX)
        return -EINVAL;
    for (int i = 0; i < n; i++) {
        int fd = SD_LISTEN_FDS_START + i;

        is_unix[i] = sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0;
        if (!is_unix[i] && sd_is_socket(fd, AF_INET, SOCK_STREAM, 1) <= 0 &&
            sd_is_socket(fd, AF_INET6, SOCK_STREAM, 1) <= 0)
            return -EINVAL;
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
            return -errno;
        fds[i] = fd;
    }
    return n;
}

/* Cuts "[::1]:9737" or "127.0.0.1:9737" into two texts. */
static int cut(const char *text, char address[static ADDRESS_SIZE], const char **ret_port) {
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t) (colon - text) : 0;

    if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
        text++;
        n -= 2;
    } else if (memchr(text, ':', n)) {
        return -EINVAL;
    }
    if (n == 0 || n >= ADDRESS_SIZE || !colon[1])
        return -EINVAL;
    memcpy(address, text, n);
    address[n] = '\0';
    *ret_port = colon + 1;
    return 0;
}

int listen_tcp(const char *text) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    _cleanup_close_ int fd = -1;
    char address[ADDRESS_SIZE];
    struct addrinfo *info;
    const char *port;
    int on = 1, r = cut(text, address, &port);

    if (r < 0 || getaddrinfo(address, port, &hints, &info) != 0)
        return -EINVAL;
    fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        r = -errno;
    freeaddrinfo(info);
    return r < 0 ? r : steal_fd(&fd);
}
