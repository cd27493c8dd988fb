/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-web's root: what each path answers, of what berthd tells. */

#include <systemd/sd-event.h>

#include "web/http.h"

struct app;

struct app_options { /* texts are borrowed */
    struct site site;
    const char *title; /* NULL: none */
    const char *token; /* NULL: nobody logs in here */
};

int app_new(struct app **ret, sd_event *event, const struct app_options *options);
/* Serves a listening socket, which it owns. */
int app_listen(struct app *a, int fd, bool is_unix);
struct app *app_free(struct app *a);
DEFINE_CLEANUP(struct app, app_free)
