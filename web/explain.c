/* SPDX-License-Identifier: MIT */
#include "web/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/explain/claims.h"
#include "base/explain/explained.h"
#include "base/explain/reason.h"
#include "base/json/format.h"
#include "base/name.h"
#include "web/call.h"

#define _cleanup_json_ _cleanup_(json_decrefp)

#define EXPLAINS_MAX 4 /* at once: an answer takes up to 13 ms, in which no other browser is served */

static unsigned n_explains;

struct explain {
    struct call *call;
    json_t *list; /* of the explained run */
    explain_fn fn;
    void *userdata;
};

struct explain *explain_free(struct explain *e) {
    if (!e)
        return NULL;
    call_free(e->call);
    json_decref(e->list);
    free(e);
    n_explains--;
    return NULL;
}

static bool has_claim(const json_t *pool, const char *list, const char *claim) {
    const json_t *item;
    size_t i;

    json_array_foreach (json_object_get(pool, list), i, item)
        if (strcmp(format_get_text(item, "claim"), claim) == 0)
            return true;
    return false;
}

/* Returns a list of one run without reasons; NULL: no such claim, or no memory. */
static json_t *find_run(const json_t *pools, const char *claim) {
    _cleanup_json_ json_t *own = json_array(), *runs = NULL;
    json_t *pool, *run;
    size_t i;

    json_array_foreach (pools, i, pool) /* the runs of all pools are many */
        if (has_claim(pool, "queue", claim) || has_claim(pool, "holders", claim))
            (void) json_array_append(own, pool);
    runs = claims_as_runs(own);
    json_array_foreach (runs, i, run)
        if (strcmp(format_get_text(run, "run"), claim) == 0)
            return json_pack("[o]", explained_new(run, format_get_text(run, "host")));
    return NULL;
}

/* Returns the pools of the list whose names are keys of the object. */
static json_t *choose_pools(const json_t *pools, const json_t *names) {
    json_t *chosen = json_array(), *pool;
    size_t i;

    json_array_foreach (pools, i, pool)
        if (json_object_get(names, format_get_text(pool, "name")))
            (void) json_array_append(chosen, pool);
    return chosen;
}

/* Adds the reasons to the list. pools: a reply of io.berth.Pools or a part of it. Returns the answer, or NULL. */
static json_t *fill(json_t *list, const json_t *pools) {
    json_t *age = json_object_get(pools, "age_ms");

    if (explained_fill(list, pools, true, REASON_ALL) != 0)
        return NULL;
    return json_pack("{s:i, s:s, s:b, s:O, s:O}", "schema", 1, "host", format_get_text(pools, "host"), "stale",
                     json_is_true(json_object_get(pools, "stale")), "age_ms", age ? age : json_null(), "explained", list);
}

static void on_reply(const struct client_reply *reply, const char *why, void *userdata) {
    struct explain *e = userdata;
    json_t *answer = reply && !reply->error ? fill(e->list, reply->params) : NULL;

    e->call = NULL;
    e->fn(answer, why ? why : "berthd has no answer", e->userdata);
    explain_free(e);
}

/* --- begin --- */

/* Asks berthd for these pools with all their claims, and how long their runs usually hold. list: stolen. */
static int ask(struct explain **ret, sd_event *event, json_t *list, const json_t *names, explain_fn fn, void *userdata) {
    struct explain *e = n_explains < EXPLAINS_MAX ? calloc(1, sizeof(*e)) : NULL;
    json_t *wanted = json_array(), *value;
    const char *name;
    int r;

    if (!e || !wanted) {
        r = n_explains < EXPLAINS_MAX ? -ENOMEM : -EBUSY;
        json_decref(wanted);
        json_decref(list);
        free(e);
        return r;
    }
    n_explains++;
    *e = (struct explain) {.list = list, .fn = fn, .userdata = userdata};
    json_object_foreach ((json_t *) names, name, value)
        (void) json_array_append_new(wanted, json_string(name));
    r = call_new(&e->call, event, "io.berth.Pools", json_pack("{s:o, s:b}", "pools", wanted, "usual", true), on_reply, e);
    if (r < 0)
        explain_free(e);
    else
        *ret = e;
    return r;
}

int explain_new(struct explain **ret, json_t **ret_answer, sd_event *event, const struct board *board, const char *claim,
                explain_fn fn, void *userdata) {
    _cleanup_json_ json_t *names = json_object(), *chosen = NULL, *seen = NULL;
    const json_t *pools = board_pools(board);
    json_t *list = find_run(pools, claim);

    *ret = NULL;
    *ret_answer = NULL;
    if (!list)
        return -ENOENT;
    if (explained_add_pools(names, list, pools) == 0)
        chosen = choose_pools(pools, names);
    if (chosen && claims_are_complete(chosen))
        return ask(ret, event, list, names, fn, userdata);
    seen = board_pools_reply(board, NULL); /* without an estimate: that needs all claims and takes long */
    if (chosen && seen && json_object_set(seen, "pools", chosen) == 0)
        *ret_answer = fill(list, seen);
    json_decref(list);
    return *ret_answer ? 1 : -ENOMEM;
}
