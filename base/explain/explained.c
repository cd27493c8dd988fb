/* SPDX-License-Identifier: MIT */

#include "base/explain/explained.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/explain/queue.h"
#include "base/explain/reason.h"
#include "base/explain/start.h"
#include "base/json/format.h"

static bool is_over(const json_t *run) {
    return strcmp(format_get_text(run, "state"), "done") == 0;
}

const char *explained_missing(const json_t *run) {
    static const char *const members[] = {"run", "name", "state", "pools"};

    for (size_t i = 0; i < ELEMENTSOF(members); i++)
        if (!json_object_get(run, members[i]))
            return members[i];
    return NULL;
}

json_t *explained_new(const json_t *run, const char *host) {
    static const char *const members[] = {"run",     "name",  "state",  "wait_ms",    "since",
                                          "started", "ended", "result", "exit_code",  "signal",
                                          "reason",  "stuck", "moved",  "blocked_by", "position"};
    json_t *e = json_pack("{s:s, s:O}", "host", host, "wants", json_object_get(run, "pools"));

    for (size_t i = 0; e && i < ELEMENTSOF(members); i++) {
        json_t *member = json_object_get(run, members[i]);

        if (json_object_set(e, members[i], member ? member : json_null()) < 0) {
            json_decref(e);
            return NULL;
        }
    }
    return e;
}

/* --- their pools --- */

static int add_name(json_t *names, const char *name) {
    return json_object_set_new(names, name, json_true());
}

static int add_wanted(json_t *names, const json_t *list) {
    json_t *e, *permits;
    const char *pool;
    int k = 0;
    size_t i;

    json_array_foreach (list, i, e)
        if (!is_over(e))
            json_object_foreach (json_object_get(e, "wants"), pool, permits)
                k |= add_name(names, pool);
    return k;
}

static bool share_claim(const json_t *a, const json_t *b) {
    json_t *waiter;
    size_t i;

    json_array_foreach (json_object_get(a, "queue"), i, waiter)
        if (reason_claim(json_object_get(b, "queue"), format_get_text(waiter, "claim")))
            return true;
    return false;
}

/* Adds the pools whose queues share claims with those pools: a claim that waits there may keep others
 * waiting here. */
static int add_related(json_t *names, const json_t *pools) {
    json_t *pool, *other;
    bool has_grown = true;
    int k = 0;
    size_t i, n;

    while (has_grown && k == 0) {
        has_grown = false;
        json_array_foreach (pools, i, pool)
            json_array_foreach (pools, n, other)
                if (json_object_get(names, format_get_text(pool, "name")) &&
                    !json_object_get(names, format_get_text(other, "name")) && share_claim(pool, other)) {
                    k |= add_name(names, format_get_text(other, "name"));
                    has_grown = true;
                }
    }
    return k;
}

int explained_add_pools(json_t *names, const json_t *list, const json_t *pools) {
    return add_wanted(names, list) | add_related(names, pools);
}

/* --- why --- */

/* Returns whether the run waits in each pool that it does not hold. */
static bool is_in_all_queues(const json_t *e, const json_t *pools) {
    const char *claim = format_get_text(e, "run"), *name;
    json_t *permits;

    json_object_foreach (json_object_get(e, "wants"), name, permits) {
        const json_t *pool = reason_pool(pools, name, claim);

        if (!reason_claim(json_object_get(pool, "holders"), claim) && !reason_claim(json_object_get(pool, "queue"), claim))
            return false;
    }
    return true;
}

/* Returns why the start of a waiting run cannot be estimated; NULL: it can. */
static const char *unknown_start(const json_t *e, const json_t *answer, const struct queue *q) {
    if (strcmp(format_get_text(e, "state"), "waiting") != 0)
        return NULL;
    if (!reason_is_pools(e))
        return format_get_text(e, "blocked_by");
    if (!q || json_is_true(json_object_get(answer, "stale")))
        return "Redis is away";
    if (!queue_is_complete(q))
        return "not all claims of these pools are listed";
    return is_in_all_queues(e, json_object_get(answer, "pools"))
               ? NULL
               : "it is not in all its queues yet";
}

/* Adds what is known about one run. estimates: whether an estimate is wanted. */
static int fill_one(json_t *e, const json_t *answer, const struct estimate_view *view, bool estimates) {
    const char *why = unknown_start(e, answer, view->q);
    bool waits = strcmp(format_get_text(e, "state"), "waiting") == 0;
    int k = reason_add_pools(e, json_object_get(e, "wants"), format_get_text(e, "blocked_by"), view->pools);

    if (k == 0)
        k = start_add_usual(e, view->usuals, view->now);
    if (k == 0)
        k = start_add_estimate(e, view, estimates ? why : "");
    if (k == 0)
        k = reason_add_sooner(e, waits && !why ? view : NULL, view->pools);
    (void) json_object_del(e, "wants");
    (void) json_object_del(e, "position"); /* each pool has its place */
    return k;
}

/* --- parked claims --- */

/* Returns the waiter of a parked claim, which only the pool lists that parks it. NULL: the claim is not parked. */
static const json_t *find_parked(const json_t *pools, const char *claim) {
    json_t *pool;
    size_t i;

    json_array_foreach (pools, i, pool) {
        const json_t *waiter = reason_claim(json_object_get(pool, "queue"), claim);

        if (waiter && format_get_number(waiter, "position") == 0)
            return waiter;
    }
    return NULL;
}

/* Adds a parked run to the lists of its other pools: it needs their permits as well when it comes back. */
static int add_parked(const json_t *e, const json_t *pools) {
    const char *claim = format_get_text(e, "run"), *name;
    const json_t *parked = find_parked(pools, claim);
    json_t *permits;
    int k = 0;

    json_object_foreach (json_object_get(e, "wants"), name, permits) {
        const json_t *pool = parked ? reason_pool(pools, name, claim) : NULL;
        json_t *queue = json_object_get(pool, "queue"), *waiter;

        if (!pool || reason_claim(queue, claim) || reason_claim(json_object_get(pool, "holders"), claim))
            continue;
        waiter = json_copy((json_t *) parked);
        k |= json_object_set(waiter, "permits", permits);
        k |= json_array_append_new(queue, waiter);
    }
    return k;
}

static int add_all_parked(const json_t *list, const json_t *pools) {
    json_t *e;
    int k = 0;
    size_t i;

    json_array_foreach (list, i, e)
        k |= add_parked(e, pools);
    return k;
}

int explained_fill(json_t *list, const json_t *answer, bool estimates) {
    _cleanup_(queue_freep) struct queue *q = NULL;
    _cleanup_(usuals_done) struct usuals usuals = {};
    struct estimate_view view = {
        .pools = json_object_get(answer, "pools"), .usuals = &usuals, .now = clock_realtime()};
    bool is_known = answer && !json_is_true(json_object_get(answer, "stale"));
    int k = add_all_parked(list, view.pools) < 0 ? -ENOMEM : 0;
    json_t *e;
    size_t i;

    if (k == 0 && is_known)
        k = queue_new(&q, view.pools);
    if (k == 0)
        k = usuals_make(&usuals, json_object_get(answer, "usual"));
    view.q = q;
    json_array_foreach (list, i, e)
        if (k == 0)
            k = fill_one(e, answer, &view, estimates);
    return k;
}
