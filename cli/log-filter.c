/* SPDX-License-Identifier: MIT */
#include "cli/log-filter.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_sources(const void *a, const void *b) {
    return strcmp(((const struct log_source *) a)->id, ((const struct log_source *) b)->id);
}

void log_filter_init(struct log_filter *f) {
    *f = (struct log_filter) {.tree = NULL};
    list_init(&f->active);
}

void log_filter_done(struct log_filter *f) {
    tdestroy(f->tree, free);
    log_filter_init(f);
}

struct log_source *log_filter_find(const struct log_filter *f, const char *id) {
    struct log_source key = {}, **found;

    snprintf(key.id, sizeof(key.id), "%s", id);
    found = tfind(&key, &f->tree, compare_sources);
    return found ? *found : NULL;
}

struct log_source *log_filter_add(struct log_filter *f, const char *id) {
    struct log_source *source = log_filter_find(f, id);

    if (source)
        return source;
    source = calloc(1, sizeof(*source));
    if (!source)
        return NULL;
    list_init(&source->link);
    snprintf(source->id, sizeof(source->id), "%s", id);
    if (tsearch(source, &f->tree, compare_sources))
        return source;
    free(source);
    return NULL;
}

void log_filter_set(struct log_filter *f, struct log_source *source, bool is_wanted, bool is_active) {
    source->is_wanted = is_wanted;
    source->is_active = is_active;
    list_unlink(&source->link);
    if (is_wanted && is_active)
        list_append(&f->active, &source->link);
}
