/* SPDX-License-Identifier: MIT */
#include "cli/audit/event-index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/model.h"

static const char *owner_of(const struct event_index *t, const struct entry *e) {
    return *(char *const *) (const void *) ((const char *) e + t->owner);
}

static int compare_hosts(const void *a, const void *b) {
    const struct entry *const *x = *(const struct entry *const *const *) a, *const *y = *(const struct entry *const *const *) b;
    int c = strcmp((*x)->host, (*y)->host);

    return c != 0 ? c : x < y ? -1 : x > y;
}

static int compare_processes(const void *a, const void *b) {
    const struct entry *const *x = *(const struct entry *const *const *) a, *const *y = *(const struct entry *const *const *) b;
    int c = strcmp((*x)->process, (*y)->process);

    return c != 0 ? c : x < y ? -1 : x > y;
}

int event_index_make(struct event_index *t, const struct audit *a, bool by_process,
                     bool (*is_in)(const struct entry *),
                     uint64_t (*key)(const struct audit *, const struct entry *)) {
    size_t n = 0;

    *t = (struct event_index){.owner = by_process ? offsetof(struct entry, process)
                                                  : offsetof(struct entry, host)};
    for (size_t i = 0; i < a->n_events; i++)
        n += is_in(a->events[i]);
    t->items = calloc(n + 1, sizeof(*t->items));
    t->others = calloc(n + 1, sizeof(*t->others));
    if (!t->items || !t->others || maxima_make(&t->keys, n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events; i++)
        if (is_in(a->events[i]))
            t->items[t->n++] = &a->events[i];
    qsort(t->items, n, sizeof(*t->items), by_process ? compare_processes : compare_hosts);
    for (size_t i = n; i-- > 0;) {
        t->others[i] = i + 1 < n && strcmp((*t->items[i])->process, (*t->items[i + 1])->process) == 0 ? t->others[i + 1] : i + 1;
        maxima_set(&t->keys, i, key(a, *t->items[i]));
    }
    return 0;
}

size_t event_index_begin(const struct event_index *t, const char *owner) {
    size_t low = 0, high = t->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(owner_of(t, *t->items[middle]), owner) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct entry *event_index_next(const struct event_index *t, const char *owner, size_t *at,
                                     uint64_t least) {
    *at = maxima_next(&t->keys, *at, least);
    return *at < t->n && strcmp(owner_of(t, *t->items[*at]), owner) == 0 ? *t->items[*at] : NULL;
}

const struct entry *event_index_first(const struct event_index *t, const char *owner, uint64_t least) {
    size_t at = event_index_begin(t, owner);

    return event_index_next(t, owner, &at, least);
}

void event_index_done(struct event_index *t) {
    free(t->items);
    free(t->others);
    maxima_done(&t->keys);
}

uint64_t event_key_time(_unused_ const struct audit *a, const struct entry *e) {
    return e->time;
}

uint64_t event_key_clock(_unused_ const struct audit *a, const struct entry *e) {
    return e->clock;
}

uint64_t event_key_seq(_unused_ const struct audit *a, const struct entry *e) {
    return e->seq;
}
