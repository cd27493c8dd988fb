/* SPDX-License-Identifier: MIT */
#pragma once

/* Gives up connections that close(2) may sleep on (base/connection.h). A child process takes over the last references and is killed: the
 * kernel closes without lingering what an ending process had. One child serves all connections that were given up meanwhile. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"

struct discard;

int discard_new(struct discard **ret, sd_event *event);
/* What is still to be given up is given up at once. */
struct discard *discard_free(struct discard *d);
DEFINE_CLEANUP(struct discard, discard_free)

/* Ends and closes a connection; fd: taken over. It must be in no epoll and watched by nobody any more. Never blocks. */
void discard_connection(struct discard *d, int fd);
