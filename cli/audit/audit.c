/* SPDX-License-Identifier: MIT */
/* berth audit: replays journals and reports violations. check.h describes the checks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/duration.h"
#include "base/number.h"
#include "cli/audit/check.h"
#include "cli/audit/names.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/sources.h"
#include "cli/verbs.h"
#include "conf/settings.h"

#define EXIT_VIOLATION 1

struct limits {
    struct audit_limit *items;
    size_t n;
};

struct totals { /* of all namespaces */
    struct audit_report sum;
    size_t n_findings;
    json_t *findings, *doubts, *missed, *moves; /* NULL: printed as they come */
};

/* --- limits --- */

static int given_limits_add(struct limits *l, const struct audit_limit *limit) {
    if (!array_grow(l->items, l->n))
        return EXIT_INTERNAL;
    l->items[l->n++] = *limit;
    return 0;
}

static int given_limits_add_word(struct limits *l, const char *word) {
    struct audit_limit limit = {.fixed = true};
    const char *equals = strchr(word, '=');
    uint64_t value;

    if (!equals || equals - word > POOL_NAME_MAX_LENGTH || number_parse(equals + 1, UINT32_MAX, &value) < 0)
        return options_wrong_usage("audit", "--limit %.100s: must be POOL=N", word);
    snprintf(limit.pool, sizeof(limit.pool), "%.*s", (int) (equals - word), word);
    limit.limit = (uint32_t) value;
    return pool_name_parse(limit.pool) != POOL_NAME_INVALID ? given_limits_add(l, &limit)
                                                            : options_check_pool("audit", limit.pool);
}

static int given_limits_add_config(struct limits *l, const char *file) {
    _cleanup_(settings_freep) struct settings *settings = NULL;
    struct settings_errors errors = {};
    int r = settings_load(file, &settings, &errors), status = 0;

    for (size_t i = 0; i < errors.n; i++)
        fprintf(stderr, "%s\n", errors.lines[i]);
    settings_errors_done(&errors);
    if (r < 0)
        fprintf(stderr, "berth audit: %s: %s\n", file, strerror(-r));
    for (size_t i = 0; r == 0 && status == 0 && i < settings->n_pools; i++) {
        const struct pool_settings *p = &settings->pools[i];
        struct audit_limit limit = {.limit = p->limit, .host = p->scope == POOL_SCOPE_HOST};

        snprintf(limit.pool, sizeof(limit.pool), "%s", p->name);
        status = given_limits_add(l, &limit);
    }
    return r != 0 ? EXIT_CONFIG : status;
}

static int given_limits_make(struct limits *l, const struct string_list *words, const char *config) {
    int status = config ? given_limits_add_config(l, config) : 0;

    for (size_t i = 0; i < words->n && status == 0; i++)
        status = given_limits_add_word(l, words->items[i]);
    return status;
}

static void given_limits_done(struct limits *l) {
    free(l->items);
}

/* --- findings --- */

static json_t *finding_json(const struct audit_finding *f) {
    const struct entry *e = f->entry;
    char time[CLOCK_TEXT_SIZE];

    return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s, s:s?, s:I, s:s}", "kind", audit_kind_name(f->kind), "text", f->text, "host", e->host,
                     "time", clock_format(e->time, time), "namespace", e->namespace, "event", e->event, "run", e->run, "seq",
                     (json_int_t) e->seq, "cursor", e->cursor);
}

static void finding_print(const struct audit_finding *f, const char *how) {
    const struct entry *e = f->entry;
    char time[CLOCK_TEXT_SIZE];

    printf("%s%s: %s: %s of %s%s%s: %s\n    --cursor='%s'\n", how, audit_kind_name(f->kind), clock_format(e->time, time), e->event, e->host,
           e->run ? ", run " : "", e->run ? e->run : "", f->text, e->cursor);
}

/* list: NULL: print. */
static void show_findings(json_t *list, const struct audit_finding *findings, size_t n, const char *how) {
    for (size_t i = 0; i < n; i++)
        if (list)
            (void) json_array_append_new(list, finding_json(&findings[i]));
        else
            finding_print(&findings[i], how);
}

static json_t *missed_json(const struct entry *e) {
    char time[CLOCK_TEXT_SIZE];

    return json_pack("{s:s?, s:s, s:s?, s:I, s:s?, s:s?, s:s?, s:s, s:s}", "job", e->job, "host", e->host, "namespace", e->namespace,
                     "count", (json_int_t) e->missed.count, "first", e->origin.due, "last", e->missed.until, "reason", e->reason, "time",
                     clock_format(e->time, time), "cursor", e->cursor);
}

static void missed_print(const struct entry *e) {
    const char *job = e->job ? e->job : "?", *first = e->origin.due ? e->origin.due : "?", *last = e->missed.until ? e->missed.until : first;
    const char *reason = e->reason ? e->reason : "?";

    if (e->missed.count > 1)
        printf("missed: %s on %s was not begun %" PRId64 " times: it was due from %s to %s (%s)\n", job, e->host, e->missed.count, first, last,
               reason);
    else
        printf("missed: %s on %s was not begun: it was due at %s (%s)\n", job, e->host, first, reason);
}

