/* SPDX-License-Identifier: MIT */
#include "cli/logs/log-index.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_runs(const void *a, const void *b) {
    return strcmp(((const struct log_run *) a)->id, ((const struct log_run *) b)->id);
}

void log_index_done(struct log_index *f) {
    tdestroy(f->tree, free);
    f->tree = NULL;
}

struct log_run *log_index_find(const struct log_index *f, const char *id) {
    struct log_run key = {}, **found;

    snprintf(key.id, sizeof(key.id), "%s", id);
    found = tfind(&key, &f->tree, compare_runs);
    return found ? *found : NULL;
}

struct log_run *log_index_add(struct log_index *f, const char *id) {
    struct log_run *run = log_index_find(f, id);

    if (run)
        return run;
    run = calloc(1, sizeof(*run));
    if (!run)
        return NULL;
    snprintf(run->id, sizeof(run->id), "%s", id);
    if (tsearch(run, &f->tree, compare_runs))
        return run;
    free(run);
    return NULL;
}
