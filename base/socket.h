/* SPDX-License-Identifier: MIT */
#pragma once

/* Unix sockets: listen, connect, who is there. All descriptors are close-on-exec and non-blocking. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Both return a descriptor or a negative errno; type is SOCK_STREAM or SOCK_SEQPACKET. -ENAMETOOLONG: a path above 107
 * bytes. socket_listen() replaces a socket on which nobody listens any more (-EADDRINUSE if somebody does) and sets mode. */
int socket_listen(const char *path, int type, mode_t mode);
int socket_connect(const char *path, int type);

struct peer {
    uid_t uid;
    gid_t gid;
    pid_t pid; /* of the process that connected; it may be gone */
};
int socket_peer(int fd, struct peer *ret);

struct caller { /* a peer and its supplementary groups (SO_PEERGROUPS), as they were when it connected; begin with {} */
    struct peer peer;
    gid_t *groups;
    size_t n_groups;
};
int socket_caller(int fd, struct caller *ret);
bool caller_has_group(const struct caller *c, gid_t gid); /* primary or supplementary */
void caller_done(struct caller *c);
