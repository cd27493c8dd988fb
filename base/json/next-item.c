/* SPDX-License-Identifier: MIT */

#include "base/json/next-item.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/schedule/civil.h"

static const char *shift_name(enum schedule_shift shift) {
    switch (shift) {
    case SCHEDULE_SHIFT_GAP:
        return "gap";
    case SCHEDULE_SHIFT_FOLD:
        return "fold";
    case SCHEDULE_SHIFT_NONE:
        break;
    }
    return NULL;
}

static json_t *text_or_null(const char *text) {
    return text ? json_string(text) : json_null();
}

static json_t *local_time(int64_t local) {
    struct civil c;

    civil_from_seconds(local, &c);
    return json_sprintf("%04lld-%02u-%02uT%02u:%02u:%02u", (long long) c.year, c.month, c.day, c.hour,
                        c.minute, c.second);
}

/* Returns {"NAME": "VALUE"} of the entry; {} without an entry. */
static json_t *set_of(const struct next_item *item) {
    char **set = item->due && item->schedule->n_entries > 0 ? item->schedule->entries[item->due->entry].set : NULL;
    json_t *o = json_object();

    for (; set && *set; set++) {
        size_t n = strcspn(*set, "=");
        _cleanup_free_ char *name = strndup(*set, n);

        if (!name || json_object_set_new(o, name, json_string(*set + n + 1)) < 0) {
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

static int put_due(json_t *o, const struct next_item *item) {
    const struct schedule_due *due = item->due;
    char text[SCHEDULE_TEXT_SIZE];
    bool is_gap = due && due->shift == SCHEDULE_SHIFT_GAP;
    int k = 0;

    if (due)
        schedule_format(item->zone, due->at, text);
    k |= json_object_set_new(o, "due", text_or_null(due ? text : NULL));
    k |= json_object_set_new(o, "zone", text_or_null(due ? item->zone_name : NULL));
    k |= json_object_set_new(o, "shift", text_or_null(due ? shift_name(due->shift) : NULL));
    k |= json_object_set_new(o, "wanted", is_gap ? local_time(due->wanted) : json_null());
    k |= json_object_set_new(o, "splay_ms",
                             json_integer(due ? (json_int_t) (item->splay_usec / USEC_PER_MSEC) : 0));
    k |= json_object_set_new(o, "set", set_of(item));
    return k;
}

json_t *next_item_to_json(const struct next_item *item, usec_t now) {
    char begin[CLOCK_TEXT_SIZE];
    json_int_t in = (json_int_t) (usec_sub(item->begin_realtime, now) / USEC_PER_MSEC);
    json_t *o = json_object();
    int k = 0;

    k |= json_object_set_new(o, "job", text_or_null(item->job));
    k |= json_object_set_new(o, "begin", json_string(clock_format(item->begin_realtime, begin)));
    k |= json_object_set_new(o, "in_ms", json_integer(in));
    k |= json_object_set_new(o, "on", json_string(item->is_shared ? "any" : "each"));
    k |= json_object_set_new(o, "trigger", json_string(item->trigger));
    k |= json_object_set_new(o, "attempt", item->attempt > 0 ? json_integer(item->attempt) : json_null());
    k |= json_object_set_new(o, "attempts", item->attempts > 0 ? json_integer(item->attempts) : json_null());
    k |= json_object_set_new(o, "hosts", json_null());
    k |= put_due(o, item);
    if (k < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}
