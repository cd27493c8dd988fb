/* SPDX-License-Identifier: MIT */
/* berth history: one line a run, made from the run's events. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/demand.h"
#include "base/job-name.h"
#include "base/name.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/format.h"
#include "cli/output.h"
#include "cli/sources.h"
#include "cli/verbs.h"
#include "cli/when.h"

struct past { /* one run; texts are borrowed from entries */
    const char *run, *name, *host, *pools, *result;
    const char *due, *trigger, *first_run; /* NULL: of no schedule; of no job; it is a first attempt */
    usec_t first, queued, granted, started, ended; /* realtime; 0: not logged */
    int64_t wait_ms, run_ms, exit_code, signal;    /* -1: not logged */
    uint64_t token;
    int64_t attempt; /* 0: not logged */
};

struct filter {
    struct choice runs;
    const char *pool;
    usec_t since, until;
    bool utc; /* times in the table */
};

/* --- from events to runs --- */

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = *(struct entry *const *) a, *y = *(struct entry *const *) b;
    int c = strcmp(x->run, y->run);

    return c != 0 ? c : x->time != y->time ? (x->time < y->time ? -1 : 1) : (x < y ? -1 : x > y);
}

static int compare_pasts(const void *a, const void *b) {
    const struct past *x = a, *y = b;

    return x->first != y->first ? (x->first < y->first ? -1 : 1) : strcmp(x->run, y->run);
}

static void past_set_time(usec_t *time, const struct entry *e) {
    if (*time == 0)
        *time = e->time;
}

static void past_end(struct past *p, const struct entry *e, const char *result) {
    past_set_time(&p->ended, e);
    p->result = e->result ? e->result : result;
    p->exit_code = e->exit.code;
    p->signal = e->exit.signal;
    p->run_ms = e->took.run_ms >= 0 ? e->took.run_ms : p->run_ms;
}

static void past_add_entry(struct past *p, const struct entry *e) {
    past_set_time(&p->first, e);
    p->name = e->job ? e->job : p->name;
    p->pools = e->pools ? e->pools : p->pools;
    p->host = e->host[0] ? e->host : p->host;
    p->due = e->origin.due ? e->origin.due : p->due;
    p->trigger = e->origin.trigger ? e->origin.trigger : p->trigger;
    /* `retry` and `gave-up` have another attempt than the run. */
    if (e->origin.attempt > 0 && strcmp(e->event, "retry") != 0 && strcmp(e->event, "gave-up") != 0) {
        p->attempt = e->origin.attempt;
        p->first_run = e->origin.first_run;
    }
    p->token = e->token > 0 ? e->token : p->token;
    p->wait_ms = e->took.wait_ms >= 0 ? e->took.wait_ms : p->wait_ms;
    if (strcmp(e->event, "queued") == 0 || strcmp(e->event, "parked") == 0)
        past_set_time(&p->queued, e);
    else if (strcmp(e->event, "granted") == 0)
        past_set_time(&p->granted, e);
    else if (strcmp(e->event, "started") == 0)
        past_set_time(&p->started, e);
    else if (strcmp(e->event, "exited") == 0 || strcmp(e->event, "withdrawn") == 0)
        past_end(p, e, NULL);
    else if (strcmp(e->event, "refused") == 0)
        past_end(p, e, "not-started");
    else if (strcmp(e->event, "reclaimed") == 0 && p->ended == 0)
        past_end(p, e,
                 "reclaimed"); /* its host was gone; if that host comes back, its own entry is more exact */
}

/* entries: those of runs, sorted by run. */
static size_t make_pasts(struct entry **entries, size_t n, struct past *pasts) {
    size_t n_pasts = 0;

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(entries[i]->run, entries[i - 1]->run) != 0)
            pasts[n_pasts++] = (struct past){.run = entries[i]->run,
                                             .name = "",
                                             .host = "",
                                             .pools = "",
                                             .wait_ms = -1,
                                             .run_ms = -1,
                                             .exit_code = -1,
                                             .signal = -1};
        past_add_entry(&pasts[n_pasts - 1], entries[i]);
    }
    qsort(pasts, n_pasts, sizeof(*pasts), compare_pasts);
    return n_pasts;
}

