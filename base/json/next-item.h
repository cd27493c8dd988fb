/* SPDX-License-Identifier: MIT */
#pragma once

/* One begin of `berth next` as JSON: the type Coming of daemon/api/io.berth.varlink, for berthd and for `berth
 * next -e`. */

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/schedule/schedule.h"

struct next_item {
    const char *job;                  /* NULL: of an entry, without a job */
    const char *trigger;
    usec_t begin_realtime;
    bool is_shared;                   /* hosts share the job: any one of them begins it */
    uint32_t attempt, attempts;       /* of a run between two attempts, and how many there are at most; 0: another trigger, no bound */
    const struct schedule_due *due;   /* by a schedule; NULL: by another trigger, and the rest is not used */
    const struct schedule *schedule;
    const struct zone *zone;
    const char *zone_name;
    usec_t splay_usec;
};

/* NULL: no memory. */
json_t *next_item_to_json(const struct next_item *item, usec_t now_realtime);
