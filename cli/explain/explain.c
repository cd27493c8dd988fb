/* SPDX-License-Identifier: MIT */
/* `berth explain`: why a run waits, behind whom, and what would start it now. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/explain/claims.h"
#include "base/explain/explained.h"
#include "base/explain/reason.h"
#include "base/json/format.h"
#include "base/name.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/cluster-runs.h"
#include "cli/explain/text.h"
#include "cli/output.h"
#include "cli/verbs.h"

static bool is_over(const json_t *run) {
    return strcmp(format_get_text(run, "state"), "done") == 0;
}

/* --- runs of this host --- */

/* Stores the runs of this host. Returns 0, or an exit status whose reason was printed. */
static int ask_runs(json_t **ret) {
    int status = client_call("io.berth.Runs", json_pack("{s:b}", "all", true), ret);
    const char *missing = NULL;
    json_t *run;
    size_t i;

    json_array_foreach (json_object_get(*ret, "runs"), i, run)
        missing = missing ? missing : explained_missing(run);
    if (missing)
        fprintf(stderr, "berth: berthd's reply about runs lacks \"%s\"\n", missing);
    return missing ? EXIT_INTERNAL : status;
}

/* Adds the runs that a word means: for a name those that are not over, or else the newest one. */
static int choose_runs(const json_t *answer, const char *host, const char *word, json_t *list,
                       struct candidates *c) {
    const json_t *last = NULL;
    json_t *run;
    int k = 0;
    size_t i;

    json_array_foreach (json_object_get(answer, "runs"), i, run) {
        bool is_name = choice_is_name(word, format_get_text(run, "name"));

        if (is_name)
            last = run;
        if (is_name && !is_over(run))
            k |= json_array_append_new(list, explained_new(run, host));
    }
    if (json_array_size(list) == 0 && last)
        k |= json_array_append_new(list, explained_new(last, host));
    if (json_array_size(list) > 0)
        return k;
    json_array_foreach (json_object_get(answer, "runs"), i, run)
        if (id_begins_with(format_get_text(run, "run"), word)) {
            candidates_add(c, format_get_text(run, "run"), format_get_text(run, "name"));
            k |= json_array_append_new(list, explained_new(run, host));
        }
    return k;
}

/* --- runs of other hosts, by their claims --- */

static int add_claims(const json_t *pools, const char *word, json_t *list, struct candidates *c) {
    _cleanup_json_ json_t *runs = claims_as_runs(pools);
    json_t *run;
    int k = runs ? 0 : -1;
    size_t i;

    json_array_foreach (runs, i, run)
        if (id_begins_with(format_get_text(run, "run"), word)) {
            candidates_add(c, format_get_text(run, "run"), format_get_text(run, "name"));
            k |= json_array_append_new(list, explained_new(run, format_get_text(run, "host")));
        }
    return k;
}

/* Chooses among the first 100 claims of each list, or else among the first 1000. Returns 0, or an exit status
 * whose reason was printed. */
static int choose_claims(json_t **all, const char *word, json_t *list, struct candidates *c) {
    int k = add_claims(json_object_get(*all, "pools"), word, list, c), status = 0;
    bool is_more = false;

    if (k == 0 && c->n == 0)
        status = cluster_runs_ask_more(all, &is_more);
    if (status == 0 && is_more)
        k |= add_claims(json_object_get(*all, "pools"), word, list, c);
    return k != 0 ? output_error(-ENOMEM) : status;
}

/* Adds the runs of this name: berth pools shows the names of all hosts. */
static int choose_names(const json_t *pools, const char *word, json_t *list) {
    _cleanup_json_ json_t *runs = claims_as_runs(pools);
    json_t *run;
    int k = runs ? 0 : -1;
    size_t i;

    json_array_foreach (runs, i, run)
        if (choice_is_name(word, format_get_text(run, "name")))
            k |= json_array_append_new(list, explained_new(run, format_get_text(run, "host")));
    return k;
}

/* --- their pools --- */

/* Stores those pools with up to 1000 claims in each list, and how long their runs usually hold. Returns 0,
 * or an exit status whose reason was printed. */
static int ask_pools(const json_t *names, json_t **ret) {
    json_t *list = json_array(), *value;
    const char *name;

    json_object_foreach ((json_t *) names, name, value)
        (void) json_array_append_new(list, json_string(name));
    return cluster_runs_ask(json_pack("{s:o, s:b}", "pools", list, "usual", true), ret);
}