/* list: NULL: print. */
static void show_missed(json_t *list, const struct audit_report *r) {
    for (size_t i = 0; i < r->n_missed; i++)
        if (list)
            (void) json_array_append_new(list, missed_json(r->missed[i]));
        else
            missed_print(r->missed[i]);
}

/* Prints a line for each user who moved claims. */
static void print_moves(const struct audit_report *r) {
    for (size_t i = 0; i < r->n_moves; i++) {
        int64_t uid = r->moves[i]->uid;
        size_t n = 0, n_passed = 0;

        for (size_t k = 0; k < r->n_moves; k++) {
            if (r->moves[k]->uid != uid)
                continue;
            if (k < i)
                break; /* counted */
            n++;
            n_passed += (size_t) r->moves[k]->missed.count;
        }
        if (n > 0 && uid >= 0)
            printf("%zu move%s by uid %" PRId64 ", %zu claim%s passed\n", n, n == 1 ? "" : "s", uid, n_passed, n_passed == 1 ? "" : "s");
        else if (n > 0)
            printf("%zu move%s whose user is in no journal\n", n, n == 1 ? "" : "s");
    }
}

static json_t *move_json(const struct entry *e) {
    char time[CLOCK_TEXT_SIZE];

    return json_pack("{s:s, s:s, s:s, s:s?, s:o, s:s?, s:s?, s:I, s:s}", "time", clock_format(e->time, time), "run", e->run, "host", e->host,
                     "job", e->job, "uid", e->uid >= 0 ? json_integer(e->uid) : json_null(), "on_behalf", e->asked.on_behalf, "reason", e->reason,
                     "passed", (json_int_t) e->missed.count, "cursor", e->cursor);
}

/* list: NULL: print. */
static void show_moves(json_t *list, const struct audit_report *r) {
    for (size_t i = 0; i < r->n_moves && list; i++)
        (void) json_array_append_new(list, move_json(r->moves[i]));
    if (!list)
        print_moves(r);
}

static void totals_add(struct totals *t, const struct audit_report *r) {
    show_findings(t->findings, r->findings, r->n_findings, "");
    show_findings(t->doubts, r->doubts, r->n_doubts, "unproved ");
    show_missed(t->missed, r);
    show_moves(t->moves, r);
    if (!t->doubts && r->n_unproved > r->n_doubts)
        printf("unproved: %zu more\n", r->n_unproved - r->n_doubts);
    t->n_findings += r->n_findings;
    t->sum.n_events += r->n_events;
    t->sum.n_starts += r->n_starts;
    t->sum.n_hosts += r->n_hosts;
    t->sum.n_pools += r->n_pools;
    t->sum.n_granted += r->n_granted;
    t->sum.n_running += r->n_running;
    t->sum.n_explained += r->n_explained;
    t->sum.n_by_clock += r->n_by_clock;
    t->sum.n_unproved += r->n_unproved;
    t->sum.n_no_journal += r->n_no_journal;
    t->sum.n_continued += r->n_continued;
    t->sum.doubt = r->doubt > t->sum.doubt ? r->doubt : t->sum.doubt;
}

/* --- the result --- */

static int show_json(const struct totals *t, const struct audit_options *o) {
    const struct audit_report *s = &t->sum;
    _cleanup_json_ json_t *document =
        json_pack("{s:i, s:b, s:O, s:O, s:O, s:O, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "schema", 1, "proved",
                  t->n_findings == 0 && s->n_unproved == 0, "findings", t->findings, "doubts", t->doubts, "missed", t->missed, "moves", t->moves,
                  "events", (json_int_t) s->n_events, "hosts", (json_int_t) s->n_hosts, "starts", (json_int_t) s->n_starts, "grants",
                  (json_int_t) s->n_granted, "running", (json_int_t) s->n_running, "explained", (json_int_t) s->n_explained, "by_clock",
                  (json_int_t) s->n_by_clock, "continued", (json_int_t) s->n_continued, "unproved",
                  (json_int_t) s->n_unproved, "tolerance_ms", (json_int_t) (o->tolerance / USEC_PER_MSEC),
                  "clock_doubt_ms", (json_int_t) ((s->doubt + USEC_PER_MSEC - 1) / USEC_PER_MSEC));

    return document ? output_json(document) : EXIT_INTERNAL;
}

