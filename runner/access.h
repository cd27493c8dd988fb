/* SPDX-License-Identifier: MIT */
#pragma once

/* Who may talk to the runner and to guards: root, the runner's own user, and, where the runner is root, the user `berth` (ARCHITECTURE: Who
 * owns what). Nobody else can connect, and whoever does nevertheless is not answered. */

#include <stdbool.h>
#include <sys/types.h>

struct access {
    uid_t own, daemon; /* daemon: own, where there is no user `berth` or it cannot be given anything */
};

void access_init(struct access *a); /* looks the user up: may take a while */
/* A listening packet socket that these alone can connect to. A descriptor or a negative errno, as socket_listen(). */
int access_listen(const struct access *a, const char *path);
bool access_is_allowed(const struct access *a, int fd);