static int show(json_t *list, const json_t *answer, const char *host, bool json) {
    json_t *age = json_object_get(answer, "age_ms");
    json_t *e;
    size_t i;
    int k = 0;

    if (json) {
        _cleanup_json_ json_t *document = json_pack("{s:i, s:s, s:b, s:O, s:O}", "schema", 1, "host", host,
                                                    "stale", json_is_true(json_object_get(answer, "stale")),
                                                    "age_ms", age ? age : json_null(), "explained", list);

        return document ? output_json(document) : output_error(-ENOMEM);
    }
    if (answer)
        output_caveats(answer);
    json_array_foreach (list, i, e)
        k = k < 0 ? k : explain_print(e, output_silent_ms(answer));
    return k < 0 ? output_error(k) : 0;
}

static bool is_job(const json_t *answer, const char *word) {
    json_t *job;
    size_t i;

    json_array_foreach (json_object_get(answer, "jobs"), i, job)
        if (choice_is_name(word, format_get_text(job, "name")))
            return true;
    return false;
}

/* For a word that means no run here and no claim anywhere: prints that a job has no run, or that the name is
 * unknown. */
static int explain_none(char **words, bool json, const char *host) {
    _cleanup_json_ json_t *found = NULL, *answer = NULL, *none = json_array();
    char when[FORMAT_SIZE];
    json_t *job;
    size_t i;
    int status = client_call("io.berth.Jobs", NULL, &answer);

    if (status == 0 && !json)
        output_caveats(answer); /* berthd may be recovering this run */
    if (status == 0 && id_prefix_is_valid(words[0]) && !is_job(answer, words[0])) {
        fprintf(stderr,
                "berth: no run %s on this host, nor among the first 1000 claims of a pool; ask its host\n",
                words[0]);
        return EXIT_UNKNOWN_NAME;
    }
    if (status == 0)
        status = find_names("explain", words, 1, NULL, &found);
    if (status != 0)
        return status;
    if (json)
        return show(none, NULL, host, true);
    json_array_foreach (json_object_get(answer, "jobs"), i, job)
        if (choice_is_name(words[0], format_get_text(job, "name")))
            printf("%s  has no run; next: %s\n", format_get_text(job, "name"),
                   json_is_true(json_object_get(job, "drained")) ? "drained"
                   : json_is_string(json_object_get(job, "next"))
                       ? format_when(job, "next", clock_realtime(), when)
                       : "none");
    return 0;
}

int verb_explain(int argc, char **argv) {
    _cleanup_json_ json_t *version = NULL, *runs = NULL, *all = NULL, *answer = NULL, *list = json_array(),
                          *names = json_object();
    bool json = false, is_short = false;
    const struct verb_option options[] = {OPTION_FLAG("--json", &json),
                                          OPTION_FLAG("--no-estimate", &is_short)};
    struct candidates c = {};
    const char *host;
    int status, k = 0;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    status = options_check_job("explain", "job or run", argv[1]);
    if (status == 0)
        status = client_call("io.berth.Version", NULL, &version);
    if (status == 0)
        status = ask_runs(&runs);
    if (status != 0)
        return status;
    host = format_get_text(version, "host");
    k = choose_runs(runs, host, argv[1], list, &c);
    status = cluster_runs_ask(NULL, &all);
    if (status != 0)
        return status;
    if (json_array_size(list) == 0 && id_prefix_is_valid(argv[1]))
        status = choose_claims(&all, argv[1], list, &c);
    if (status != 0)
        return status;
    if (c.n > 1)
        return candidates_explain(&c, argv[1]);
    if (json_array_size(list) == 0)
        k |= choose_names(json_object_get(all, "pools"), argv[1], list);
    if (json_array_size(list) == 0 && k == 0)
        return explain_none(argv + 1, json, host);
    k |= explained_add_pools(names, list, json_object_get(all, "pools"));
    if (k == 0 && json_object_size(names) > 0)
        status = ask_pools(names, &answer);
    if (k == 0 && status == 0)
        k = explained_fill(list, answer, !is_short, json ? REASON_ALL : EXPLAIN_SHOWN);
    return k != 0 ? output_error(-ENOMEM) : status != 0 ? status : show(list, answer, host, json);
}
