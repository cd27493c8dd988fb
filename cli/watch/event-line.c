/* SPDX-License-Identifier: MIT */
#include "cli/watch/event-line.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json/format.h"
#include "base/name.h"
#include "base/pool-name.h"
#include "base/text.h"
#include "cli/choice.h"
#include "cli/wrap.h"

#define PREFIX "BERTH_"
#define NAME_SIZE 64   /* of a field */
#define LINE_SIZE 8192 /* fits the longest message and 16 pools */
#define RUN_SHOWN 8
#define EVENT_WIDTH 13 /* most names are shorter */
#define TEXT_COLUMN 27 /* behind the time and the event */

/* --- JSON --- */

/* Fields that are numbers in the journal, besides those that end in _ms. */
static const char *const numbers[] = {"token", "ticket", "clock",    "position", "exit_code", "signal",
                                      "uid",   "seq",    "attempts", "attempt",  "count"};

static bool is_number(const char *name) {
    size_t n = strlen(name);

    for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
        if (strcmp(name, numbers[i]) == 0)
            return true;
    return n > 3 && strcmp(name + n - 3, "_ms") == 0;
}

/* Returns "db:2,net:1" as an object; "db", in an event about a pool, as {"db": null}. */
static json_t *pools_to_json(const char *text) {
    json_t *pools = json_object();

    for (size_t n; pools && *text; text += n + (text[n] == ',')) {
        const char *colon;

        n = strcspn(text, ",");
        colon = memchr(text, ':', n);
        if (json_object_setn_new(pools, text, colon ? (size_t) (colon - text) : n,
                                 colon ? json_integer(strtoll(colon + 1, NULL, 10)) : json_null()) < 0) {
            json_decref(pools);
            return NULL;
        }
    }
    return pools;
}

static json_t *value_to_json(const char *name, const json_t *value) {
    const char *text = json_string_value(value);

    if (strcmp(name, "pools") == 0)
        return pools_to_json(text ? text : "");
    return text && is_number(name) ? json_integer(strtoll(text, NULL, 10)) : json_string(text);
}

json_t *event_line_new(const char *time, const char *at, const char *event, const char *message) {
    return json_pack("{s:i, s:s, s:s, s:s, s:s}", "schema", 1, "time", time, "at", at, "event", event,
                     "message", message);
}

json_t *event_line_to_json(const json_t *event) {
    json_t *line = event_line_new(format_get_text(event, "time"), format_get_text(event, "at"),
                            format_get_text(event, "event"), format_get_text(event, "message"));
    json_t *fields = json_object_get(event, "fields"), *value;
    const char *field;
    int k = line ? 0 : -1;

    json_object_foreach (fields, field, value) {
        char name[NAME_SIZE];

        (void) snprintf(name, sizeof(name), "%s",
                        strncmp(field, PREFIX, strlen(PREFIX)) == 0 ? field + strlen(PREFIX) : field);
        for (char *c = name; *c; c++)
            *c = (char) tolower((unsigned char) *c);
        if (!json_object_get(line, name))
            k |= json_object_set_new(line, name, value_to_json(name, value));
    }
    if (k < 0) {
        json_decref(line);
        return NULL;
    }
    return line;
}

json_t *event_line_gap(const char *at, json_int_t missed, usec_t realtime) {
    char time[CLOCK_TEXT_SIZE], message[128];
    json_t *line;

    if (missed < 0)
        (void) snprintf(message, sizeof(message),
                        "another berthd runs now; an unknown number of events is missing");
    else
        (void) snprintf(message, sizeof(message), "%" JSON_INTEGER_FORMAT " event%s missed", missed,
                        missed == 1 ? "" : "s");
    line = event_line_new(clock_format(realtime, time), at, "gap", message);
    if (json_object_set_new(line, "missed", missed < 0 ? json_null() : json_integer(missed)) == 0)
        return line;
    json_decref(line);
    return NULL;
}

