/* SPDX-License-Identifier: MIT */
#include "cli/log-filter.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_known(const void *a, const void *b) {
    return strcmp(((const struct known *) a)->id, ((const struct known *) b)->id);
}

struct known *known_runs_find(const struct known_runs *runs, const char *id) {
    struct known key = {}, **found;

    snprintf(key.id, sizeof(key.id), "%s", id);
    found = tfind(&key, &runs->tree, compare_known);
    return found ? *found : NULL;
}

struct known *known_runs_add(struct known_runs *runs, const char *id) {
    struct known *known = known_runs_find(runs, id);

    if (known)
        return known;
    known = calloc(1, sizeof(*known));
    if (!known)
        return NULL;
    snprintf(known->id, sizeof(known->id), "%s", id);
    if (tsearch(known, &runs->tree, compare_known))
        return known;
    free(known);
    return NULL;
}

void known_runs_set(struct known_runs *runs, struct known *known, bool is_wanted, bool is_active) {
    known->is_wanted = is_wanted;
    known->is_active = is_active;
    if (known->is_listed == (is_wanted && is_active))
        return;
    known->is_listed = !known->is_listed;
    if (known->is_listed) {
        known->before = NULL;
        known->after = runs->first;
        runs->first = known;
    } else {
        *(known->before ? &known->before->after : &runs->first) = known->after;
    }
    if (known->after)
        known->after->before = known->is_listed ? known : known->before;
}

void known_runs_done(struct known_runs *runs) {
    tdestroy(runs->tree, free);
    *runs = (struct known_runs) {.first = NULL};
}
