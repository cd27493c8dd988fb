/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/zones.h"

#include <string.h>

void zones_done(struct zones *zones) {
    for (size_t i = 0; i < zones->n; i++) {
        zone_free(zones->items[i]->zone);
        free(zones->items[i]->error);
        free(zones->items[i]);
    }
    free(zones->items);
    *zones = (struct zones){};
}

static void explain(struct shared_zone *item, int answer) {
    char text[ZONE_EXPLAIN_SIZE];

    free(item->error);
    item->error = strdup(zone_explain(ZONE_DIRECTORY, item->name, answer, text));
}

int zones_get(struct zones *zones, const char *name, const struct shared_zone **ret) {
    struct shared_zone **items, *item;
    int r;

    for (size_t i = 0; i < zones->n; i++)
        if (strcmp(zones->items[i]->name, name) == 0) {
            *ret = zones->items[i];
            return 0;
        }
    items = reallocarray(zones->items, zones->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    zones->items = items;
    item = calloc(1, sizeof(*item));
    if (!item)
        return -ENOMEM;
    (void) snprintf(item->name, sizeof(item->name), "%s", name);
    r = zone_load(ZONE_DIRECTORY, name, &item->zone);
    if (r == -ENOMEM) {
        free(item);
        return r;
    }
    if (r != 0)
        explain(item, r);
    *ret = items[zones->n++] = item;
    return 0;
}

static bool refresh(struct shared_zone *item) {
    struct zone *zone;

    if ((item->zone && !zone_has_changed(item->zone)) || zone_load(ZONE_DIRECTORY, item->name, &zone) != 0)
        return false;
    zone_free(item->zone);
    item->zone = zone;
    return true;
}

bool zones_refresh(struct zones *zones) {
    bool has_changed = false;

    for (size_t i = 0; i < zones->n; i++) {
        zones->items[i]->has_changed = refresh(zones->items[i]);
        has_changed = has_changed || zones->items[i]->has_changed;
    }
    return has_changed;
}
