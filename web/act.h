/* SPDX-License-Identifier: MIT */
#pragma once

/* Actions: calls of io.berth for an authenticated user. berthd decides whether berth-web's groups allow the
 * call. */

#include <systemd/sd-event.h>

#include "web/http.h"

struct act;

/* token: copied; NULL: nobody can log in. */
int act_new(struct act **ret, sd_event *event, const char *token);
struct act *act_free(struct act *a);

/* Answers a request of the routes do, login and logout. */
void act_on_request(struct act *a, struct exchange *x, const struct http_request *q);
/* Must be called at the end of an exchange of any route. */
void act_on_end(struct act *a, struct exchange *x);
