/* SPDX-License-Identifier: MIT */
/* Findings: added by checks, then sorted. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/doctor/doctor.h"

static struct finding *last(struct report *r) {
    return r->n > 0 ? &r->items[r->n - 1] : NULL;
}

static struct finding *grow(struct report *r) {
    return array_grow(r->items, r->n) ? &r->items[r->n++] : NULL;
}

void report_add(struct report *r, enum severity severity, const char *format, ...) {
    struct finding *f = grow(r);
    va_list arguments;

    if (!f) {
        r->out_of_memory = true;
        return;
    }
    *f = (struct finding){
        .check = r->check, .severity = severity, .remedies = json_array(), .commands = json_array()};
    va_start(arguments, format);
    (void) vsnprintf(f->text, sizeof(f->text), format, arguments);
    va_end(arguments);
    text_make_printable(f->text);
    if (!f->remedies || !f->commands)
        r->out_of_memory = true;
}

void report_do(struct report *r, const char *format, ...) {
    struct finding *f = last(r);
    char text[FINDING_TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    text_make_printable(text);
    if (!f || json_array_append_new(f->remedies, json_string(text)) < 0)
        r->out_of_memory = true;
}

void report_add_command(struct report *r, const char *const *words) {
    struct finding *f = last(r);
    json_t *list = json_array();

    for (; *words; words++) {
        _cleanup_free_ char *word = strdup(*words);

        if (word)
            text_make_printable(word); /* a path may be any bytes */
        if (!word || json_array_append_new(list, json_string(word)) < 0)
            r->out_of_memory = true;
    }
    if (!f || json_array_append(f->commands, list) < 0)
        r->out_of_memory = true;
    json_decref(list);
}

void report_about(struct report *r, const char *host, const char *pool, const char *run) {
    struct finding *f = last(r);

    if (!f)
        return;
    (void) snprintf(f->host, sizeof(f->host), "%s", host ? host : "");
    (void) snprintf(f->pool, sizeof(f->pool), "%s", pool ? pool : "");
    (void) snprintf(f->run, sizeof(f->run), "%s", run ? run : "");
}

void report_measure(struct report *r, double value, double bound) {
    struct finding *f = last(r);

    if (!f)
        return;
    f->is_measured = true;
    f->value = value;
    f->bound = bound;
}

void report_sort(struct report *r) {
    for (size_t i = 1; i < r->n; i++) { /* few, and mostly in order */
        struct finding moved = r->items[i];
        size_t k = i;

        for (; k > 0 && r->items[k - 1].severity < moved.severity; k--)
            r->items[k] = r->items[k - 1];
        r->items[k] = moved;
    }
}

bool report_is_fine(const struct report *r, const char *check) {
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->items[i].check, check) == 0)
            return false;
    return true;
}

size_t report_count(const struct report *r, enum severity severity) {
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += r->items[i].severity == severity;
    return n;
}

const char *report_status(const struct report *r, int *ret_exit) {
    static const struct {
        enum severity severity;
        const char *status;
        int exit;
    } rows[] = {{SEVERITY_CRIT, "crit", 2}, {SEVERITY_WARN, "warn", 1}, {SEVERITY_UNKNOWN, "unknown", 3}};

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        if (report_count(r, rows[i].severity) > 0) {
            *ret_exit = rows[i].exit;
            return rows[i].status;
        }
    *ret_exit = 0;
    return "ok";
}

void report_done(struct report *r) {
    for (size_t i = 0; i < r->n; i++) {
        json_decref(r->items[i].remedies);
        json_decref(r->items[i].commands);
    }
    free(r->items);
    *r = (struct report){0};
}
