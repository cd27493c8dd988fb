/* SPDX-License-Identifier: MIT */
#include "runner/access.h"

#include <errno.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/socket.h"
#include "conf/settings.h"

void access_init(struct access *a) {
    const struct passwd *user = geteuid() == 0 ? getpwnam(DAEMON_USER) : NULL;

    a->own = geteuid();
    a->daemon = user ? user->pw_uid : a->own;
}

int access_listen(const struct access *a, const char *path) {
    _cleanup_close_ int fd = socket_listen(path, SOCK_SEQPACKET, 0600);
    int r;

    if (fd < 0)
        return fd;
    if (a->daemon != a->own && chown(path, a->daemon, (gid_t) -1) < 0) {
        r = -errno;
        (void) unlink(path);
        return r;
    }
    return steal_fd(&fd);
}

bool access_is_allowed(const struct access *a, int fd) {
    struct peer peer;

    if (socket_peer(fd, &peer) < 0)
        return false;
    return peer.uid == 0 || peer.uid == a->own || peer.uid == a->daemon;
}
