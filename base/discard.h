/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes connections on which close(2) may sleep (base/connection.h). A child process takes over the last
 * references and is killed: the kernel closes the descriptors of an ending process without lingering. One
 * child serves all connections that are pending. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"

struct discard;

int discard_new(struct discard **ret, sd_event *event);
/* Closes the pending connections at once. */
struct discard *discard_free(struct discard *d);
DEFINE_CLEANUP(struct discard, discard_free)

/* Ends and closes a connection; takes fd over, which must not be in an epoll set. Does not block. */
void discard_connection(struct discard *d, int fd);
