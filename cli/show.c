/* SPDX-License-Identifier: MIT */
/* Verbs that show: pools, hosts, jobs, runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/format.h"

#define MALFORMED_SHOWN 10
#define CLAIMS_SHOWN 3 /* in the line of a pool; the others as "+N" */
#define INT "%" JSON_INTEGER_FORMAT

int print_json(const json_t *answer) {
    size_t flags = isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT;

    if (json_dumpf(answer, stdout, flags) < 0)
        return EXIT_INTERNAL;
    fputs("\n", stdout);
    return 0;
}

int print_table(struct table *t, const char *nothing) {
    int r;

    if (table_is_empty(t)) {
        fprintf(stderr, "%s\n", nothing);
        return 0;
    }
    r = table_print(t);
    if (r == 0)
        return 0;
    fprintf(stderr, "berth: the table cannot be printed: %s\n", strerror(-r));
    return EXIT_INTERNAL;
}

int no_table(int r) {
    fprintf(stderr, "berth: %s\n", strerror(-r));
    return EXIT_INTERNAL;
}

/* Somebody wrote it into Redis, no berthd. */
static void tell_malformed(const json_t *answer) {
    const json_t *list = json_object_get(answer, "malformed");
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item) {
        if (i == MALFORMED_SHOWN) {
            fprintf(stderr, "berth: and %zu more; --json lists them\n", json_array_size(list) - i);
            return;
        }
        fprintf(stderr, "berth: malformed in Redis: %s %s: %s\n", words_text(item, "key"), words_text(item, "id"),
                words_text(item, "record"));
    }
}

void tell_doubt(const json_t *answer) {
    const json_t *redis = json_object_get(answer, "redis");
    char text[WORDS_SIZE];

    if (json_is_true(json_object_get(answer, "recovering")))
        fputs("berth: berthd has just been started: it does not know yet what runs on this host\n", stderr);
    if (json_is_true(json_object_get(answer, "stale"))) {
        const char *since = words_when(redis, "since", clock_realtime(), text), *error = words_text(redis, "error");

        if (*error) /* else no attempt has failed yet */
            fprintf(stderr, "berth: Redis is away (lost %s; last error: %s)", since, error);
        else
            fputs("berth: berthd is connecting to Redis", stderr);
        fputs(": of the cluster this is what this host knows by itself\n", stderr);
    } else if (words_number(redis, "grace_ms") > 0)
        fprintf(stderr, "berth: grace: nothing is granted for up to %s\n", words_msec(words_number(redis, "grace_ms"), text));
    tell_malformed(answer);
}

/* A line for each; nothing: as of print_table(). */
static int print_items(const json_t *items, const struct table_column *columns, size_t n, void (*add)(struct table *t, const json_t *item),
                       const char *nothing) {
    _cleanup_(table_freep) struct table *t = NULL;
    int r = table_new(&t, columns, n);
    json_t *item;
    size_t i;

    if (r < 0)
        return no_table(r);
    json_array_foreach(items, i, item) {
        table_line(t);
        add(t, item);
    }
    return print_table(t, nothing);
}

/* A verb that asks one question and has no option but --json. */
static int show(int argc, char **argv, const char *method, int (*print)(const json_t *answer)) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false;
    const struct verb_option options[] = {{"--json", &json, NULL, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 0, 0, &words, &status) != 0)
        return status;
    status = client_ask(method, NULL, &answer);
    if (status != 0)
        return status;
    return json ? print_json(answer) : print(answer);
}

/* --- pools --- */

/* "web-03:pg-dump x2, ant:copy, +3"; which: "holders" or "queue". More may be waiting than the answer lists. */
static const char *claims_text(const json_t *pool, const char *which, size_t all, char buffer[static WORDS_SIZE]) {
    const json_t *claims = json_object_get(pool, which);
    size_t n = 0, i;
    json_t *h;

    buffer[0] = '\0';
    json_array_foreach(claims, i, h) {
        json_int_t permits = words_number(h, "permits");

        if (i == CLAIMS_SHOWN)
            break;
        n += (size_t) snprintf(buffer + n, WORDS_SIZE - n, "%s%.64s:%.64s", i > 0 ? ", " : "", words_text(h, "host"),
                               words_text(h, "name"));
        if (permits > 1)
            n += (size_t) snprintf(buffer + n, WORDS_SIZE - n, " x" INT, permits);
    }
    if (n > 0 && all > i)
        snprintf(buffer + n, WORDS_SIZE - n, ", +%zu", all - i);
    return buffer;
}

