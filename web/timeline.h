/* SPDX-License-Identifier: MIT */
#pragma once

/* The last hour: which claims waited for a pool and held its permits, from pictures taken each second. A
 * shorter run may be missing. */

#include <jansson.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define TIMELINE_TIME (3600 * USEC_PER_SEC)
#define TIMELINE_BARS_MAX 20000
#define TIMELINE_SHOWN_MAX 3000 /* bars of one pool */

struct timeline;

int timeline_new(struct timeline **ret);
struct timeline *timeline_free(struct timeline *t);
DEFINE_CLEANUP(struct timeline, timeline_free)

/* pools: from a fresh reply of io.berth. now: realtime. */
void timeline_add_picture(struct timeline *t, const json_t *pools, usec_t now);
/* Notes the result of a run that failed at its bars. event: of io.berth.Events. */
void timeline_add_event(struct timeline *t, const json_t *event);

/* {"pool", "now_ms", "from_ms", "dropped", "bars": [[claim, host, name, permits, waited_ms, held_ms, end_ms, result]]}: times
 * since 1970; null: not known, not held, not over; result null: success, or not known. NULL: no memory. */
json_t *timeline_to_json(const struct timeline *t, const char *pool, usec_t now);
