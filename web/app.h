/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-web's root: the answers of each path, from what berthd sends. */

#include <systemd/sd-event.h>

#include "web/http.h"

struct app;

struct app_options { /* texts are borrowed */
    struct site site;
    const char *title; /* NULL: none */
    const char *token; /* NULL: nobody can log in */
};

int app_new(struct app **ret, sd_event *event, const struct app_options *options);
/* Serves a listening socket. fd: stolen. */
int app_listen(struct app *a, int fd, bool is_unix);
struct app *app_free(struct app *a);
DEFINE_CLEANUP(struct app, app_free)
