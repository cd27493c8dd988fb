/* SPDX-License-Identifier: MIT */

#include "base/explain/claims.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"

static const char *const lists[] = {"queue", "holders"};

static const char *missing_of(const json_t *object, const char *const *members, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!json_object_get(object, members[i]))
            return members[i];
    return NULL;
}

const char *claims_missing(const json_t *pools) {
    static const char *const of_pool[] = {"name", "scope", "used", "waiting", "queue", "holders"};
    static const char *const of_claim[] = {"claim", "name", "host", "permits", "position"};
    const char *missing = json_is_array(pools) ? NULL : "pools";
    json_t *pool, *claim;
    size_t i, n;

    json_array_foreach (pools, i, pool) {
        missing = missing ? missing : missing_of(pool, of_pool, ELEMENTSOF(of_pool));
        for (size_t l = 0; l < ELEMENTSOF(lists); l++)
            json_array_foreach (json_object_get(pool, lists[l]), n, claim) /* only those that wait have a position */
                missing = missing ? missing : missing_of(claim, of_claim, ELEMENTSOF(of_claim) - (l == 1));
    }
    return missing;
}

static json_t *new_run(const json_t *claim, bool waits) {
    return json_pack("{s:O, s:O, s:O, s:s, s:{}, s:o, s:O*, s:O*}", "run", json_object_get(claim, "claim"),
                     "name", json_object_get(claim, "name"), "host", json_object_get(claim, "host"), "state",
                     waits ? "waiting" : "holding", "pools", "position", waits ? json_object() : json_null(),
                     "wait_ms", json_object_get(claim, "waiting_ms"), "since",
                     json_object_get(claim, "since"));
}

/* index: maps a run to its item of the list. */
static int add_claim(json_t *list, json_t *index, const json_t *pool, const json_t *claim, bool waits) {
    const char *id = format_get_text(claim, "claim"), *name = format_get_text(pool, "name");
    json_t *run = json_object_get(index, id);
    int k = 0;

    if (!run) {
        run = new_run(claim, waits);
        k = json_array_append_new(list, run);
        k = k == 0 ? json_object_set(index, id, run) : k;
    }
    if (k == 0 && waits)
        k = json_object_set(json_object_get(run, "position"), name, json_object_get(claim, "position"));
    return k == 0 ? json_object_set(json_object_get(run, "pools"), name, json_object_get(claim, "permits"))
                  : k;
}

json_t *claims_as_runs(const json_t *pools) {
    _cleanup_(json_decrefp) json_t *index = json_object(), *list = json_array();
    json_t *pool, *claim;
    size_t i, n;

    for (size_t l = 0; l < ELEMENTSOF(lists); l++)
        json_array_foreach (pools, i, pool)
            json_array_foreach (json_object_get(pool, lists[l]), n, claim)
                if (add_claim(list, index, pool, claim, l == 0) < 0)
                    return NULL;
    return json_incref(list);
}

bool claims_are_complete(const json_t *pools) {
    json_t *pool, *holder;
    size_t i, n;

    json_array_foreach (pools, i, pool) {
        json_int_t held = 0;

        json_array_foreach (json_object_get(pool, "holders"), n, holder)
            held += format_get_number(holder, "permits");
        if (held < format_get_number(pool, "used") ||
            (json_int_t) json_array_size(json_object_get(pool, "queue")) <
                format_get_number(pool, "waiting"))
            return false;
    }
    return true;
}
