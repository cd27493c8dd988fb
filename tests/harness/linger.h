/* SPDX-License-Identifier: MIT */
#pragma once

/* Sockets that an attacker passes to a process so that its close(2) sleeps: TCP sockets with SO_LINGER and
 * unread bytes. */

#include <stddef.h>
#include <sys/types.h>

#define LINGER_TIME 20 /* seconds that a close sleeps, if nothing ends it earlier */

/* Makes a socket on loopback whose last close sleeps. The peers live as long as the process that first
 * called linger_begin(), or this function, or until linger_end(). */
int linger_begin(void);
int linger_socket(void);
void linger_end(void);

/* sendmsg(2) of these bytes with the descriptor attached. fd stays the caller's. */
ssize_t linger_send(int socket, const void *data, size_t size, int fd, int flags);
/* Sends a new lingering socket, to which the message has the only reference. */
ssize_t linger_attack(int socket, const void *data, size_t size, int flags);
