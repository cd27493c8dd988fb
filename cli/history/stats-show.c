/* SPDX-License-Identifier: MIT */
/* `berth history --stats`: one line for each job, pool or host. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"
#include "cli/history/cells.h"
#include "cli/history/show.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"

#define HOSTS_NAMED 8 /* the others are counted */

static const char *const by_names[] = {
    [STATS_BY_JOB] = "job", [STATS_BY_POOL] = "pool", [STATS_BY_HOST] = "host"};

/* --- as JSON --- */

static json_t *json_figures(const struct figures *f) {
    const int64_t none = f->n > 0 ? 0 : -1;

    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:I}", "n", (json_int_t) f->n, "p50",
                     history_json_number(f->p50 + none), "p90", history_json_number(f->p90 + none), "p95",
                     history_json_number(f->p95 + none), "p99", history_json_number(f->p99 + none), "max",
                     history_json_number(f->max + none), "sum", (json_int_t) f->sum);
}

static json_t *json_line(const struct stats *s, const struct stats_line *line) {
    json_t *cells = json_array();

    for (size_t i = 0; i < STATS_CELLS; i++)
        (void) json_array_append_new(cells, json_integer((json_int_t) line->cells[i]));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "by", by_names[s->by], "name", line->name,
                     "runs", (json_int_t) line->runs, "failed", (json_int_t) line->failed, "lost",
                     (json_int_t) line->lost, "wait_ms", json_figures(&line->wait), "held_ms",
                     json_figures(&line->held), "cells", cells);
}

json_t *history_json_hosts(const struct history_hosts *hosts, bool wrote) {
    json_t *names = json_array();

    for (size_t i = 0; i < hosts->n; i++)
        if (hosts->items[i].wrote == wrote)
            (void) json_array_append_new(names, json_string(hosts->items[i].name));
    return names;
}

static int show_json(const struct stats *s, const struct history_hosts *hosts) {
    _cleanup_json_ json_t *document = NULL;
    json_t *lines = json_array();
    int k = 0;

    for (size_t i = 0; i < s->n; i++)
        k |= json_array_append_new(lines, json_line(s, &s->lines[i]));
    document = json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I}}", "schema", 1, "since",
                         history_json_when(s->since), "until", history_json_when(s->until), "stats", lines,
                         "hosts", history_json_hosts(hosts, true), "hosts_missing", history_json_hosts(hosts, false), "open",
                         "waiting", (json_int_t) s->waiting, "running", (json_int_t) s->running, "unlogged",
                         (json_int_t) s->unlogged);
    return k == 0 && document ? output_json(document) : output_error(-ENOMEM);
}

/* --- as a table --- */

static void add_percent(struct table *t, size_t part, size_t all) {
    size_t percent = (200 * part + all) / (2 * all);
    enum table_colour colour = part > 0 ? TABLE_BAD : TABLE_PLAIN;

    if (percent == 0 && part > 0)
        table_cell(t, colour, "<1%%");
    else if (percent == 100 && part < all)
        table_cell(t, colour, ">99%%");
    else
        table_cell(t, colour, "%zu%%", percent);
}

static void add_duration(struct table *t, const struct figures *f, int64_t msec, const char *mark) {
    char text[FORMAT_SIZE];

    if (f->n == 0)
        table_cell(t, TABLE_PLAIN, "%s", "");
    else
        table_cell(t, TABLE_PLAIN, "%s%s", format_msec(msec, text), mark);
}

static void add_p95(struct table *t, const struct figures *f) {
    if (f->n < FIGURES_ENOUGH_FOR_P95)
        table_cell(t, TABLE_PLAIN, "%s", "");
    else
        add_duration(t, f, f->p95, f->n < FIGURES_ENOUGH_TO_TRUST ? "*" : "");
}

static void add_cells(struct table *t, const struct stats_line *line, bool utf8) {
    char text[STATS_CELLS * CELL_SIZE + 1], *end = text;
    size_t highest = 0;

    for (size_t i = 0; i < STATS_CELLS; i++)
        highest = line->cells[i] > highest ? line->cells[i] : highest;
    for (size_t i = 0; i < STATS_CELLS; i++)
        end = cells_add(end, (double) line->cells[i], (double) highest, utf8);
    table_cell(t, TABLE_PLAIN, "%s", text);
}

