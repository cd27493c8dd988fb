/* SPDX-License-Identifier: MIT */
#pragma once

/* A connection of a unix socket whose peer may be hostile. The peer can attach descriptors to its data
 * (SCM_RIGHTS). The process that drops the last reference to a descriptor closes it: in recvmsg(2) without
 * room for it, or in close(2) of a socket that did not receive it. Such a close may sleep as long as the
 * peer likes, for example on a TCP socket with SO_LINGER and unsent data. So no function here receives a
 * descriptor, and a connection that may hold some is passed to base/discard.h instead of closed. */

#include <stdbool.h>
#include <sys/types.h>

/* To be called after accept(2). Receives urgent bytes in order, because they would otherwise be skipped and
 * freed together with attached descriptors. Detaches credentials, which would look like descriptors.
 * Negative errno. */
int connection_prepare(int fd);

/* As recv(2) without blocking: the number of bytes, 0 at the end, or a negative errno. -EBADMSG: descriptors
 * are attached to the next data; -EMSGSIZE: a datagram is longer. Both are final: give the connection up. */
ssize_t connection_receive(int fd, void *data, size_t size);

/* Ends the connection in both directions and discards unread data. The peer still gets what was sent to it.
 * True: close(2) cannot sleep. False: descriptors are attached to the rest. */
bool connection_end(int fd);
