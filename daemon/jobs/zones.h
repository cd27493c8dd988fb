/* SPDX-License-Identifier: MIT */
#pragma once

/* The zones of this host's schedules, each read once. */

#include "base/cleanup.h"
#include "base/schedule/zone.h"

struct shared_zone {
    char name[ZONE_NAME_MAX + 1];
    struct zone *zone;  /* replaced by zones_refresh() */
    bool has_changed;   /* by the last zones_refresh() */
};

struct zones {
    struct shared_zone **items;
    size_t n;
};

void zones_done(struct zones *zones);
/* The zone of that name; valid until zones_done(). 0, an answer of zone_load(), or a negative errno. */
int zones_get(struct zones *zones, const char *name, const struct shared_zone **ret);
/* Reads the zones again whose files have changed; whether there are any. One that cannot be read any more stays as it was. */
bool zones_refresh(struct zones *zones);
