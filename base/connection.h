/* SPDX-License-Identifier: MIT */
#pragma once

/* A connection of a unix socket whose peer may be hostile. The peer can attach descriptors to what it sends (SCM_RIGHTS), and the process
 * that drops the last reference to one of these closes it: in recvmsg(2) where there is no room for them, or in close(2) where they
 * were not received. Such a close may sleep (a TCP socket with SO_LINGER and unsent data, say), for as long as the peer likes. So nothing
 * here receives a descriptor, and a connection that may hold some is not closed but given up (base/discard.h). */

#include <stdbool.h>
#include <sys/types.h>

/* After accept(2): urgent bytes come in their turn, where they would else be skipped and freed with what is attached to them; and
 * credentials, which would look like descriptors, are not attached. Negative errno. */
int connection_prepare(int fd);

/* As recv(2) without blocking: the number of bytes, 0 at the end, or a negative errno. -EBADMSG: descriptors are attached to what is next;
 * -EMSGSIZE: a datagram is longer than this. Nothing was received then, nor ever will be: give the connection up. */
ssize_t connection_receive(int fd, void *data, size_t size);

/* Ends the connection in both directions and throws away what was not received. The peer still gets what it was sent. True: close(2) of it
 * cannot sleep. False: descriptors are attached to what is left. */
bool connection_end(int fd);
