/* SPDX-License-Identifier: MIT */
#pragma once

/* An event as `berth watch` prints it. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"

/* Returns the members that each line has. time: RFC 3339 UTC. at: the place in the stream. NULL: no memory,
 * here and below. */
json_t *event_line_new(const char *time, const char *at, const char *event, const char *message);
/* Returns the JSON of a line: the fields of the journal in lower case without BERTH_, numbers as numbers,
 * pools as an object. event: io.berth's Event. */
json_t *event_line_to_json(const json_t *event);
/* Return the JSON of a line of berth itself: "gap" (missed: -1 is null), "reconnected". at: the place in the
 * stream. */
json_t *event_line_gap(const char *at, json_int_t missed, usec_t realtime);
json_t *event_line_reconnected(const char *at, usec_t realtime);

/* Prints a line for people, in local time, from the JSON of a line. One that is wider than `width` goes on at a word, below the event's
 * text; SIZE_MAX: no line does. */
void event_line_print(FILE *f, const json_t *line, size_t width);

/* Prints what happened, "granted after 3m12s", without the time, the job, the run, the pools and the end of the line. */
void event_line_print_short(FILE *f, const json_t *line);

/* Return whether the event belongs to the pool (or a key of the pattern), to the job (or an instance of the
 * template). */
bool event_line_has_pool(const json_t *line, const char *pool);
bool event_line_has_job(const json_t *line, const char *job);
