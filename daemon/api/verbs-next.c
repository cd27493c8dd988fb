/* SPDX-License-Identifier: MIT */

/* Next: what begins when, from the schedules, `every` and attempts of this host. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/next-item.h"
#include "daemon/api/verbs-internal.h"
#include "daemon/coming.h"

#define COUNT_DEFAULT 10

static json_t *json_coming(const struct coming *coming, usec_t now) {
    const struct job_triggers *triggers = &coming->settings->triggers;
    struct next_item item = {
        .job = coming->settings->name,
        .trigger = run_trigger_name(coming->trigger),
        .begin_realtime = coming->begin_realtime,
        .is_shared = triggers->sharing.on == JOB_ON_ANY,
        .attempt = coming->attempt,
        .due = coming->trigger == RUN_TRIGGER_SCHEDULE ? &coming->due : NULL,
        .schedule = &triggers->schedule,
        .zone = coming->zone,
        .zone_name = triggers->zone.name,
        .splay_usec = coming->splay_usec,
    };

    return next_item_to_json(&item, now);
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

        k = params_check_job(call, "job", name);
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
