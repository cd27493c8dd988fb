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

/* Stores one passed descriptor at the place of its name. */
static int take(const char *const *names, size_t n_names, const char *name, int fd, int type, int *ret_fds) {
    for (size_t i = 0; name && i < n_names; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        if (ret_fds[i] >= 0 || sd_is_socket_unix(fd, type, 1, NULL, 0) <= 0)
            return -EINVAL;
        ret_fds[i] = fd;
        /* the service manager may have left it blocking */
        return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    }
    return -EINVAL;
}

int activation_receive(const char *const *names, size_t n_names, int type, int *ret_fds) {
    char **passed = NULL;
    int n = sd_listen_fds_with_names(true, &passed), r = n < 0 ? n : 0;

    for (size_t i = 0; i < n_names; i++)
        ret_fds[i] = -1;
    for (int i = 0; r >= 0 && i < n; i++)
        r = take(names, n_names, passed ? passed[i] : NULL, SD_LISTEN_FDS_START + i, type, ret_fds);
    if (r >= 0 && n > 0 && ret_fds[0] < 0)
        r = -EINVAL;
    free_names(passed);
    for (int i = 0; r < 0 && i < n; i++)
        close_fd(SD_LISTEN_FDS_START + i);
    for (size_t i = 0; r < 0 && i < n_names; i++)
        ret_fds[i] = -1;
    return r < 0 ? r : 0;
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