const char *override_text(const json_t *pool, char *buffer) {
    const json_t *o = json_object_get(pool, "override");
    const char *reason = words_text(o, "reason");
    char when[WORDS_SIZE];

    if (!json_is_object(o))
        return "";
    snprintf(buffer, WORDS_SIZE, json_is_string(json_object_get(o, "until")) ? INT ", ends %.64s" : INT, words_number(o, "limit"),
             words_when(o, "until", clock_realtime(), when));
    if (reason[0])
        snprintf(buffer + strlen(buffer), WORDS_SIZE - strlen(buffer), " (%.200s)", reason);
    return buffer;
}

/* Where limits differ, who declares the lowest: "bee: 0". */
static const char *differ_text(const json_t *pool, char buffer[static WORDS_SIZE]) {
    const json_t *lowest = json_object_get(pool, "lowest"), *limit = json_object_get(lowest, "limit");
    const char *host = words_text(lowest, "host");

    if (!json_is_object(lowest))
        return "yes"; /* in their scope */
    if (!*host)
        host = "a session that is no host's";
    if (json_is_integer(limit))
        snprintf(buffer, WORDS_SIZE, "%.64s: " INT, host, json_integer_value(limit));
    else
        snprintf(buffer, WORDS_SIZE, "%.64s", host);
    return buffer;
}