static bool past_uses(const struct past *p, const char *pool) {
    struct demands demands;

    if (demands_parse(p->pools, &demands) != 0)
        return false;
    for (size_t i = 0; i < demands.n; i++)
        if (strcmp(demands.items[i].pool, pool) == 0 || pool_name_matches(pool, demands.items[i].pool))
            return true;
    return false;
}

/* Whether the run existed at some time between since and until. */
static bool past_is_wanted(const struct past *p, const struct filter *f) {
    return choice_has(&f->runs, p->run, p->name) && (!f->pool || past_uses(p, f->pool)) &&
           p->first < f->until && (p->ended == 0 || p->ended >= f->since);
}

/* --- as JSON --- */

static json_t *json_when(usec_t time) {
    char text[CLOCK_TEXT_SIZE];

    return time > 0 ? json_string(clock_format(time, text)) : json_null();
}

static json_t *json_number(int64_t value) {
    return value >= 0 ? json_integer((json_int_t) value) : json_null();
}

static json_t *json_pools(const char *text) {
    json_t *pools = json_object();
    struct demands demands;

    if (demands_parse(text, &demands) == 0)
        for (size_t i = 0; i < demands.n; i++)
            (void) json_object_set_new(pools, demands.items[i].pool, json_integer(demands.items[i].permits));
    return pools;
}

static json_t *json_past(const struct past *p) {
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?, "
                     "s:o, s:s?, s:s?}",
                     "run", p->run, "name", p->name, "host", p->host, "pools", json_pools(p->pools), "token",
                     json_number(p->token > 0 ? (int64_t) p->token : -1), "queued", json_when(p->queued),
                     "granted", json_when(p->granted), "started", json_when(p->started), "ended",
                     json_when(p->ended), "wait_ms", json_number(p->wait_ms), "run_ms",
                     json_number(p->run_ms), "result", p->result ? json_string(p->result) : json_null(),
                     "exit_code", json_number(p->exit_code), "signal", json_number(p->signal), "trigger",
                     p->trigger, "due", p->due, "attempt", json_number(p->attempt > 0 ? p->attempt : -1),
                     "first_run", p->first_run, "instance", job_name_instance(p->name));
}

static int show_json(const struct past *pasts, size_t n) {
    _cleanup_json_ json_t *document = NULL;
    json_t *runs = json_array();
    int k = 0;

    for (size_t i = 0; i < n; i++)
        k |= json_array_append_new(runs, json_past(&pasts[i]));
    document = json_pack("{s:i, s:o}", "schema", 1, "runs", runs);
    return k == 0 && document ? output_json(document) : output_error(-ENOMEM);
}

/* --- as a table --- */

static const char *msec_text(int64_t msec, char buffer[static FORMAT_SIZE]) {
    return msec >= 0 ? format_msec((json_int_t) msec, buffer) : "";
}

static const char *result_text(const struct past *p, char buffer[static FORMAT_SIZE]) {
    const char *result = p->result ? p->result : p->started > 0 || p->granted > 0 ? "running" : "waiting";

    if (p->signal >= 0)
        snprintf(buffer, FORMAT_SIZE, "%.64s (signal %" PRIi64 ")", result, p->signal);
    else if (p->exit_code > 0)
        snprintf(buffer, FORMAT_SIZE, "%.64s (exit %" PRIi64 ")", result, p->exit_code);
    else
        snprintf(buffer, FORMAT_SIZE, "%.64s", result);
    return buffer;
}

static enum table_colour result_colour(const struct past *p) {
    if (!p->result)
        return TABLE_NOTICE;
    return strcmp(p->result, "success") == 0 ? TABLE_GOOD : TABLE_BAD;
}

static const char *number_text(int64_t number, char buffer[static FORMAT_SIZE]) {
    if (number <= 0)
        return "";
    snprintf(buffer, FORMAT_SIZE, "%" PRIi64, number);
    return buffer;
}

