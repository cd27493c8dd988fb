/* SPDX-License-Identifier: MIT */
#pragma once

/* One coming begin as JSON, the type Coming of daemon/api/io.berth.varlink: for berthd, and for `berth next -e`. */

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/schedule/schedule.h"

struct next_item {
    const char *job;                  /* NULL: of an entry, without a job */
    const char *trigger;
    usec_t begin_realtime;
    bool is_shared;                   /* hosts share the job: any one of them begins it */
    uint32_t attempt, attempts;       /* the next attempt (0: of another trigger), and the most attempts (0: no bound) */
    const struct schedule_due *due;   /* NULL: of no schedule, and the fields below are not used */
    const struct schedule *schedule;
    const struct zone *zone;
    const char *zone_name;
    usec_t splay_usec;
};

/* NULL: no memory. */
json_t *next_item_to_json(const struct next_item *item, usec_t now_realtime);