json_t *event_line_reconnected(const char *at, usec_t realtime) {
    char time[CLOCK_TEXT_SIZE];

    return event_line_new(clock_format(realtime, time), at, "reconnected", "to berthd");
}

/* --- for people --- */

struct text {
    char data[LINE_SIZE];
    size_t size;
};

static void text_add(struct text *t, const char *format, ...) _printf_(2, 3);
static void text_add(struct text *t, const char *format, ...) {
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(t->data + t->size, sizeof(t->data) - t->size, format, arguments);
    va_end(arguments);
    t->size += n > 0 ? (size_t) n : 0;
    if (t->size >= sizeof(t->data))
        t->size = sizeof(t->data) - 1;
}

/* Adds the local time, "10:12:07.204", of an RFC 3339 time in UTC. */
static void add_time(struct text *t, const char *time) {
    struct tm tm = {}, local;
    const char *rest = strptime(time, "%Y-%m-%dT%H:%M:%S", &tm);
    time_t seconds = timegm(&tm);

    if (rest && localtime_r(&seconds, &local))
        text_add(t, "%02d:%02d:%02d%.4s ", local.tm_hour, local.tm_min, local.tm_sec, rest);
}

static void add_pools(struct text *t, json_t *pools) {
    const char *pool, *before = " ";
    json_t *permits;

    json_object_foreach (pools, pool, permits) {
        text_add(t, "%s%s", before, pool);
        if (json_is_integer(permits))
            text_add(t, ":%" JSON_INTEGER_FORMAT, json_integer_value(permits));
        before = ",";
    }
}

/* Adds the result, a duration, the reason. */
static void add_details(struct text *t, const json_t *line) {
    const char *took = json_object_get(line, "run_ms") ? "run_ms" : "wait_ms",
               *reason = format_get_text(line, "reason");
    char buffer[FORMAT_SIZE];

    if (json_object_get(line, "result"))
        text_add(t, " %s", format_result(line, "result", "exit_code", "signal", buffer));
    if (json_object_get(line, "position"))
        text_add(t, " place %" JSON_INTEGER_FORMAT, format_get_number(line, "position"));
    if (json_object_get(line, took))
        text_add(t, " after %s", format_duration(line, took, buffer));
    if (*reason && strcmp(reason, format_get_text(line, "result")) != 0)
        text_add(t, " (%s)", reason);
}

void event_line_print(FILE *f, const json_t *line, size_t width) {
    struct text text = {};

    add_time(&text, format_get_text(line, "time"));
    text_add(&text, "%-*s", EVENT_WIDTH, format_get_text(line, "event"));
    if (json_object_get(line, "run")) {
        if (json_object_get(line, "sampled"))
            text_add(&text, " %s:%s %.*s", format_get_text(line, "host"), format_get_text(line, "job"),
                     RUN_SHOWN, format_get_text(line, "run"));
        else
            text_add(&text, " %s %.*s", format_get_text(line, "job"), RUN_SHOWN, format_get_text(line, "run"));
        add_pools(&text, json_object_get(line, "pools"));
        add_details(&text, line);
    } else {
        text_add(&text, " %s", format_get_text(line, "message"));
    }
    text_make_printable(text.data);
    wrap_print(f, text.data, 0, &(struct wrap) {.width = width, .indent = TEXT_COLUMN});
}

void event_line_print_short(FILE *f, const json_t *line) {
    struct text text = {};

    text_add(&text, "%s", format_get_text(line, "event"));
    add_details(&text, line);
    text_make_printable(text.data);
    fputs(text.data, f);
}

/* --- which events --- */

bool event_line_has_pool(const json_t *line, const char *wanted) {
    json_t *pools = json_object_get(line, "pools"), *permits;
    const char *pool;

    json_object_foreach (pools, pool, permits)
        if (strcmp(pool, wanted) == 0 || pool_name_matches(wanted, pool))
            return true;
    return false;
}

bool event_line_has_job(const json_t *line, const char *job) {
    const char *name = json_string_value(json_object_get(line, "job"));

    return name && choice_is_name(job, name);
}
