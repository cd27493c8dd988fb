/* SPDX-License-Identifier: MIT */
#pragma once

/* Actions: a method of io.berth for a user who proved who he is. berthd decides whether the group of berth-web may. */

#include <systemd/sd-event.h>

#include "web/http.h"

struct act;

/* token: copied; NULL: nobody logs in. */
int act_new(struct act **ret, sd_event *event, const char *token);
struct act *act_free(struct act *a);

/* Answers a request of the routes do, login, logout. */
void act_on_request(struct act *a, struct exchange *x, const struct http_request *q);
/* An exchange of any route ends. */
void act_on_end(struct act *a, struct exchange *x);