static void add_past(struct table *t, const struct past *p, bool utc) {
    usec_t time = p->started > 0 ? p->started : p->first;
    char text[FORMAT_SIZE];

    table_line(t);
    table_cell(t, TABLE_PLAIN, "%s", when_format(time, utc, text));
    table_cell(t, TABLE_PLAIN, "%s", p->run);
    table_cell(t, TABLE_PLAIN, "%s", p->name);
    table_cell(t, TABLE_PLAIN, "%s", p->host);
    table_cell(t, TABLE_PLAIN, "%s", p->pools);
    table_cell(t, TABLE_PLAIN, "%s", p->trigger ? p->trigger : "");
    table_cell(t, TABLE_PLAIN, "%s", p->due ? p->due : "");
    table_cell(t, TABLE_PLAIN, "%s", number_text(p->attempt, text));
    table_cell(t, TABLE_PLAIN, "%s", msec_text(p->wait_ms, text));
    table_cell(t, TABLE_PLAIN, "%s", msec_text(p->run_ms, text));
    table_cell(t, result_colour(p), "%s", result_text(p, text));
}

static int show_table(const struct past *pasts, size_t n, bool utc) {
    static const struct table_column columns[] = {
        {.name = "STARTED"},
        {.name = "RUN", .digits = 8},
        {.name = "NAME"},
        {.name = "HOST", .drop = 5},
        {.name = "POOLS", .drop = 3},
        {.name = "TRIGGER", .drop = 2},
        {.name = "DUE", .drop = 1},
        {.name = "TRY", .right = true, .drop = 4},
        {.name = "WAITED", .right = true},
        {.name = "RAN", .right = true},
        {.name = "RESULT"},
    };
    _cleanup_(table_freep) struct table *t = NULL;
    int k = table_new(&t, columns, ELEMENTSOF(columns));

    if (k < 0)
        return output_error(k);
    for (size_t i = 0; i < n; i++)
        add_past(t, &pasts[i], utc);
    return output_table(t, "the journal has no such run");
}

/* --- the verb --- */

/* Returns 0, or an exit status whose reason was printed. */
static int check_choice(struct choice *c, const struct past *pasts, size_t n) {
    const char *missing;

    for (size_t i = 0; i < n; i++)
        choice_see(c, pasts[i].run, pasts[i].name);
    missing = choice_missing(c);
    if (!missing)
        return 0;
    fprintf(stderr, "berth history: the journal has no job or run %s\n", missing);
    return EXIT_UNKNOWN_NAME;
}

static int show(const struct entries *e, struct filter *f, bool json) {
    _cleanup_free_ struct entry **with_run = calloc(e->n + 1, sizeof(*with_run));
    _cleanup_free_ struct past *pasts = calloc(e->n + 1, sizeof(*pasts));
    size_t n = 0, n_wanted = 0;
    int status;

    if (!with_run || !pasts)
        return output_error(-ENOMEM);
    for (size_t i = 0; i < e->n; i++)
        if (e->items[i].run)
            with_run[n++] = &e->items[i];
    qsort(with_run, n, sizeof(struct entry *), compare_entries);
    n = make_pasts(with_run, n, pasts);
    status = check_choice(&f->runs, pasts, n);
    if (status != 0)
        return status;
    for (size_t i = 0; i < n; i++)
        if (past_is_wanted(&pasts[i], f))
            pasts[n_wanted++] = pasts[i];
    return json ? show_json(pasts, n_wanted) : show_table(pasts, n_wanted, f->utc);
}

int verb_history(int argc, char **argv) {
    _cleanup_(entries_done) struct entries entries = {};
    struct filter filter = {.until = USEC_INFINITY};
    struct sources sources = {};
    const char *since = NULL, *until = NULL;
    bool json = false;
    const struct verb_option options[] = {
        OPTION_FLAG("--json", &json),         OPTION_FLAG("--utc", &filter.utc),
        OPTION_VALUE("--pool", &filter.pool), OPTION_VALUE("--since", &since),
        OPTION_VALUE("--until", &until),      SOURCES_OPTIONS(&sources)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    status = options_parse_when("history", "--since", since, &filter.since);
    if (status == 0)
        status = options_parse_when("history", "--until", until, &filter.until);
    for (int i = 1; i <= words && status == 0; i++)
        status = options_check_job("history", "job or run", argv[i]);
    if (status == 0 && filter.pool)
        status = options_check_pool("history", filter.pool);
    if (status == 0)
        status = sources_read("history", &sources, &entries);
    if (status == 0 && choice_new(&filter.runs, argv + 1, (size_t) words) < 0)
        status = output_error(-ENOMEM);
    status = status != 0 ? status : show(&entries, &filter, json);
    choice_done(&filter.runs);
    return status;
}
