/* SPDX-License-Identifier: MIT */
#pragma once

/* Listening sockets: those of the service manager, or made here. All are close-on-exec and non-blocking. */

#include <stdbool.h>

#define LISTEN_MAX 4

/* Stores the sockets that the service manager passed, and returns their number. Negative errno; -EINVAL: one of them is no
 * listening stream socket. */
int listen_received(int fds[static LISTEN_MAX], bool is_unix[static LISTEN_MAX]);
/* "127.0.0.1:9737", "[::1]:9737". -EINVAL: not such an address. */
int listen_tcp(const char *text);
