/* SPDX-License-Identifier: MIT */
#pragma once

/* Unix sockets: listen, connect, identify the peer. All descriptors are close-on-exec and non-blocking. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Both return a descriptor or a negative errno; type is SOCK_STREAM or SOCK_SEQPACKET. -ENAMETOOLONG: a path
 * above 107 bytes. socket_listen() sets the mode, and replaces a socket on which no process listens (else
 * -EADDRINUSE). */
int socket_listen(const char *path, int type, mode_t mode);
int socket_connect(const char *path, int type);
/* Removes a socket, even if a process listens there. 0, also without such a file; -EADDRINUSE: the file is no socket; or
 * another negative errno. */
int socket_remove(const char *path);

struct peer {
    uid_t uid;
    gid_t gid;
    pid_t pid; /* of the process that connected; it may have ended */
};
int socket_peer(int fd, struct peer *ret);

struct caller { /* a peer and its supplementary groups (SO_PEERGROUPS) when it connected; initialize with {} */
    struct peer peer;
    gid_t *groups;
    size_t n_groups;
};
int socket_caller(int fd, struct caller *ret);
bool caller_has_group(const struct caller *c, gid_t gid); /* primary or supplementary */
void caller_done(struct caller *c);
