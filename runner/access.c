/* SPDX-License-Identifier: MIT */
#include "runner/access.h"

#include <pwd.h>
#include <unistd.h>

#include "base/socket.h"

#define DAEMON_USER "berth"

void access_init(struct access *a) {
    const struct passwd *user = getpwnam(DAEMON_USER);

    a->own = geteuid();
    a->daemon = user ? user->pw_uid : a->own;
}

bool access_is_allowed(const struct access *a, int fd) {
    struct peer peer;

    if (socket_peer(fd, &peer) < 0)
        return false;
    return peer.uid == 0 || peer.uid == a->own || peer.uid == a->daemon;
}
