/* SPDX-License-Identifier: MIT */
#pragma once

/* The data of berthd: a picture of pools and hosts each second while somebody looks, and events as they
 * happen. Each has its own connection, which is restored after a failure. */

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct source;

struct source_handler { /* what is passed is borrowed */
    void (*on_version)(const json_t *version, void *userdata);
    void (*on_picture)(const json_t *picture, void *userdata); /* a reply of io.berth.Look, with hosts */
    void (*on_event)(const json_t *event, void *userdata);
    void (*on_missed)(json_int_t missed, void *userdata); /* number of events; -1: not known */
    void (*on_away)(const char *why, void *userdata);     /* berthd does not answer; repeated each second */
    void *userdata;
};

/* Begins at once. handler: copied. Negative errno. */
int source_new(struct source **ret, sd_event *event, const struct source_handler *handler);
struct source *source_free(struct source *s);
DEFINE_CLEANUP(struct source, source_free)

/* Notes that somebody looks. For some time a picture comes each second, else every five seconds. */
void source_look(struct source *s);
/* Returns when berthd last answered (boottime); 0: never. */
usec_t source_answered(const struct source *s);
