/* SPDX-License-Identifier: MIT */
#pragma once

/* Listening sockets, passed by the service manager or made here. All are close-on-exec and non-blocking. */

#include <stdbool.h>

#define LISTEN_MAX 4

/* Stores the sockets that the service manager passed. Returns their number or a negative errno; -EINVAL: one
 * of them is not a listening stream socket. */
int listen_received(int fds[static LISTEN_MAX], bool is_unix[static LISTEN_MAX]);
/* Listens on "127.0.0.1:9737" or "[::1]:9737". Returns the socket or a negative errno; -EINVAL: not an
 * address. */
int listen_tcp(const char *text);