static void show_sum(const struct totals *t, const struct audit_options *o, const char *config) {
    char tolerance[DURATION_TEXT_SIZE], doubt[DURATION_TEXT_SIZE];
    const struct audit_report *s = &t->sum;

    printf("%s: %zu hosts, %zu starts of berthd, %zu events, %zu grants of %zu pools, %zu without an end yet\n",
           t->n_findings > 0 || s->n_unproved > 0 ? "NOT proved" : "proved", s->n_hosts, s->n_starts, s->n_events, s->n_granted, s->n_pools,
           s->n_running);
    printf("limits: from the journals%s%s%s; order and ends: Redis's numbers; host clocks: tolerance %s, "
           "uncertain by up to %s\n",
           config ? ", else " : "", config ? config : "",
           o->n_limits > 0 && o->limits[o->n_limits - 1].fixed ? ", instead --limit" : "",
           duration_format(o->tolerance, tolerance), duration_format(s->doubt + USEC_PER_MSEC - 1, doubt));
    if (s->n_by_clock > 0)
        printf("%zu grants ended while a reply of Redis was lost: their ends are known by their hosts' "
               "clocks\n",
               s->n_by_clock);
    if (s->n_explained > 0)
        printf("%zu overtakings with a logged reason: the claim was parked, or its host had expired\n",
               s->n_explained);
    if (s->n_unproved > s->n_no_journal)
        printf("%zu grants (unproved) are within the limit only if earlier ones had ended, which no journal can "
               "show (a berthd or a host was killed, or a reply was lost)\n",
               s->n_unproved - s->n_no_journal);
    if (s->n_no_journal > 0)
        printf("%zu entries (unproved no-journal) show that a journal is missing: pass the journals of all hosts "
               "that share the pools, and begin before the time to prove (--since)\n",
               s->n_no_journal);
    if (s->n_continued > 0)
        printf("%zu grants were made beside runs that continued after a lost lease (on-lease-lost = "
               "\"continue\")\n",
               s->n_continued);
}

/* --- the verb --- */

static const char *namespace_of(const struct entry *e) {
    return e->namespace ? e->namespace : "";
}

static int check_namespace(const struct entries *entries, struct audit_options *options, const char *namespace, struct totals *totals) {
    struct audit_report report;
    int k;

    options->namespace = namespace;
    k = audit_check(entries, options, &report);
    if (k == 0)
        totals_add(totals, &report);
    audit_report_done(&report);
    return k;
}

/* Checks each namespace once. */
static int check_all(const struct entries *entries, struct audit_options *options, struct totals *totals) {
    struct audit_names met = {.tree = NULL};
    int k = 0;

    for (size_t i = 0; i < entries->n && k == 0; i++) {
        const char *namespace = namespace_of(&entries->items[i]);
        struct audit_name *name = audit_names_add(&met, namespace, NULL);

        k = !name ? -ENOMEM : name->index == SIZE_MAX ? check_namespace(entries, options, namespace, totals) : 0;
        if (name)
            name->index = i;
    }
    audit_names_done(&met);
    return k < 0 ? sources_explain("audit", NULL, k) : 0;
}

static int audit(const struct sources *sources, struct audit_options *options, const char *config, bool json) {
    _cleanup_(entries_done) struct entries entries = {};
    struct totals totals = {.findings = NULL};
    int status = sources_read("audit", sources, &entries);

    if (status == 0 && entries.n == 0) {
        fprintf(stderr, "berth audit: the journal has no events of %s\n", sources->unit ? sources->unit : ENTRIES_UNIT_DEFAULT);
        status = EXIT_UNKNOWN_NAME;
    }
    if (status != 0)
        return status;
    totals.findings = json ? json_array() : NULL;
    totals.doubts = json ? json_array() : NULL;
    totals.missed = json ? json_array() : NULL;
    totals.moves = json ? json_array() : NULL;
    status = check_all(&entries, options, &totals);
    if (status == 0 && json)
        status = show_json(&totals, options);
    else if (status == 0)
        show_sum(&totals, options, config);
    json_decref(totals.findings);
    json_decref(totals.doubts);
    json_decref(totals.missed);
    json_decref(totals.moves);
    return status != 0 ? status : totals.n_findings > 0 ? EXIT_VIOLATION : 0;
}

int verb_audit(int argc, char **argv) {
    _cleanup_(given_limits_done) struct limits limits = {};
    struct audit_options options = {.tolerance = AUDIT_TOLERANCE_DEFAULT};
    struct sources sources = {};
    struct string_list given = {};
    const char *since = NULL, *tolerance = NULL, *config = NULL;
    bool json = false;
    const struct verb_option known[] = {OPTION_FLAG("--json", &json),
                                        OPTION_VALUE("--since", &since),
                                        OPTION_LIST("--limit", &given),
                                        OPTION_VALUE("-c", &config),
                                        OPTION_VALUE("--tolerance", &tolerance),
                                        OPTION_FLAG("--no-moves", &options.no_moves),
                                        SOURCES_OPTIONS(&sources)};
    int status;

    if (options_parse(argc, argv, known, ELEMENTSOF(known), &status) < 0)
        return status;
    status = options_parse_when("audit", "--since", since, &options.since);
    if (status == 0 && tolerance && duration_parse(tolerance, &options.tolerance) < 0)
        status = options_wrong_usage("audit", "--tolerance %.100s: must be a duration such as 100ms",
                                     tolerance);
    if (status == 0)
        status = given_limits_make(&limits, &given, config);
    options.limits = limits.items;
    options.n_limits = limits.n;
    return status != 0 ? status : audit(&sources, &options, config, json);
}
