/* SPDX-License-Identifier: MIT */
#include "daemon/redis-words.h"

#include <stdlib.h>
#include <string.h>

void words_add(struct words *w, const char *text) {
    char *copy;

    if (w->failed)
        return;
    if (w->n == w->size) {
        size_t size = w->size > 0 ? 2 * w->size : 32;
        char **items = reallocarray(w->items, size, sizeof(*items));

        if (!items) {
            w->failed = true;
            return;
        }
        w->items = items;
        w->size = size;
    }
    copy = strdup(text);
    if (!copy) {
        w->failed = true;
        return;
    }
    w->items[w->n++] = copy;
}

void words_add_u64(struct words *w, uint64_t number) {
    char text[24];

    (void) snprintf(text, sizeof(text), "%" PRIu64, number);
    words_add(w, text);
}

int words_check(const struct words *w) {
    return w->failed ? -ENOMEM : 0;
}

void words_done(struct words *w) {
    for (size_t i = 0; i < w->n; i++)
        free(w->items[i]);
    free(w->items);
    *w = (struct words) {0};
}
