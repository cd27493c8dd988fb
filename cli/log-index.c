/* SPDX-License-Identifier: MIT */
#include "cli/log-index.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_sources(const void *a, const void *b) {
    return strcmp(((const struct log_source *) a)->id, ((const struct log_source *) b)->id);
}

void log_index_init(struct log_index *f) {
    *f = (struct log_index) {.tree = NULL};
    list_init(&f->active);
}

void log_index_done(struct log_index *f) {
    tdestroy(f->tree, free);
    log_index_init(f);
}

struct log_source *log_index_find(const struct log_index *f, const char *id) {
    struct log_source key = {}, **found;

    snprintf(key.id, sizeof(key.id), "%s", id);
    found = tfind(&key, &f->tree, compare_sources);
    return found ? *found : NULL;
}

struct log_source *log_index_add(struct log_index *f, const char *id) {
    struct log_source *source = log_index_find(f, id);

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

void log_index_set(struct log_index *f, struct log_source *source, bool is_wanted, bool is_active) {
    source->is_wanted = is_wanted;
    source->is_active = is_active;
    list_unlink(&source->link);
    if (is_wanted && is_active)
        list_append(&f->active, &source->link);
}
