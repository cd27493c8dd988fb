/* SPDX-License-Identifier: MIT */
#pragma once

/* The users that may connect to berth-runner and to guards: root, the runner's own user, and the user
 * `berth` if the runner is root. The modes of the sockets keep others out, and a connection of another user
 * is closed. */

#include <stdbool.h>
#include <sys/types.h>

struct access {
    uid_t own, daemon; /* daemon: own, if the runner is not root or there is no user `berth` */
};

void access_init(struct access *a); /* blocks (NSS) */
/* Creates a listening packet socket for these users. Returns a descriptor or a negative errno. */
int access_listen(const struct access *a, const char *path);
/* Returns whether the peer of a connection is one of them. */
bool access_is_allowed(const struct access *a, int fd);
