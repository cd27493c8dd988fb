/* SPDX-License-Identifier: MIT */
#pragma once

/* A listening socket on an event loop. Where descriptors have run out it is left alone for a moment: whoever waits in its queue would
 * wake us again and again. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"

struct listener;

/* A connection: close-on-exec, non-blocking, and the function's to close. It may not free the listener. */
typedef void (*listener_fn)(int fd, void *userdata);

/* fd: stays the caller's, and must outlive the listener. priority: of sd-event. Negative errno. */
int listener_new(struct listener **ret, sd_event *event, int fd, int64_t priority, listener_fn fn, void *userdata);
struct listener *listener_free(struct listener *l);
DEFINE_CLEANUP(struct listener, listener_free)
