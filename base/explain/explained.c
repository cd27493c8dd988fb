/* SPDX-License-Identifier: MIT */

#include "base/explain/explained.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/explain/estimate.h"
#include "base/explain/listed.h"
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

/* Adds the pools in whose queues some claim of this queue waits. Returns whether there were new ones; -1: no
 * memory. */
static int add_neighbours(json_t *names, const struct listed *listed, const json_t *of_claims, const struct listed_pool *p) {
    json_t *waiter, *number;
    size_t i, n;
    int k = 0;

    json_array_foreach (json_object_get(p->json, "queue"), i, waiter)
        json_array_foreach (json_object_get(of_claims, format_get_text(waiter, "claim")), n, number) {
            const struct listed_pool *other = listed_at(listed, (size_t) json_integer_value(number));
            const char *name = format_get_text(other->json, "name");

            if (json_object_get(names, name))
                continue;
            if (add_name(names, name) < 0)
                return -1;
            k = 1;
        }
    return k;
}

/* Returns for each claim that waits the numbers of the pools that list it; NULL: no memory. */
static json_t *pools_of_claims(const struct listed *listed) {
    json_t *of_claims = json_object(), *waiter;
    const char *claim;
    int k = 0;

    for (size_t i = 0; i < listed_count(listed); i++)
        json_object_foreach (listed_at(listed, i)->waiting, claim, waiter) {
            if (!json_object_get(of_claims, claim))
                k |= json_object_set_new(of_claims, claim, json_array());
            k |= json_array_append_new(json_object_get(of_claims, claim), json_integer((json_int_t) i));
        }
    if (k == 0)
        return of_claims;
    json_decref(of_claims);
    return NULL;
}

/* Adds the pools whose queues share claims with those pools: a claim that waits there may keep others
 * waiting here. */
static int add_related(json_t *names, const json_t *pools) {
    _cleanup_(listed_freep) struct listed *listed = listed_new(pools);
    _cleanup_(json_decrefp) json_t *of_claims = listed ? pools_of_claims(listed) : NULL;
    _cleanup_free_ bool *is_done = calloc(json_array_size(pools) + 1, sizeof(*is_done));
    bool has_grown = true;

    if (!of_claims || !is_done)
        return -1;
    while (has_grown) {
        has_grown = false;
        for (size_t i = 0; i < listed_count(listed); i++) {
            const struct listed_pool *p = listed_at(listed, i);
            int k;

            if (is_done[i] || !json_object_get(names, format_get_text(p->json, "name")))
                continue;
            is_done[i] = true;
            k = add_neighbours(names, listed, of_claims, p);
            if (k < 0)
                return -1;
            has_grown |= k > 0;
        }
    }
    return 0;
}

int explained_add_pools(json_t *names, const json_t *list, const json_t *pools) {
    return add_wanted(names, list) | add_related(names, pools);
}

/* --- why --- */

struct facts { /* of all runs of a list */
    const json_t *answer;
    struct listed *listed;
    struct queue *q;      /* NULL: not known */
    struct estimator *s;  /* likewise */
    bool estimates;       /* they are wanted */
    size_t most;          /* claims of a list */
};

/* Returns whether the run waits in each pool that it does not hold. */
static bool is_in_all_queues(const json_t *e, const struct listed *listed) {
    const char *claim = format_get_text(e, "run"), *name;
    json_t *permits;

    json_object_foreach (json_object_get(e, "wants"), name, permits) {
        const struct listed_pool *pool = listed_find(listed, name, claim);

        if (!listed_holder(pool, claim) && !listed_waiter(pool, claim))
            return false;
    }
    return true;
}

