/* SPDX-License-Identifier: MIT */

#include "cli/cluster-runs.h"

#include <stdio.h>
#include <string.h>

#include "base/explain/claims.h"
#include "base/json/format.h"
#include "base/name.h"
#include "cli/client.h"
#include "cli/verbs.h"

int cluster_runs_ask(json_t *params, json_t **ret) {
    int status = client_call("io.berth.Pools", params, ret);
    const char *missing = status == 0 ? claims_missing(json_object_get(*ret, "pools")) : NULL;

    if (missing)
        fprintf(stderr, "berth: berthd's reply about pools lacks \"%s\"\n", missing);
    return missing ? EXIT_INTERNAL : status;
}

bool cluster_runs_say_where(const char *word) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    _cleanup_json_ json_t *runs = NULL;
    const json_t *found = NULL;
    json_t *run;
    size_t i;

    if (!id_prefix_is_valid(word) || client_ask("io.berth.Pools", NULL, &reply) < 0 || reply.error)
        return false;
    runs = claims_as_runs(json_object_get(reply.params, "pools"));
    json_array_foreach (runs, i, run) {
        if (!id_begins_with(format_get_text(run, "run"), word))
            continue;
        if (found)
            return false;
        found = run;
    }
    if (found)
        fprintf(stderr, "berth: run %.8s (%s) is on %s: ask berth there\n", format_get_text(found, "run"),
                format_get_text(found, "name"), format_get_text(found, "host"));
    return found != NULL;
}

int cluster_runs_ask_more(json_t **answer, bool *ret_is_more) {
    json_t *names = json_array(), *more = NULL, *pool;
    int status;
    size_t i;

    *ret_is_more = false;
    if (json_is_true(json_object_get(*answer, "complete"))) {
        json_decref(names);
        return 0;
    }
    json_array_foreach (json_object_get(*answer, "pools"), i, pool)
        (void) json_array_append(names, json_object_get(pool, "name"));
    status = cluster_runs_ask(json_pack("{s:o}", "pools", names), &more);
    if (status != 0)
        return status;
    json_decref(*answer);
    *answer = more;
    *ret_is_more = true;
    return 0;
}
