/* SPDX-License-Identifier: MIT */
#include "store/redis/client/command.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct words *w) {
    size_t size = 2 * w->size;
    char **items;

    if (w->n < w->size)
        return true;
    if (w->size == 0) {
        w->items = w->first;
        w->size = WORDS_INLINE;
        return true;
    }
    items = reallocarray(w->items == w->first ? NULL : w->items, size, sizeof(*items));
    if (!items)
        return false;
    if (w->items == w->first)
        memcpy(items, w->first, sizeof(w->first));
    w->items = items;
    w->size = size;
    return true;
}

static void add(struct words *w, const char *text, size_t length) {
    char *copy = NULL;

    if (w->failed)
        return;
    if (make_room(w)) {
        if (length < sizeof(w->buffer) - w->used) {
            copy = w->buffer + w->used;
            w->used += length + 1;
        } else {
            copy = malloc(length + 1);
        }
    }
    if (!copy) {
        w->failed = true;
        return;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    w->items[w->n++] = copy;
}

void words_add(struct words *w, const char *text) {
    add(w, text, strlen(text));
}

void words_add_u64(struct words *w, uint64_t number) {
    char text[24];
    size_t at = sizeof(text);

    do {
        text[--at] = (char) ('0' + number % 10);
        number /= 10;
    } while (number > 0);
    add(w, text + at, sizeof(text) - at);
}

int words_check(const struct words *w) {
    return w->failed ? -ENOMEM : 0;
}

static bool is_inside(const struct words *w, const char *text) {
    return text >= w->buffer && text < w->buffer + sizeof(w->buffer);
}

void words_done(struct words *w) {
    for (size_t i = 0; i < w->n; i++)
        if (!is_inside(w, w->items[i]))
            free(w->items[i]);
    if (w->items != w->first)
        free(w->items);
    w->items = NULL;
    w->n = w->size = w->used = 0;
    w->failed = false;
}
