/* SPDX-License-Identifier: MIT */
#include "store/snapshot.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct snapshot *snapshot_free(struct snapshot *s) {
    if (!s)
        return NULL;
    if (s->n_shared > 0) {
        s->n_shared--;
        return NULL;
    }
    for (size_t i = 0; i < s->n_pools; i++) {
        free(s->pools[i].override_reason);
        free(s->pools[i].holders);
        free(s->pools[i].queue);
    }
    for (size_t i = 0; i < s->n_sessions; i++)
        free(s->sessions[i].limits);
    free(s->pools);
    free(s->sessions);
    for (size_t i = 0; i < s->n_times; i++)
        free(s->times[i].text);
    free(s->times);
    free(s->mine);
    free(s->malformed);
    tdestroy(s->texts, free);
    free(s);
    return NULL;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(a, b);
}

const char *snapshot_text(struct snapshot *s, const char *text) {
    char *const *found = tfind(text, &s->texts, compare_texts);
    _cleanup_free_ char *copy = NULL;

    if (found)
        return *found;
    copy = strdup(text);
    if (!copy || !tsearch(copy, &s->texts, compare_texts))
        return NULL;
    return steal_pointer(&copy);
}

struct snapshot_pool *snapshot_find_pool(const struct snapshot *s, const char *name) {
    for (size_t i = 0; s && i < s->n_pools; i++)
        if (strcmp(s->pools[i].name, name) == 0)
            return &s->pools[i];
    return NULL;
}
