/* SPDX-License-Identifier: MIT */
#pragma once

/* The zones of this host's schedules, each read once. */

#include "base/cleanup.h"
#include "base/schedule/zone.h"

struct shared_zone {
    char name[ZONE_NAME_MAX + 1];
    struct zone *zone;  /* NULL: cannot be read; replaced by zones_refresh() */
    char *error;        /* without a zone: the reason of zone_explain(); NULL: no memory for it */
    bool has_changed;   /* by the last zones_refresh() */
};

struct zones {
    struct shared_zone **items;
    size_t n;
};

/* Returns the zone, or NULL if its file is missing or cannot be read. */
static inline const struct zone *shared_zone_get(const struct shared_zone *zone) {
    return zone ? zone->zone : NULL;
}

void zones_done(struct zones *zones);
/* The zone of that name, or why it cannot be read; valid until zones_done(). 0 or -ENOMEM. */
int zones_get(struct zones *zones, const char *name, const struct shared_zone **ret);
/* Reads the zones again whose files have changed, and those that could not be read; whether any is another
 * now. One that cannot be read any more stays as it was. */
bool zones_refresh(struct zones *zones);
