/* SPDX-License-Identifier: MIT */
#pragma once

/* An event as `berth watch` prints it. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"

/* event: io.berth's Event. These return a line's JSON: the fields of the journal in lower case without
 * BERTH_, numbers as numbers, pools as an object. NULL: no memory. */
json_t *event_line_to_json(const json_t *event);
/* For what berth itself has to say: "gap" (missed; -1: null) and "reconnected" (no number). at: the place in
 * the stream. */
json_t *event_line_gap(const char *at, json_int_t missed, usec_t realtime);
json_t *event_line_reconnected(const char *at, usec_t realtime);

/* Prints a line for people, in local time, from the JSON of a line. */
void event_line_print(FILE *f, const json_t *line);

/* Whether the event belongs to the pool (a pattern: to one of its keys), or to the job (a template: to one
 * of its instances). */
bool event_line_has_pool(const json_t *line, const char *pool);
bool event_line_has_job(const json_t *line, const char *job);
