/* SPDX-License-Identifier: MIT */

/* Next: what begins when, from the schedules, `every` and attempts of this host. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schedule/civil.h"
#include "daemon/api/verbs-internal.h"
#include "daemon/coming.h"

#define COUNT_DEFAULT 10

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

static json_t *json_local(int64_t local) {
    struct civil c;

    civil_from_seconds(local, &c);
    return json_sprintf("%04lld-%02u-%02uT%02u:%02u:%02u", (long long) c.year, c.month, c.day, c.hour,
                        c.minute, c.second);
}

static json_t *json_set(const struct coming *coming) {
    const struct schedule *schedule = &coming->settings->triggers.schedule;
    char **set = coming->trigger == RUN_TRIGGER_SCHEDULE ? schedule->entries[coming->due.entry].set : NULL;
    json_t *o = json_object();

    for (; set && *set; set++) {
        size_t n = strcspn(*set, "=");
        char name[NAME_MAX_LENGTH + 1];

        (void) snprintf(name, sizeof(name), "%.*s", (int) n, *set);
        if (json_object_set_new(o, name, json_string(*set + n + 1)) < 0) {
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

static json_t *json_coming(const struct coming *coming, usec_t now) {
    bool is_due = coming->trigger == RUN_TRIGGER_SCHEDULE;
    char due[SCHEDULE_TEXT_SIZE];
    json_t *o = json_object();
    int k = 0;

    if (is_due)
        schedule_format(coming->zone, coming->due.at, due);
    k |= json_object_set_new(o, "job", json_string(coming->settings->name));
    k |= json_object_set_new(o, "due", json_text(is_due ? due : NULL));
    k |= json_object_set_new(o, "begin", json_time(coming->begin_realtime));
    k |= json_object_set_new(o, "in_ms", json_msec(usec_sub(coming->begin_realtime, now)));
    k |= json_object_set_new(o, "zone", json_text(is_due ? coming->settings->triggers.zone.name : NULL));
    k |= json_object_set_new(o, "on", json_string("each"));
    k |= json_object_set_new(o, "trigger", json_text(run_trigger_name(coming->trigger)));
    k |= json_object_set_new(o, "attempt", json_number(coming->attempt, coming->attempt > 0));
    k |= json_object_set_new(o, "shift", json_text(is_due ? shift_name(coming->due.shift) : NULL));
    k |= json_object_set_new(
        o, "wanted",
        is_due && coming->due.shift == SCHEDULE_SHIFT_GAP ? json_local(coming->due.wanted) : json_null());
    k |= json_object_set_new(o, "splay_ms", json_msec(is_due ? coming->splay_usec : 0));
    k |= json_object_set_new(o, "set", json_set(coming));
    k |= json_object_set_new(o, "hosts", json_null());
    if (k < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static int compare_begins(const void *a, const void *b) {
    const struct coming *x = a, *y = b;

    return (x->begin_realtime > y->begin_realtime) - (x->begin_realtime < y->begin_realtime);
}

struct list_of_coming {
    struct coming *items;
    size_t n;
};

static int add(struct manager *m, const char *job, usec_t from, size_t count, struct list_of_coming *list) {
    _cleanup_free_ struct coming *more = NULL;
    struct coming *items;
    size_t n;
    int k = manager_list_coming(m, job, from, count, &more, &n);

    if (k != 0)
        return k;
    items = reallocarray(list->items, list->n + n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    memcpy(items + list->n, more, n * sizeof(*items));
    list->items = items;
    list->n += n;
    return 0;
}

static int collect(struct control_call *call, struct manager *m, json_t *jobs, usec_t from, size_t count,
                   struct list_of_coming *list) {
    json_t *job;
    size_t i;
    int k = 0;

    if (!jobs)
        return add(m, NULL, from, count, list);
    json_array_foreach (jobs, i, job) {
        const char *name = json_string_value(job);

        k = params_check_name(call, "job", name);
        k = k != 0 ? k : add(m, name, from, count, list);
        if (k == MANAGER_E_UNKNOWN) {
            k = verbs_no_such_job(call, m, name);
            return k < 0 ? k : VERBS_ANSWERED;
        }
        if (k != 0)
            return k;
    }
    if (list->n > 0)
        qsort(list->items, list->n, sizeof(*list->items), compare_begins);
    return 0;
}

static int answer(struct control_call *call, struct manager *m, const struct list_of_coming *list) {
    usec_t now = clock_realtime();
    json_t *next = json_array();

    for (size_t i = 0; i < list->n; i++)
        if (json_array_append_new(next, json_coming(&list->items[i], now)) < 0) {
            json_decref(next);
            return -ENOMEM;
        }
    return control_call_answer(call, json_pack("{s:i, s:s, s:b, s:o}", "schema", 1, "host",
                                               manager_settings(m)->host, "drained", manager_is_drained(m),
                                               "next", next));
}

int verbs_next(struct control_call *call, json_t *params, void *userdata) {
    json_t *jobs = NULL;
    json_int_t count = COUNT_DEFAULT;
    const char *from_text = NULL;
    const struct param table[] = {
        {"jobs", PARAM_STRINGS, false, &jobs, 0, 0},
        {"count", PARAM_INT, false, &count, 1, COMING_MAX},
        {"from", PARAM_STRING, false, &from_text, 0, 0},
    };
    struct list_of_coming list = {};
    int64_t from = 0;
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    if (from_text && (schedule_parse_time(from_text, &from) < 0 || from <= 0))
        return verbs_bad_request(call, "from must be a time like 2027-03-28T03:00:00+02:00");
    if (jobs && json_array_size(jobs) * (size_t) count > COMING_MAX)
        return verbs_bad_request(call, "count for each of these jobs is more than %d in all", COMING_MAX);
    k = collect(call, userdata, jobs, (usec_t) from * USEC_PER_SEC, (size_t) count, &list);
    if (k == 0)
        k = answer(call, userdata, &list);
    free(list.items);
    return k;
}
