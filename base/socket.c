/* SPDX-License-Identifier: MIT */
/* Unix sockets. Never the abstract namespace, which is open to every process of the network namespace
 * (CVE-2020-15257). */

#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"

static int socket_address(const char *path, struct sockaddr_un *ret) {
    size_t length = strlen(path);

    if (length == 0)
        return -EINVAL;
    if (length >= sizeof(ret->sun_path))
        return -ENAMETOOLONG;
    *ret = (struct sockaddr_un) {.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, length + 1);
    return 0;
}

/* Makes a socket and its address for a path. */
static int socket_new(const char *path, int type, struct sockaddr_un *ret) {
    int r = socket_address(path, ret), fd;

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

int socket_connect(const char *path, int type) {
    struct sockaddr_un address;
    _cleanup_close_ int fd = socket_new(path, type, &address);

    if (fd < 0)
        return fd;
    /* A unix socket connects at once or not at all: EAGAIN is a full backlog, not a connection under way (unix(7)). */
    if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    return steal_fd(&fd);
}

int socket_remove(const char *path) {
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -EADDRINUSE;
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Removes a socket on which no process listens. 0: the path is free now; -EADDRINUSE: it is not. */
static int socket_clear(const char *path, int type) {
    _cleanup_close_ int fd = socket_connect(path, type);

    if (fd == -ENOENT || fd == -ECONNREFUSED)
        return socket_remove(path);
    return -EADDRINUSE;
}

static int socket_bind(int fd, const char *path, int type, const struct sockaddr_un *address) {
    int r;

    if (bind(fd, (const struct sockaddr *) address, sizeof(*address)) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return -errno;
    r = socket_clear(path, type);
    if (r < 0)
        return r;
    return bind(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 ? -errno : 0;
}

int socket_listen(const char *path, int type, mode_t mode) {
    struct sockaddr_un address;
    _cleanup_close_ int fd = socket_new(path, type, &address);
    int r;

    if (fd < 0)
        return fd;
    /* The file gets the socket's own mode less the umask, so it is never more open than it should be. */
    if (fchmod(fd, mode) < 0)
        return -errno;
    r = socket_bind(fd, path, type, &address);
    if (r < 0)
        return r;
    if (chmod(path, mode) < 0 || listen(fd, SOMAXCONN) < 0) {
        r = -errno;
        (void) unlink(path);
        return r;
    }
    return steal_fd(&fd);
}

int socket_peer(int fd, struct peer *ret) {
    struct ucred credentials;
    socklen_t size = sizeof(credentials);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
        return -errno;
    /* Without a connection the kernel returns the ids of nobody, which must not pass for a user. */
    if (size != sizeof(credentials) || credentials.uid == (uid_t) -1)
        return -ENOTCONN;
    *ret = (struct peer) {.uid = credentials.uid, .gid = credentials.gid, .pid = credentials.pid};
    return 0;
}

/* Returns the supplementary groups, to be freed. The kernel answers a size that is too small with ERANGE and
 * the right size. */
static int socket_peer_groups(int fd, gid_t **ret, size_t *ret_n) {
    _cleanup_free_ gid_t *groups = NULL;
    socklen_t size = 64 * sizeof(gid_t);

    for (;;) {
        gid_t *more = realloc(groups, size);

        if (!more)
            return -ENOMEM;
        groups = more;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
            break;
        if (errno != ERANGE)
            return -errno;
    }
    *ret = steal_pointer(&groups);
    *ret_n = size / sizeof(gid_t);
    return 0;
}

int socket_caller(int fd, struct caller *ret) {
    struct caller c = {};
    int r = socket_peer(fd, &c.peer);

    if (r == 0)
        r = socket_peer_groups(fd, &c.groups, &c.n_groups);
    if (r == 0)
        *ret = c;
    return r;
}

bool caller_has_group(const struct caller *c, gid_t gid) {
    bool found = c->peer.gid == gid;

    for (size_t i = 0; i < c->n_groups && !found; i++)
        found = c->groups[i] == gid;
    return found;
}

void caller_done(struct caller *c) {
    free(c->groups);
    *c = (struct caller) {};
}
