/* SPDX-License-Identifier: MIT */
/* Verbs that change something: stop, revoke, grace, reload, drain. `berth start` is in start.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/format.h"
#include "base/name.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/cluster-runs.h"
#include "cli/verbs.h"

static bool is_unknown(const char *error) {
    return strcmp(error, "io.berth.NoSuchRun") == 0 || strcmp(error, "io.berth.NoSuchJob") == 0;
}

/* Asks berthd what the names mean. Returns 0, or an exit status whose reason was printed; the reason may be
 * that another host has the run. */
static int ask_names(json_t *list, json_t *set, json_t **ret) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int r = client_ask("io.berth.Find", json_pack("{s:O, s:O*}", "names", list, "set", set), &reply);

    if (r < 0)
        return client_explain_errno(r);
    if (reply.error && is_unknown(reply.error) && cluster_runs_say_where(format_get_text(reply.params, "name")))
        return EXIT_UNKNOWN_NAME;
    if (!reply.error)
        *ret = json_incref(json_object_get(reply.params, "found"));
    return client_explain(&reply);
}

int find_names(const char *verb, char **names, int n, json_t *set, json_t **ret_found) {
    json_t *list = json_array();
    int status = 0;

    for (int i = 0; i < n && status == 0; i++) {
        status = options_check_job(verb, "job or run", names[i]);
        (void) json_array_append_new(list, json_string(names[i]));
    }
    if (status == 0)
        status = ask_names(list, set, ret_found);
    json_decref(list);
    return status;
}

/* Reports runs that were not stopped. Returns the exit status. */
static int explain_stopped(const json_t *answer, const char *name) {
    json_t *elsewhere = json_object_get(answer, "elsewhere"), *run;
    const char *unsure = format_get_text(answer, "unsure");
    bool stopped = format_get_number(answer, "stopped") > 0;
    size_t i;

    json_array_foreach (elsewhere, i, run)
        fprintf(stderr, "berth: %s: run %.8s %s on host %s; stop it there\n", format_get_text(run, "job"),
                format_get_text(run, "run"), json_is_true(json_object_get(run, "waits")) ? "waits" : "runs",
                format_get_text(run, "host"));
    if (unsure[0] != '\0')
        fprintf(stderr, "berth: %s: stopped here; what other hosts have is not known: %s\n", name, unsure);
    if (!stopped && i == 0)
        fprintf(stderr, "berth: %s: nothing to stop\n", name);
    return stopped || i == 0 ? 0 : EXIT_NO_PERMIT;
}

/* Receives the reply about one name. Returns the exit status. */
static int stop_finish(struct client *c, const char *name) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int r = client_receive(c, &reply);

    if (r < 0)
        return client_explain_errno(r);
    return reply.error ? client_explain(&reply) : explain_stopped(reply.params, name);
}

/* Stops all before it waits for one: each has its own connection. Returns the first exit status that is not 0. */
static int stop_all(const json_t *found, char **names, size_t n, bool wait) {
    _cleanup_free_ struct client **clients = calloc(n, sizeof(struct client *));
    int first = clients ? 0 : client_explain_errno(-ENOMEM);

    for (size_t i = 0; clients && i < n; i++) {
        const char *target = format_get_text(json_array_get(found, i), "target");
        int r = client_connect_patiently(&clients[i]), status;

        if (r == 0)
            r = client_send(clients[i], "io.berth.Stop", json_pack("{s:s, s:b}", "target", target, "wait", wait), 0);
        status = r < 0 ? client_explain_errno(r) : wait ? 0 : stop_finish(clients[i], names[i]);
        if (r < 0 || !wait)
            clients[i] = client_free(clients[i]);
        first = first != 0 ? first : status;
    }
    for (size_t i = 0; clients && i < n; i++) {
        int status = clients[i] ? stop_finish(clients[i], names[i]) : 0;

        first = first != 0 ? first : status;
        client_free(clients[i]);
    }
    return first;
}

