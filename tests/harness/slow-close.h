/* SPDX-License-Identifier: MIT */
#pragma once

/* Sockets that an attacker passes to a process so that its close(2) sleeps: TCP sockets with SO_LINGER and
 * unread bytes. */

#include <stddef.h>
#include <sys/types.h>

#define SLOW_CLOSE_TIME 20 /* seconds that a close sleeps, if nothing ends it earlier */

/* Makes a socket on loopback whose last close sleeps. The peers live as long as the process that first
 * called slow_close_begin(), or this function, or until slow_close_end(). */
int slow_close_begin(void);
int slow_close_socket(void);
void slow_close_end(void);

/* sendmsg(2) of these bytes with the descriptor attached. fd stays the caller's. */
ssize_t slow_close_send(int socket, const void *data, size_t size, int fd, int flags);
/* Sends a new lingering socket, to which the message has the only reference. */
ssize_t slow_close_attack(int socket, const void *data, size_t size, int flags);
