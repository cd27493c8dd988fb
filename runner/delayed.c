/* SPDX-License-Identifier: MIT */
#include "runner/delayed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct delayed_start {
    struct list link;
    struct guard_file record;
};

static void delayed_free(struct delayed_start *start) {
    list_unlink(&start->link);
    free(start);
}

void delayed_init(struct delayed *d) {
    list_init(&d->starts);
}

void delayed_done(struct delayed *d) {
    list_foreach_safe (start, &d->starts, struct delayed_start, link)
        delayed_free(start);
}

int delayed_add(struct delayed *d, const struct guard_file *record) {
    struct delayed_start *start = calloc(1, sizeof(*start));

    if (!start)
        return -ENOMEM;
    start->record = *record;
    list_append(&d->starts, &start->link);
    return 0;
}

static struct delayed_start *delayed_find(const struct delayed *d, const char *run) {
    list_foreach (start, &d->starts, struct delayed_start, link)
        if (strcmp(start->record.run, run) == 0)
            return start;
    return NULL;
}

bool delayed_has(const struct delayed *d, const char *run) {
    return delayed_find(d, run);
}

void delayed_remove(struct delayed *d, const char *run) {
    struct delayed_start *start = delayed_find(d, run);

    if (start)
        delayed_free(start);
}

void delayed_take(struct delayed *d, void (*start)(struct guard_file *record, void *userdata), void *userdata) {
    struct delayed all;

    delayed_init(&all);
    list_foreach_safe (s, &d->starts, struct delayed_start, link) {
        list_unlink(&s->link);
        list_append(&all.starts, &s->link);
    }
    list_foreach_safe (s, &all.starts, struct delayed_start, link) {
        start(&s->record, userdata);
        delayed_free(s);
    }
}