int verb_stop(int argc, char **argv) {
    _cleanup_json_ json_t *found = NULL;
    bool wait = false;
    const struct verb_option options[] = {OPTION_FLAG("--wait", &wait)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    status = find_names(argv[0], argv + 1, words, NULL, &found);
    return status != 0 ? status : stop_all(found, argv + 1, (size_t) words, wait);
}

/* --- revoke --- */

static void add_claims(struct candidates *c, const json_t *claims, const char *word) {
    json_t *claim;
    size_t i;

    json_array_foreach (claims, i, claim)
        if (id_begins_with(format_get_text(claim, "claim"), word))
            candidates_add(c, format_get_text(claim, "claim"), format_get_text(claim, "name"));
}

static void add_all(struct candidates *c, const json_t *pools, const char *word) {
    json_t *pool;
    size_t i;

    json_array_foreach (pools, i, pool) {
        add_claims(c, json_object_get(pool, "holders"), word);
        add_claims(c, json_object_get(pool, "queue"), word);
    }
}

/* Finds the only run in the cluster that holds or awaits permits and whose id begins with the word. A whole
 * id is not looked up, because not all claims of a pool are listed. Returns 0, or an exit status whose reason
 * was printed. */
static int find_claim(const char *word, char ret[static ID_TEXT_SIZE]) {
    _cleanup_json_ json_t *answer = NULL;
    struct candidates c = {};
    bool is_more = false;
    int status;

    snprintf(ret, ID_TEXT_SIZE, "%s", word);
    if (id_is_valid(word))
        return 0;
    status = client_call("io.berth.Pools", NULL, &answer);
    if (status != 0)
        return status;
    add_all(&c, json_object_get(answer, "pools"), word);
    if (c.n == 0)
        status = cluster_runs_ask_more(&answer, &is_more);
    if (status != 0)
        return status;
    if (is_more)
        add_all(&c, json_object_get(answer, "pools"), word);
    if (c.n > 1)
        return candidates_explain(&c, word);
    if (c.n == 1) {
        memcpy(ret, c.items[0].run, ID_TEXT_SIZE);
        return 0;
    }
    fprintf(stderr,
            "berth: no run %s holds permits or waits for them; `berth pools POOL` lists those that do\n",
            word);
    return EXIT_UNKNOWN_NAME;
}

int verb_revoke(int argc, char **argv) {
    const char *reason = NULL;
    const struct verb_option options[] = {OPTION_TEXT("--reason", &reason)};
    char claim[ID_TEXT_SIZE];
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    if (!id_prefix_is_valid(argv[1]))
        return options_wrong_usage(
            argv[0], "%.100s: not a run's id or its first digits (at least %d); see `berth pools POOL`",
            argv[1], ID_PREFIX_MIN);
    status = find_claim(argv[1], claim);
    return status != 0 ? status
                       : client_call("io.berth.Revoke",
                                     json_pack("{s:s, s:s*}", "claim", claim, "reason", reason), NULL);
}

int verb_grace(int argc, char **argv) {
    bool end = false;
    const struct verb_option options[] = {OPTION_FLAG("--end", &end)};
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    if (!end)
        return options_wrong_usage(argv[0], "--end is missing; `berth help grace` explains the risk");
    return client_call("io.berth.EndGrace", NULL, NULL);
}

int verb_reload(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    const json_t *warning;
    int status;
    size_t i;

    if (options_parse(argc, argv, NULL, 0, &status) < 0)
        return status;
    status = client_call("io.berth.Reload", NULL, &answer);
    json_array_foreach (json_object_get(answer, "warnings"), i, warning)
        fprintf(stderr, "berth: the config is in force, but %s\n",
                json_is_string(warning) ? json_string_value(warning) : "?");
    return status;
}

int verb_drain(int argc, char **argv) {
    bool wait = false;
    const struct verb_option options[] = {OPTION_FLAG("--wait", &wait)};
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    return client_call("io.berth.Drain", json_pack("{s:b}", "wait", wait), NULL);
}

int verb_undrain(int argc, char **argv) {
    int status;

    if (options_parse(argc, argv, NULL, 0, &status) < 0)
        return status;
    return client_call("io.berth.Undrain", NULL, NULL);
}
