/* SPDX-License-Identifier: MIT */
#pragma once

/* What `berth watch --cluster` sees by comparing pictures of io.berth.Look, as lines (event-line.h) with
 * `"sampled": true`. */

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"

/* Returns whether this is the name of such a line. */
bool sample_is_event(const char *name);

/* Returns whether the picture shows the cluster. While Redis is away it shows one host, and in a grace
 * period hosts have yet to report what they hold. */
bool sample_is_whole(const json_t *picture);
/* Returns the claims of cluster pools, the limits and the hosts of a picture; NULL: no memory, here and
 * below. */
json_t *sample_new(const json_t *picture);
/* Returns a list of lines: what differs since the sample `before`, and pools whose claims are not all listed
 * any more. before: NULL for the first sample, which has only the latter. Adds to `now` what the next
 * comparison needs. at: the place in the stream of events. */
json_t *sample_compare(const json_t *before, json_t *now, const char *at, usec_t realtime);