static void add_line(struct table *t, const struct stats_line *line, bool utf8) {
    table_line(t);
    table_cell(t, TABLE_PLAIN, "%s", line->name);
    table_cell(t, TABLE_PLAIN, "%zu", line->runs);
    add_percent(t, line->failed, line->runs);
    table_cell(t, line->lost > 0 ? TABLE_BAD : TABLE_PLAIN, "%zu", line->lost);
    add_duration(t, &line->wait, line->wait.p50, "");
    add_p95(t, &line->wait);
    add_duration(t, &line->wait, line->wait.max, "");
    add_duration(t, &line->held, line->held.p50, "");
    add_p95(t, &line->held);
    add_cells(t, line, utf8);
}

/* Prints "ant, bee and 3 more". */
static void print_hosts(const struct history_hosts *hosts, bool wrote, size_t n) {
    size_t i = 0;

    for (size_t k = 0; k < hosts->n && i < HOSTS_NAMED; k++)
        if (hosts->items[k].wrote == wrote)
            printf("%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", hosts->items[k].name), i++;
    if (n > i)
        printf(" and %zu more", n - i);
}

void history_print_hosts(const struct history_hosts *hosts, bool merged) {
    size_t n = 0, n_missing;

    for (size_t i = 0; i < hosts->n; i++)
        n += hosts->items[i].wrote;
    n_missing = hosts->n - n;
    printf("of %zu host%s (", n, n == 1 ? "" : "s");
    print_hosts(hosts, true, n);
    fputs(n_missing > 0 ? "); " : ")", stdout);
    print_hosts(hosts, false, n_missing);
    if (n_missing > 0)
        printf(" %s known and %s no journal here%s", n_missing == 1 ? "is" : "are",
               n_missing == 1 ? "has" : "have", merged ? "" : " (see -m)");
    putchar('\n');
}

/* Prints what the figures do not include. */
static void print_scope(const struct stats *s, const struct history_hosts *hosts, bool merged) {
    history_print_hosts(hosts, merged);
    if (s->waiting + s->running > 0)
        printf("not in the figures: %zu waiting and %zu running\n", s->waiting, s->running);
    if (s->unlogged > 0)
        printf("not in the figures: %zu whose host went down before it logged the end\n", s->unlogged);
}

static int show_table(const struct stats *s, const struct history_hosts *hosts, bool merged) {
    static const char *const names[] = {
        [STATS_BY_JOB] = "NAME", [STATS_BY_POOL] = "POOL", [STATS_BY_HOST] = "HOST"};
    _cleanup_(table_freep) struct table *t = NULL;
    char span[CELLS_SPAN_SIZE];
    const struct table_column columns[] = {
        {.name = names[s->by]},
        {.name = "RUNS", .right = true},
        {.name = "FAIL", .right = true},
        {.name = "LOST", .right = true, .drop = 3},
        {.name = "WAIT50", .right = true},
        {.name = "WAIT95", .right = true},
        {.name = "WAITMAX", .right = true, .drop = 2},
        {.name = "HELD50", .right = true},
        {.name = "HELD95", .right = true, .drop = 4},
        {.name = cells_span((s->until - s->since) / USEC_PER_MSEC, span), .drop = 1},
    };
    bool utf8 = table_has_utf8();
    int k = table_new(&t, columns, ELEMENTSOF(columns));

    if (k < 0)
        return output_error(k);
    for (size_t i = 0; i < s->n; i++)
        add_line(t, &s->lines[i], utf8);
    k = output_table(t, "no such run ended in that time");
    if (k == 0)
        print_scope(s, hosts, merged);
    return k;
}

int history_show_stats(const struct stats *stats, const struct history_hosts *hosts,
                       const struct shown *shown) {
    return shown->json ? show_json(stats, hosts) : show_table(stats, hosts, shown->merged);
}
