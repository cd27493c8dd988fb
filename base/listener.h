/* SPDX-License-Identifier: MIT */
#pragma once

/* A listening socket on an event loop. It pauses for a moment when descriptors have run out, because waiting connections
 * would wake the loop again and again. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"

struct listener;

/* Called for a new connection, which is close-on-exec, non-blocking and owned by the callee. Must not free
 * the listener. */
typedef void (*listener_fn)(int fd, void *userdata);

/* fd: stays the caller's and must outlive the listener. priority: of sd-event. Negative errno. */
int listener_new(struct listener **ret, sd_event *event, int fd, int64_t priority, listener_fn fn, void *userdata);
struct listener *listener_free(struct listener *l);
DEFINE_CLEANUP(struct listener, listener_free)
