/* SPDX-License-Identifier: MIT */

#include "base/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/connection.h"

#define TURNED_AWAY_MAX 4096 /* more than a queue holds (SOMAXCONN); callers that reconnect at once must not keep this process alive */

static void free_names(char **names) {
    for (char **name = names; name && *name; name++)
        free(*name);
    free(names);
}

int activation_receive(const char *name, int type, int *ret_fd) {
    char **names = NULL;
    int n = sd_listen_fds_with_names(true, &names), fd = SD_LISTEN_FDS_START, r;

    if (n == 0) {
        free_names(names);
        *ret_fd = -1;
        return 0;
    }
    if (n < 0)
        r = n;
    else if (n > 1 || !names || strcmp(names[0], name) != 0 || sd_is_socket_unix(fd, type, 1, NULL, 0) <= 0)
        r = -EINVAL;
    else /* the service manager may have left it blocking */
        r = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    free_names(names);
    if (r < 0) {
        for (int i = 0; i < n; i++)
            close_fd(fd + i);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

bool activation_is_at(int fd, const char *path) {
    return sd_is_socket_unix(fd, 0, -1, path, 0) > 0;
}

void activation_turn_away(int fd, const void *text, size_t size) {
    for (unsigned i = 0; fd >= 0 && i < TURNED_AWAY_MAX; i++) {
        int caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (caller < 0 && errno != EINTR && errno != ECONNABORTED)
            break;
        if (caller >= 0 && size > 0)
            (void) send(caller, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (caller >= 0 && connection_end(caller))
            close_fd(caller);
    }
}
