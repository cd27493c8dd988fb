/* SPDX-License-Identifier: MIT */
#pragma once

/* The zones of this host's schedules, each read once. */

#include "base/cleanup.h"
#include "base/schedule/zone.h"

struct shared_zone {
    char name[ZONE_NAME_MAX + 1];
    struct zone *zone;  /* NULL: cannot be read; replaced by zones_refresh() */
    char *error;        /* without a zone: the reason by zone_explain(); NULL: no memory for it */
    bool has_changed;   /* in the last zones_refresh() */
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
/* Finds the zone of that name, or why it cannot be read; valid until zones_done(). Returns 0 or -ENOMEM. */
int zones_get(struct zones *zones, const char *name, const struct shared_zone **ret);
/* Reads zones again whose files have changed or could not be read. Returns whether any zone has changed. A
 * zone that can no longer be read stays as it was. */
bool zones_refresh(struct zones *zones);
