/* SPDX-License-Identifier: MIT */
/* `berth history`: one line for each run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/demand.h"
#include "base/job-name.h"
#include "base/json/format.h"
#include "cli/history/show.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "cli/when.h"

/* --- as JSON --- */

json_t *history_json_when(usec_t time) {
    char text[CLOCK_TEXT_SIZE];

    return time > 0 ? json_string(clock_format(time, text)) : json_null();
}

json_t *history_json_number(int64_t value) {
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
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?, "
        "s:o, s:s?, s:s?}",
        "run", p->run, "name", p->name, "host", p->host, "pools", json_pools(p->pools), "token",
        history_json_number(p->token > 0 ? (int64_t) p->token : -1), "queued", history_json_when(p->queued),
        "granted", history_json_when(p->granted), "started", history_json_when(p->started), "ended",
        history_json_when(p->ended), "wait_ms", history_json_number(p->wait_ms), "run_ms",
        history_json_number(p->run_ms), "result", p->result ? json_string(p->result) : json_null(),
        "exit_code", history_json_number(p->exit_code), "signal", history_json_number(p->signal), "trigger",
        p->trigger, "due", p->due, "attempt", history_json_number(p->attempt > 0 ? p->attempt : -1),
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

int history_show_runs(const struct past *pasts, size_t n, const struct shown *shown) {
    return shown->json ? show_json(pasts, n) : show_table(pasts, n, shown->utc);
}