/* Returns why the start of a waiting run cannot be estimated; NULL: it can. */
static const char *unknown_start(const json_t *e, const struct facts *f) {
    if (strcmp(format_get_text(e, "state"), "waiting") != 0)
        return NULL;
    if (!reason_is_pools(e))
        return format_get_text(e, "blocked_by");
    if (!f->q || json_is_true(json_object_get(f->answer, "stale")))
        return "Redis is away";
    if (!queue_is_complete(f->q))
        return "not all claims of these pools are listed";
    return is_in_all_queues(e, f->listed) ? NULL : "it is not in all its queues yet";
}

/* Adds what is known about one run. */
static int fill_one(json_t *e, const struct facts *f) {
    const char *why = unknown_start(e, f);
    bool helps = strcmp(format_get_text(e, "state"), "waiting") == 0 && !why;
    int k = reason_add_pools(e, json_object_get(e, "wants"), format_get_text(e, "blocked_by"), f->listed, f->answer, f->most);

    if (k == 0)
        k = start_add_estimate(e, f->s, f->listed, f->estimates ? why : "");
    if (k == 0)
        k = reason_add_sooner(e, helps ? f->q : NULL, f->s, f->listed, f->most);
    (void) json_object_del(e, "wants");
    (void) json_object_del(e, "position"); /* each pool has its place */
    return k;
}

/* --- parked claims --- */

/* Returns the waiter of a parked claim, which only the pool lists that parks it. NULL: the claim is not parked. */
static const json_t *find_parked(const struct listed *listed, const char *claim) {
    for (size_t i = 0; i < listed_count(listed); i++) {
        const json_t *waiter = listed_waiter(listed_at(listed, i), claim);

        if (waiter && format_get_number(waiter, "position") == 0)
            return waiter;
    }
    return NULL;
}

/* Adds a parked run to the lists of its other pools: it needs their permits as well when it comes back. */
static int add_parked(const json_t *e, const struct listed *listed) {
    const char *claim = format_get_text(e, "run"), *name;
    const json_t *parked = find_parked(listed, claim);
    json_t *permits;
    int k = 0;

    json_object_foreach (json_object_get(e, "wants"), name, permits) {
        struct listed_pool *pool = parked ? listed_find(listed, name, claim) : NULL;
        json_t *waiter;

        if (!pool || listed_waiter(pool, claim) || listed_holder(pool, claim))
            continue;
        waiter = json_copy((json_t *) parked);
        k |= json_object_set(waiter, "permits", permits);
        k |= listed_add_waiter(pool, waiter);
    }
    return k;
}

static int add_all_parked(const json_t *list, const struct listed *listed) {
    json_t *e;
    int k = 0;
    size_t i;

    json_array_foreach (list, i, e)
        k |= add_parked(e, listed);
    return k;
}

int explained_fill(json_t *list, const json_t *answer, bool estimates, size_t most) {
    const json_t *pools = json_object_get(answer, "pools");
    _cleanup_(listed_freep) struct listed *listed = listed_new(pools);
    _cleanup_(queue_freep) struct queue *q = NULL;
    _cleanup_(usuals_done) struct usuals usuals = {};
    _cleanup_(estimator_freep) struct estimator *s = NULL;
    struct estimate_view view = {.pools = pools, .usuals = &usuals, .now = clock_realtime()};
    struct facts f = {.answer = answer, .listed = listed, .estimates = estimates, .most = most};
    int k = !listed || add_all_parked(list, listed) < 0 ? -ENOMEM : 0;
    json_t *e;
    size_t i;

    if (k == 0)
        k = usuals_make(&usuals, json_object_get(answer, "usual"));
    if (k == 0)
        k = start_add_usual(listed, &usuals, view.now);
    if (k == 0 && answer && !json_is_true(json_object_get(answer, "stale"))) {
        k = queue_new(&q, pools);
        view.q = q;
        s = k == 0 ? estimator_new(&view) : NULL;
        k = k == 0 && !s ? -ENOMEM : k;
    }
    f.q = q;
    f.s = s;
    json_array_foreach (list, i, e)
        if (k == 0)
            k = fill_one(e, &f);
    return k;
}
