/* SPDX-License-Identifier: MIT */

/* Next: the next begins of jobs, from the schedules, `every` and attempts of this host. */

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
        .attempts = coming->attempt > 0 && coming->settings->retry.retries > 0 ? coming->settings->retry.retries + 1 : 0,
        .due = coming->zone ? &coming->due : NULL,
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

/* --- jobs that hosts share: Redis is asked which hosts may begin them --- */

#define ASKED_MAX 100 /* jobs; the hosts of others are not known */

struct next { /* one call */
    struct manager *manager;
    struct control_call *call; /* NULL: the client has gone */
    json_t *items;             /* each a Coming */
    int64_t *open_dues;        /* of each item: an open turn; 0: no turn; -1: it is no longer open */
    size_t n_asked;            /* jobs without an answer */
};

struct asked {
    struct next *next;
    char job[];
};

/* Answers and frees the call. Without memory the client is dropped. */
static int conclude(struct next *next) {
    json_t *list = json_array(), *item, *reply = NULL;
    size_t i;
    int k = 0;

    json_array_foreach (next->items, i, item)
        if (next->open_dues[i] >= 0)
            k |= json_array_append(list, item);
    if (k == 0)
        reply = json_pack("{s:i, s:s, s:b, s:O}", "schema", 1, "host", manager_settings(next->manager)->host,
                          "drained", manager_is_drained(next->manager), "next", list);
    json_decref(list);
    if (next->call)
        k = control_call_answer(next->call, reply);
    else
        json_decref(reply);
    json_decref(next->items);
    free(next->open_dues);
    free(next);
    return k;
}

static void next_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct next *next = userdata;

    next->call = NULL;
}

static int compare_hosts(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Returns NULL without memory. */
static json_t *json_hosts_of(const struct store_shared *shared) {
    json_t *hosts = json_array();
    int k = 0;

    if (shared->n_hosts > 0)
        qsort(shared->hosts, shared->n_hosts, sizeof(*shared->hosts), compare_hosts);
    for (size_t i = 0; i < shared->n_hosts; i++)
        k |= json_array_append_new(hosts, json_string(shared->hosts[i]));
    return json_complete(hosts, k);
}

/* Takes begin and attempt of an open turn from Redis: this host asks later than others, and may not know
 * them. */
static void set_open(json_t *item, int64_t *due, const struct store_shared *shared) {
    usec_t now = clock_realtime();
    char begin[CLOCK_TEXT_SIZE];

    for (size_t i = 0; i < shared->n_turns; i++)
        if (shared->turns[i].due == *due) {
            usec_t at = usec_add(now, shared->turns[i].after_usec);

            (void) json_object_set_new(item, "begin", json_string(clock_format(at, begin)));
            (void) json_object_set_new(item, "in_ms", json_integer((json_int_t) (shared->turns[i].after_usec / USEC_PER_MSEC)));
            (void) json_object_set_new(item, "attempt", json_integer(shared->turns[i].attempt));
            return;
        }
    *due = -1;
}

static void next_on_shared(int r, const struct store_shared *shared, void *userdata) {
    _cleanup_free_ struct asked *asked = userdata;
    struct next *next = asked->next;
    json_t *hosts = r == 0 ? json_hosts_of(shared) : NULL, *item;
    size_t i;

    json_array_foreach (next->items, i, item) {
        if (strcmp(json_string_value(json_object_get(item, "job")), asked->job) != 0)
            continue;
        if (hosts)
            (void) json_object_set(item, "hosts", hosts);
        if (r == 0 && next->open_dues[i] > 0)
            set_open(item, &next->open_dues[i], shared);
    }
    json_decref(hosts);
    if (--next->n_asked == 0)
        (void) conclude(next);
}

/* Returns whether Redis was asked. */
static bool ask(struct next *next, const char *job) {
    struct store *s = manager_cluster_store(next->manager);
    struct asked *asked = s ? malloc(sizeof(*asked) + strlen(job) + 1) : NULL;
    char pool[POOL_NAME_SIZE];

    if (!asked)
        return false;
    asked->next = next;
    memcpy(asked->job, job, strlen(job) + 1);
    (void) snprintf(pool, sizeof(pool), "@%s", job);
    if (store_ask_shared(s, pool, next_on_shared, asked) == 0)
        return true;
    free(asked);
    return false;
}

static int answer(struct next *next, const struct list_of_coming *list) {
    const struct job_settings *asked[ASKED_MAX];
    size_t n = 0;

    for (size_t i = 0; i < list->n && n < ELEMENTSOF(asked); i++) {
        const struct job_settings *job = list->items[i].settings;
        size_t k = 0;

        while (k < n && asked[k] != job)
            k++;
        if (k < n || job->triggers.sharing.on != JOB_ON_ANY)
            continue;
        asked[n++] = job;
        next->n_asked += ask(next, job->name);
    }
    if (next->n_asked == 0)
        return conclude(next);
    control_call_keep(next->call, next_on_gone, next);
    return 0;
}

static int begin(struct control_call *call, struct manager *m, const struct list_of_coming *list) {
    struct next *next = calloc(1, sizeof(*next));
    usec_t now = clock_realtime();
    int k = 0;

    if (!next)
        return -ENOMEM;
    *next = (struct next){.manager = m,
                          .call = call,
                          .items = json_array(),
                          .open_dues = calloc(list->n + 1, sizeof(*next->open_dues))};
    if (!next->open_dues)
        k = -ENOMEM;
    for (size_t i = 0; i < list->n && k == 0; i++) {
        next->open_dues[i] = list->items[i].open_due;
        k = json_array_append_new(next->items, json_coming(&list->items[i], now)) < 0 ? -ENOMEM : 0;
    }
    if (k == 0)
        return answer(next, list);
    json_decref(next->items);
    free(next->open_dues);
    free(next);
    return k;
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
        k = begin(call, userdata, &list);
    free(list.items);
    return k;
}
