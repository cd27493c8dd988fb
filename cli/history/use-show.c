/* SPDX-License-Identifier: MIT */
/* `berth history --use`: one line for each pool. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json/format.h"
#include "cli/history/cells.h"
#include "cli/history/show.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"

#define LABELS_MAX 5
#define LABEL_SIZE 8
#define DAY (24 * 3600 * USEC_PER_SEC)

static double share(const struct use_cell *c) {
    return c->allowed > 0 ? c->held / c->allowed : -1;
}

static double full_of(const struct uses *u, const struct use_pool *p) {
    return (double) p->full / (double) (u->until - u->since);
}

/* --- as JSON --- */

/* Returns a share with three digits; negative: null. */
static json_t *json_share(double value) {
    return value < 0 ? json_null() : json_real((double) (long long) (1000 * value + 0.5) / 1000);
}

static json_t *json_pool(const struct uses *u, const struct use_pool *p) {
    json_t *cells = json_array();

    for (size_t i = 0; i < u->n_cells; i++)
        (void) json_array_append_new(cells, json_share(share(&p->cells[i])));
    return json_pack("{s:s%, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:I, s:o}", "pool", p->name,
                     p->name_length, "host", p->host ? json_string(p->host) : json_null(), "limit_min",
                     history_json_number(p->has_limit ? (int64_t) p->limit_min : -1), "limit_max",
                     history_json_number(p->has_limit ? (int64_t) p->limit_max : -1), "use",
                     json_share(share(&p->all)), "full", json_share(full_of(u, p)), "peak",
                     (json_int_t) p->peak, "waits", (json_int_t) p->wait.n, "wait_p95_ms",
                     history_json_number(p->wait.n > 0 ? p->wait.p95 : -1), "shut_ms",
                     (json_int_t) (p->shut / USEC_PER_MSEC), "cells", cells);
}

static int show_json(const struct uses *u, const struct history_hosts *hosts) {
    _cleanup_json_ json_t *document = NULL;
    json_t *pools = json_array();
    int k = 0;

    for (size_t i = 0; i < u->n; i++)
        k |= json_array_append_new(pools, json_pool(u, &u->pools[i]));
    document = json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "since", history_json_when(u->since),
                         "until", history_json_when(u->until), "use", pools, "hosts",
                         history_json_hosts(hosts, true), "hosts_missing", history_json_hosts(hosts, false));
    return k == 0 && document ? output_json(document) : output_error(-ENOMEM);
}

/* --- as a table --- */

/* Writes the times of some cells, each above the begin of its cell: hours, or days for a long span. */
static const char *name_cells(const struct uses *u, bool utc, char *buffer, size_t size) {
    bool is_long = u->until - u->since > 2 * DAY;
    size_t n = u->n_cells, at = 0, labels = n / LABEL_SIZE > 0 ? n / LABEL_SIZE : 1;

    labels = labels < LABELS_MAX ? labels : LABELS_MAX;
    buffer[0] = '\0';
    for (size_t i = 0; i < labels; i++) {
        size_t cell = i * n / labels;
        time_t when = (time_t) ((u->since + cell * ((u->until - u->since) / n)) / USEC_PER_SEC);
        struct tm tm = {};
        char label[LABEL_SIZE] = "";

        (void) (utc ? gmtime_r(&when, &tm) : localtime_r(&when, &tm));
        (void) strftime(label, sizeof(label), is_long ? "%a%d" : "%H:%M", &tm);
        at += (size_t) snprintf(buffer + at, size - at, "%*s%s", (int) (cell - at), "", label);
    }
    return buffer;
}

static void add_share(struct table *t, double value) {
    if (value < 0)
        table_cell(t, TABLE_PLAIN, "%s", "");
    else
        table_cell(t, value > 1.0005 ? TABLE_BAD : TABLE_PLAIN, "%.0f%%", 100 * value);
}

static void add_limit(struct table *t, const struct use_pool *p) {
    if (!p->has_limit)
        table_cell(t, TABLE_PLAIN, "%s", "");
    else if (p->limit_min == p->limit_max)
        table_cell(t, TABLE_PLAIN, "%u", p->limit_min);
    else
        table_cell(t, TABLE_PLAIN, "%u-%u", p->limit_min, p->limit_max);
}

static int add_pool(struct table *t, const struct uses *u, const struct use_pool *p, bool utf8) {
    _cleanup_free_ char *cells = calloc(u->n_cells + 1, CELL_SIZE);
    char wait[FORMAT_SIZE], *end = cells;

    if (!cells)
        return -ENOMEM;
    for (size_t i = 0; i < u->n_cells; i++)
        end = cells_add(end, share(&p->cells[i]), 1, utf8);
    table_line(t);
    table_cell(t, TABLE_PLAIN, "%.*s%s%s", (int) p->name_length, p->name, p->host ? "@" : "",
               p->host ? p->host : "");
    add_limit(t, p);
    add_share(t, share(&p->all));
    add_share(t, full_of(u, p));
    table_cell(t, TABLE_PLAIN, "%u", p->peak);
    table_cell(t, TABLE_PLAIN, "%zu", p->wait.n);
    if (p->wait.n < FIGURES_ENOUGH_FOR_P95)
        table_cell(t, TABLE_PLAIN, "%s", "");
    else
        table_cell(t, TABLE_PLAIN, "%s%s", format_msec(p->wait.p95, wait),
                   p->wait.n < FIGURES_ENOUGH_TO_TRUST ? "*" : "");
    table_cell(t, TABLE_PLAIN, "%s", cells);
    return 0;
}

static void print_shut(const struct uses *u) {
    char text[FORMAT_SIZE];

    for (size_t i = 0; i < u->n; i++)
        if (u->pools[i].shut > 0)
            printf("the limit of %.*s was 0 for %s: not in its use\n", (int) u->pools[i].name_length,
                   u->pools[i].name, format_msec((json_int_t) (u->pools[i].shut / USEC_PER_MSEC), text));
}

static int show_table(const struct uses *u, const struct history_hosts *hosts, const struct shown *shown) {
    _cleanup_(table_freep) struct table *t = NULL;
    _cleanup_free_ char *labels = calloc(u->n_cells + LABELS_MAX * LABEL_SIZE, 1);
    const struct table_column columns[] = {
        {.name = "POOL"},
        {.name = "LIMIT", .right = true},
        {.name = "USE", .right = true},
        {.name = "FULL", .right = true},
        {.name = "PEAK", .right = true, .drop = 2},
        {.name = "WAITS", .right = true, .drop = 3},
        {.name = "WAIT95", .right = true},
        {.name = labels ? name_cells(u, shown->utc, labels, u->n_cells + LABELS_MAX * LABEL_SIZE) : "",
         .drop = 1},
    };
    bool utf8 = table_has_utf8();
    int k = labels ? table_new(&t, columns, ELEMENTSOF(columns)) : -ENOMEM;

    for (size_t i = 0; i < u->n && k == 0; i++)
        k = add_pool(t, u, &u->pools[i], utf8);
    if (k < 0)
        return output_error(k);
    k = output_table(t, "no pool was used in that time");
    if (k == 0) {
        print_shut(u);
        history_print_hosts(hosts, shown->merged);
    }
    return k;
}

int history_show_use(const struct uses *uses, const struct history_hosts *hosts, const struct shown *shown) {
    return shown->json ? show_json(uses, hosts) : show_table(uses, hosts, shown);
}
