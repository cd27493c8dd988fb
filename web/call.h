/* SPDX-License-Identifier: MIT */
#pragma once

/* One call to berthd on its own connection. */

#include <systemd/sd-event.h>

#include "base/client/client.h"

#define CALLS_MAX 16 /* at once */

struct call;

/* reply: borrowed; NULL: berthd does not answer, and `why` has the reason. The call is freed after this
 * returns. */
typedef void (*call_fn)(const struct client_reply *reply, const char *why, void *userdata);

/* params: stolen. Returns -EBUSY (too many calls at once) or another negative errno; then fn is never
 * called. It is not called before this returns. */
int call_new(struct call **ret, sd_event *event, const char *method, json_t *params, call_fn fn, void *userdata);
/* Ends a call without its reply. */
struct call *call_free(struct call *c);
