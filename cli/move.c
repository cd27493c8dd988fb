/* SPDX-License-Identifier: MIT */
/* berth move, berth steal: a waiting run gets another place in its queues, or the permits of another run. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json/format.h"
#include "base/name.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/cluster-runs.h"
#include "cli/output.h"
#include "cli/verbs.h"

#define LABEL_SIZE (2 * (NAME_MAX_LENGTH + 1) + 1)

struct target { /* a claim */
    char id[ID_TEXT_SIZE], label[LABEL_SIZE]; /* "ant:pg-dump"; else the first digits of the id */
};

/* --- which claim --- */

static void add_all(struct candidates *c, const json_t *pools, const char *list, const char *word, bool by_name) {
    json_t *pool, *claim;
    size_t i, k;

    json_array_foreach (pools, i, pool)
        json_array_foreach (json_object_get(pool, list), k, claim) {
            const char *id = format_get_text(claim, "claim"), *name = format_get_text(claim, "name");

            if (by_name ? strcmp(name, word) == 0 : id_begins_with(id, word))
                candidates_add(c, id, name);
        }
}

static void set_label(struct target *t, const json_t *pools, const char *list) {
    json_t *pool, *claim;
    size_t i, k;

    json_array_foreach (pools, i, pool)
        json_array_foreach (json_object_get(pool, list), k, claim)
            if (strcmp(format_get_text(claim, "claim"), t->id) == 0)
                snprintf(t->label, sizeof(t->label), "%s:%s", format_get_text(claim, "host"), format_get_text(claim, "name"));
}

static void add_named(struct candidates *c, const json_t *pools, const char *word, bool held, bool waiting) {
    for (int by_name = 1; by_name >= 0 && c->n == 0; by_name--) {
        if (!by_name && !id_prefix_is_valid(word))
            break;
        if (waiting)
            add_all(c, pools, "queue", word, by_name);
        if (held)
            add_all(c, pools, "holders", word, by_name);
    }
}

/* Finds the claim that a name or the first digits of an id mean, among those that hold permits (`held`),
 * those that wait (`waiting`), or both: first in *answer of io.berth.Pools, then in a longer one, which
 * replaces it. Returns 0, or an exit status whose reason was printed. */
static int find_target(json_t **answer, const char *word, bool held, bool waiting, struct target *ret) {
    struct candidates c = {};
    bool is_more = false;
    const json_t *pools;
    int status = 0;

    add_named(&c, json_object_get(*answer, "pools"), word, held, waiting);
    if (c.n == 0 && !id_is_valid(word))
        status = cluster_runs_ask_more(answer, &is_more);
    if (status != 0)
        return status;
    pools = json_object_get(*answer, "pools");
    if (is_more)
        add_named(&c, pools, word, held, waiting);
    if (c.n > 1)
        return candidates_explain(&c, word);
    if (c.n == 0 && !id_is_valid(word)) {
        fprintf(stderr, "berth: no run %s %s%s%s; ", word, held ? "holds permits" : "", held && waiting ? " or " : "",
                waiting ? "waits for permits" : "");
        fputs("`berth pools POOL` lists those that do", stderr);
        if (choice_is_short_id(word))
            fprintf(stderr, "; a run needs %d digits at least", ID_PREFIX_MIN);
        fputc('\n', stderr);
        return EXIT_UNKNOWN_NAME;
    }
    snprintf(ret->id, sizeof(ret->id), "%s", c.n == 1 ? c.items[0].run : word);
    snprintf(ret->label, sizeof(ret->label), "%.8s", ret->id);
    set_label(ret, pools, "queue");
    set_label(ret, pools, "holders");
    return 0;
}

/* --- move --- */

/* "is now first of db, 2 were passed: bee:reindex, cow:dump" */
static void print_place(const json_t *place) {
    json_int_t n = format_get_number(place, "place");

    if (n == 1)
        printf("first of %s", format_get_text(place, "pool"));
    else
        printf("at place %" JSON_INTEGER_FORMAT " of %s", n, format_get_text(place, "pool"));
}

static void print_passed(const json_t *answer) {
    json_t *place, *passed;
    json_int_t most = 0;
    size_t i;

    json_array_foreach (json_object_get(answer, "places"), i, place)
        if (format_get_number(place, "passed") > most)
            most = format_get_number(place, "passed");
    if (most == 0)
        return;
    printf(most == 1 ? ", 1 was passed" : ", %" JSON_INTEGER_FORMAT " were passed", most);
    json_array_foreach (json_object_get(answer, "passed"), i, passed)
        printf("%s%s:%s", i == 0 ? ": " : ", ", format_get_text(passed, "host"), format_get_text(passed, "name"));
    if (most > (json_int_t) i)
        fputs(", ...", stdout);
}

static void print_moved(const json_t *answer) {
    json_t *places = json_object_get(answer, "places"), *place;
    size_t i;

    printf("%.8s (%s:%s) ", format_get_text(answer, "claim"), format_get_text(answer, "host"), format_get_text(answer, "name"));
    if (json_is_true(json_object_get(answer, "parked")))
        printf("is parked, and goes before the others when the limit rises%s", json_array_size(places) > 0 ? "; " : "");
    else
        fputs(json_is_true(json_object_get(answer, "moved")) ? "is now " : "is already ", stdout);
    json_array_foreach (places, i, place) {
        if (i > 0)
            fputs(i + 1 == json_array_size(places) ? " and " : ", ", stdout);
        print_place(place);
    }
    print_passed(answer);
    fputs(json_is_true(json_object_get(answer, "granted")) ? "; it was granted its permits\n" : "\n", stdout);
}