static void add_pool(struct table *t, const json_t *pool) {
    json_int_t limit = words_number(pool, "limit"), used = words_number(pool, "used"), waiting = words_number(pool, "waiting");
    bool differ = json_is_true(json_object_get(pool, "limits_differ"));
    char text[WORDS_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", words_text(pool, "name"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(pool, "scope"));
    table_cell(t, limit == 0 ? TABLE_NOTICE : TABLE_PLAIN, INT, limit);
    table_cell(t, used > limit ? TABLE_BAD : used > 0 ? TABLE_GOOD : TABLE_PLAIN, INT, used);
    table_cell(t, waiting > 0 ? TABLE_NOTICE : TABLE_PLAIN, INT, waiting);
    table_cell(t, differ ? TABLE_BAD : TABLE_PLAIN, "%s", differ ? differ_text(pool, text) : "");
    table_cell(t, TABLE_NOTICE, "%s", override_text(pool, text));
    table_cell(t, TABLE_PLAIN, "%s", claims_text(pool, "holders", json_array_size(json_object_get(pool, "holders")), text));
    table_cell(t, TABLE_PLAIN, "%s", claims_text(pool, "queue", (size_t) waiting, text));
}

static int print_pools(const json_t *pools) {
    static const struct table_column columns[] = {{"POOL", false},    {"SCOPE", false},  {"LIMIT", true},     {"USED", true},
                                                  {"WAITING", true}, {"DIFFER", false}, {"OVERRIDE", false}, {"HOLDERS", false}, {"QUEUE", false}};

    return print_items(pools, columns, ELEMENTSOF(columns), add_pool, "no pools are defined");
}

/* How long ago at most a host was alive. */
static void put_seen(struct table *t, const json_t *object) {
    char text[WORDS_SIZE];

    if (json_is_integer(json_object_get(object, "seen_ms")))
        table_cell(t, TABLE_PLAIN, "%s ago", words_duration(object, "seen_ms", text));
    else
        table_cell(t, TABLE_PLAIN, "%s", "not known");
}

static void add_holder(struct table *t, const json_t *h) {
    char text[WORDS_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", words_text(h, "claim"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(h, "host"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(h, "name"));
    table_cell(t, TABLE_PLAIN, INT, words_number(h, "permits"));
    table_cell(t, TABLE_PLAIN, INT, words_number(h, "token"));
    if (json_is_integer(json_object_get(h, "pid")))
        table_cell(t, TABLE_PLAIN, INT, words_number(h, "pid"));
    else
        table_cell(t, TABLE_PLAIN, "%s", "");
    table_cell(t, TABLE_PLAIN, "%s", words_when(h, "since", clock_realtime(), text));
    put_seen(t, h);
}

static int print_holders(const json_t *holders, const char *pool) {
    static const struct table_column columns[] = {{"HOLDER", false}, {"HOST", false}, {"NAME", false}, {"PERMITS", true},
                                                  {"TOKEN", true},   {"PID", true},   {"SINCE", false}, {"SEEN", false}};
    char text[WORDS_SIZE];

    snprintf(text, sizeof(text), "nobody holds permits of %.64s", pool);
    return print_items(holders, columns, ELEMENTSOF(columns), add_holder, text);
}

static void add_waiter(struct table *t, const json_t *w) {
    char text[WORDS_SIZE];

    if (words_number(w, "position") > 0)
        table_cell(t, TABLE_PLAIN, INT, words_number(w, "position"));
    else
        table_cell(t, TABLE_NOTICE, "parked"); /* asks for more than the limit in force */
    table_cell(t, TABLE_PLAIN, "%s", words_text(w, "claim"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(w, "host"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(w, "name"));
    table_cell(t, TABLE_PLAIN, INT, words_number(w, "permits"));
    table_cell(t, TABLE_PLAIN, "%s", words_duration(w, "waiting_ms", text));
}

static int print_queue(const json_t *queue) {
    static const struct table_column columns[] = {{"POSITION", true}, {"WAITING CLAIM", false}, {"HOST", false},
                                                  {"NAME", false},    {"PERMITS", true},        {"FOR", true}};

    return print_items(queue, columns, ELEMENTSOF(columns), add_waiter, "nobody waits");
}

static int print_each_pool(const json_t *pools) {
    json_t *pool;
    int r = 0;
    size_t i;

    json_array_foreach(pools, i, pool) {
        if (json_array_size(json_object_get(pool, "holders")) + json_array_size(json_object_get(pool, "queue")) == 0)
            continue;
        printf("\n%s:\n", words_text(pool, "name"));
        r = print_holders(json_object_get(pool, "holders"), words_text(pool, "name"));
        if (r == 0 && json_array_size(json_object_get(pool, "queue")) > 0)
            r = print_queue(json_object_get(pool, "queue"));
        if (r != 0)
            break;
    }
    return r;
}

int verb_pools(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false;
    const struct verb_option options[] = {{"--json", &json, NULL, NULL}};
    json_t *wanted;
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 0, WORDS_ANY, &words, &status) != 0)
        return status;
    wanted = json_array();
    for (int i = 1; i <= words; i++) {
        status = check_name(argv[0], "pool", argv[i]);
        if (status != 0) {
            json_decref(wanted);
            return status;
        }
        (void) json_array_append_new(wanted, json_string(argv[i]));
    }
    status = client_ask("io.berth.Pools", json_pack("{s:o}", "pools", wanted), &answer);
    if (status != 0)
        return status;
    if (json)
        return print_json(answer);
    tell_doubt(answer);
    status = print_pools(json_object_get(answer, "pools"));
    return status == 0 && words > 0 ? print_each_pool(json_object_get(answer, "pools")) : status;
}

/* --- hosts --- */

static const char *limits_text(const json_t *host, char buffer[static WORDS_SIZE]) {
    const json_t *limits = json_object_get(host, "limits");
    size_t n = 0, i;
    json_t *l;

    buffer[0] = '\0';
    json_array_foreach(limits, i, l)
        if (n < WORDS_SIZE)
            n += (size_t) snprintf(buffer + n, WORDS_SIZE - n, "%s%.64s " INT, i > 0 ? ", " : "", words_text(l, "pool"),
                                   words_number(l, "limit"));
    return buffer;
}

static bool is_drained(const json_t *object) {
    return json_is_true(json_object_get(object, "drained"));
}

static void add_host(struct table *t, const json_t *h) {
    char text[WORDS_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", words_text(h, "host"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(h, "version"));
    table_cell(t, TABLE_NOTICE, "%s", is_drained(h) ? "drained" : "");
    table_cell(t, TABLE_PLAIN, INT, words_number(h, "claims"));
    put_seen(t, h);
    table_cell(t, TABLE_NOTICE, "%s", limits_text(h, text));
}

static int print_hosts(const json_t *answer) {
    static const struct table_column columns[] = {
        {"HOST", false}, {"VERSION", false}, {"STATE", false}, {"CLAIMS", true}, {"SEEN", false}, {"OTHER LIMITS", false}};

    tell_doubt(answer);
    return print_items(json_object_get(answer, "hosts"), columns, ELEMENTSOF(columns), add_host, "no host is alive");
}

int verb_hosts(int argc, char **argv) {
    return show(argc, argv, "io.berth.Hosts", print_hosts);
}

/* --- jobs and runs --- */

static enum table_colour state_colour(const char *state) {
    if (strcmp(state, "running") == 0)
        return TABLE_GOOD;
    return strcmp(state, "done") == 0 || strcmp(state, "idle") == 0 ? TABLE_PLAIN : TABLE_NOTICE;
}

static enum table_colour result_colour(const char *result) {
    return strcmp(result, "success") == 0 ? TABLE_GOOD : strcmp(result, "stopped") == 0 ? TABLE_NOTICE : TABLE_BAD;
}

static void add_job(struct table *t, const json_t *j) {
    usec_t now = clock_realtime();
    char text[WORDS_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", words_text(j, "name"));
    table_cell(t, state_colour(words_text(j, "state")), "%s", words_text(j, "state"));
    table_cell(t, TABLE_PLAIN, INT, words_number(j, "runs"));
    table_cell(t, TABLE_PLAIN, "%s", words_pools(j, "pools", text));
    table_cell(t, result_colour(words_text(j, "last_result")), "%s",
               words_result(j, "last_result", "last_exit_code", "last_signal", text));
    table_cell(t, TABLE_PLAIN, "%s", words_when(j, "last_ended", now, text));
    table_cell(t, TABLE_PLAIN, "%s", is_drained(j) ? "drained" : words_when(j, "next", now, text));
    table_cell(t, TABLE_PLAIN, "%s", words_text(j, "description"));
}

static int print_jobs(const json_t *answer) {
    static const struct table_column columns[] = {{"JOB", false},         {"STATE", false}, {"RUNS", true}, {"POOLS", false},
                                                  {"LAST RESULT", false}, {"ENDED", false}, {"NEXT", false}, {"DESCRIPTION", false}};

    tell_doubt(answer);
    return print_items(json_object_get(answer, "jobs"), columns, ELEMENTSOF(columns), add_job, "no jobs are defined");
}

int verb_jobs(int argc, char **argv) {
    return show(argc, argv, "io.berth.Jobs", print_jobs);
}

static void add_run(struct table *t, const json_t *run) {
    const char *state = words_text(run, "state"), *why = words_text(run, "blocked_by");
    char text[WORDS_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", words_text(run, "run"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(run, "name"));
    table_cell(t, TABLE_PLAIN, "%s", words_text(run, "kind"));
    table_cell(t, state_colour(state), "%s", state);
    table_cell(t, TABLE_PLAIN, "%s", words_pools(run, "pools", text));
    table_cell(t, TABLE_PLAIN, "%s", words_pools(run, "position", text));
    table_cell(t, TABLE_PLAIN, "%s", words_duration(run, "wait_ms", text));
    table_cell(t, TABLE_PLAIN, "%s", words_duration(run, "run_ms", text));
    table_cell(t, result_colour(words_text(run, "result")), "%s", words_result(run, "result", "exit_code", "signal", text));
    table_cell(t, TABLE_NOTICE, "%s", why[0] ? why : words_text(run, "reason"));
}

static int print_runs(const json_t *answer, bool all) {
    static const struct table_column columns[] = {{"RUN", false},     {"NAME", false}, {"KIND", false}, {"STATE", false},
                                                  {"POOLS", false},   {"POSITION", false}, {"WAITED", true}, {"RAN", true},
                                                  {"RESULT", false}, {"WHY", false}};

    tell_doubt(answer);
    return print_items(json_object_get(answer, "runs"), columns, ELEMENTSOF(columns), add_run,
                       all ? "nothing has run yet" : "nothing waits or runs (--all shows what is over)");
}

/* Leaves those that the words name. 0 or an exit status, explained. */
static int choose_runs(json_t *runs, char **words, size_t n) {
    _cleanup_(choice_done) struct choice choice = {};
    const char *missing;
    size_t i = 0;
    json_t *run;

    if (choice_new(&choice, words, n) < 0)
        return no_table(-ENOMEM);
    json_array_foreach(runs, i, run)
        choice_hear(&choice, words_text(run, "run"), words_text(run, "name"));
    missing = choice_missing(&choice);
    if (missing) {
        fprintf(stderr, "berth: no such run: %s (`berth runs --all` and `berth history` list them)\n", missing);
        return EXIT_UNKNOWN_NAME;
    }
    for (i = json_array_size(runs); i-- > 0;) {
        run = json_array_get(runs, i);
        if (!choice_has(&choice, words_text(run, "run"), words_text(run, "name")))
            (void) json_array_remove(runs, i);
    }
    return 0;
}

int verb_runs(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false, all = false;
    const struct verb_option options[] = {{"--json", &json, NULL, NULL}, {"--all", &all, NULL, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 0, WORDS_ANY, &words, &status) != 0)
        return status;
    status = client_ask("io.berth.Runs", json_pack("{s:b}", "all", all), &answer);
    if (status == 0)
        status = choose_runs(json_object_get(answer, "runs"), argv + 1, (size_t) words);
    if (status != 0)
        return status;
    return json ? print_json(answer) : print_runs(answer, all);
}
