/* SPDX-License-Identifier: MIT */
#pragma once

/* One call to berthd on a connection of its own, for what is asked now and then. */

#include <systemd/sd-event.h>

#include "base/client/client.h"

#define CALLS_MAX 16 /* at once */

struct call;

/* reply: borrowed; NULL: berthd does not answer, why has the reason. Called once, and frees the call afterwards. */
typedef void (*call_fn)(const struct client_reply *reply, const char *why, void *userdata);

/* params: stolen. -EBUSY: too many at once; another negative errno. fn is not called then, nor before this returns. */
int call_new(struct call **ret, sd_event *event, const char *method, json_t *params, call_fn fn, void *userdata);
/* Nobody waits for the reply any more. */
struct call *call_free(struct call *c);