static int do_move(json_t *params, bool json) {
    _cleanup_json_ json_t *answer = NULL;
    int status = client_call("io.berth.Move", params, &answer);

    if (status != 0)
        return status;
    if (json)
        return output_json(answer);
    print_moved(answer);
    return 0;
}

/* "5m", "-5m". */
static int parse_by(const char *text, json_int_t *ret) {
    bool is_less = text[0] == '-';
    int status = options_parse_msec("move", "--by", text + is_less, ret);

    if (is_less)
        *ret = -*ret;
    return status;
}

int verb_move(int argc, char **argv) {
    const char *before = NULL, *by = NULL, *reason = NULL;
    bool first = false, json = false;
    const struct verb_option options[] = {OPTION_FLAG("--first", &first), OPTION_VALUE("--before", &before), OPTION_VALUE("--by", &by),
                                          OPTION_TEXT("--reason", &reason), OPTION_FLAG("--json", &json)};
    _cleanup_json_ json_t *pools = NULL;
    struct target target, other = {.id = ""};
    json_int_t by_ms = 0;
    json_t *params;
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    if (first + (before != NULL) + (by != NULL) != 1)
        return options_wrong_usage(argv[0], "one of --first, --before and --by is needed");
    status = by ? parse_by(by, &by_ms) : 0;
    if (status == 0)
        status = client_call("io.berth.Pools", NULL, &pools);
    if (status == 0)
        status = find_target(&pools, argv[1], true, true, &target);
    if (status == 0 && before)
        status = find_target(&pools, before, false, true, &other);
    if (status != 0)
        return status;
    params = json_pack("{s:s, s:s, s:s*}", "claim", target.id, "kind", first ? "first" : before ? "before" : "by", "reason", reason);
    if (before)
        (void) json_object_set_new(params, "before", json_string(other.id));
    if (by)
        (void) json_object_set_new(params, "by_ms", json_integer(by_ms));
    return do_move(params, json);
}

/* --- steal --- */

static const json_t *find_in(const json_t *pool, const char *list, const char *claim) {
    json_t *item;
    size_t i;

    json_array_foreach (json_object_get(pool, list), i, item)
        if (strcmp(format_get_text(item, "claim"), claim) == 0)
            return item;
    return NULL;
}

/* Returns how many permits the waiter would still lack after the end of the holder, and stores their pool;
 * 0: none. */
static json_int_t find_lack(const json_t *pools, const char *holder, const char *waiter, const char **ret_pool) {
    json_t *pool;
    size_t i;

    json_array_foreach (pools, i, pool) {
        const json_t *wants = find_in(pool, "queue", waiter), *holds = find_in(pool, "holders", holder);
        json_int_t lack = wants ? format_get_number(pool, "used") - (holds ? format_get_number(holds, "permits") : 0) +
                                      format_get_number(wants, "permits") - format_get_number(pool, "limit")
                                : 0;

        if (lack > 0) {
            *ret_pool = format_get_text(pool, "name");
            return lack;
        }
    }
    return 0;
}

/* Asks on the terminal. The default is no. */
static bool is_confirmed(void) {
    int first, c;

    fputs("Do it? [y/N] ", stderr);
    first = c = getchar();
    while (c != '\n' && c != EOF)
        c = getchar();
    return first == 'y' || first == 'Y';
}

/* Returns 0 to go on, or an exit status whose reason was printed. */
static int confirm(const struct target *holder, const struct target *waiter, const json_t *pools, bool yes) {
    const char *pool = NULL;
    json_int_t lack = find_lack(pools, holder->id, waiter->id, &pool);

    if (yes)
        return 0;
    if (lack > 0) {
        fprintf(stderr,
                "berth: that alone does not start %s: %s needs %" JSON_INTEGER_FORMAT
                " more (--yes stops it anyway)\n",
                waiter->label, pool, lack);
        return EXIT_NO_PERMIT;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        fprintf(stderr, "berth: this stops %s; --yes confirms it\n", holder->label);
        return EXIT_USAGE;
    }
    fprintf(stderr, "stops %s (run %.8s); then starts %s\n", holder->label, holder->id, waiter->label);
    return is_confirmed() ? 0 : EXIT_NO_PERMIT;
}

int verb_steal(int argc, char **argv) {
    const char *to = NULL, *reason = NULL;
    bool yes = false;
    const struct verb_option options[] = {OPTION_VALUE("--for", &to), OPTION_TEXT("--reason", &reason), OPTION_FLAG("--yes", &yes)};
    _cleanup_json_ json_t *answer = NULL;
    struct target holder, waiter;
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    if (!to)
        return options_wrong_usage(argv[0], "--for is missing: who gets the permits");
    status = client_call("io.berth.Pools", NULL, &answer);
    if (status != 0)
        return status;
    status = find_target(&answer, argv[1], true, false, &holder);
    if (status == 0)
        status = find_target(&answer, to, false, true, &waiter);
    if (status == 0)
        status = confirm(&holder, &waiter, json_object_get(answer, "pools"), yes);
    if (status == 0) /* the move comes first, so no other run gets the permits */
        status = do_move(json_pack("{s:s, s:s, s:s*}", "claim", waiter.id, "kind", "first", "reason", reason), false);
    if (status == 0)
        status = client_call("io.berth.Revoke", json_pack("{s:s, s:s*}", "claim", holder.id, "reason", reason), NULL);
    if (status == 0)
        printf("%.8s (%s) is being stopped\n", holder.id, holder.label);
    return status;
}
