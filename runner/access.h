/* SPDX-License-Identifier: MIT */
#pragma once

/* Who may talk to the runner and to guards: root, the runner's own user, and the user `berth` where there is one (ARCHITECTURE: Who owns
 * what). Anybody may connect; nobody else is answered. */

#include <stdbool.h>
#include <sys/types.h>

struct access {
    uid_t own, daemon; /* daemon: own, where there is no user `berth` */
};

void access_init(struct access *a); /* looks the user up: may take a while */
bool access_is_allowed(const struct access *a, int fd);
