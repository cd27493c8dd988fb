/* SPDX-License-Identifier: MIT */
/* The findings as text of 80 columns, as JSON, and as Nagios reads them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json/format.h"
#include "cli/client.h"
#include "cli/doctor/doctor.h"
#include "cli/wrap.h"

#define INDENT 23 /* of texts: "CRIT redis-persistence " */
#define WIDTH 79
#define LINE_SIZE 1024

static const char *const severity_words[] = {
    [SEVERITY_NOTE] = "NOTE", [SEVERITY_UNKNOWN] = "?", [SEVERITY_WARN] = "WARN", [SEVERITY_CRIT] = "CRIT"};
static const char *const severity_names[] = {[SEVERITY_NOTE] = "note",
                                             [SEVERITY_UNKNOWN] = "unknown",
                                             [SEVERITY_WARN] = "warn",
                                             [SEVERITY_CRIT] = "crit"};

/* --- text --- */

/* Appends a word, quoted for a shell. */
static void append_quoted(char line[static LINE_SIZE], const char *word) {
    bool is_plain = *word != '\0';
    size_t n = strlen(line);

    for (const char *c = word; *c; c++)
        is_plain = is_plain && (isalnum((unsigned char) *c) || strchr("._-/:@%+=,", *c));
    if (n > 0 && n + 1 < LINE_SIZE)
        line[n++] = ' ';
    if (is_plain) {
        (void) snprintf(line + n, LINE_SIZE - n, "%s", word);
        return;
    }
    if (n + 2 < LINE_SIZE)
        line[n++] = '\'';
    for (; *word && n + 6 < LINE_SIZE; word++) {
        if (*word == '\'')
            n += (size_t) snprintf(line + n, LINE_SIZE - n, "'\\''");
        else
            line[n++] = *word;
    }
    (void) snprintf(line + n, LINE_SIZE - n, "'");
}

static void format_command(const json_t *words, char line[static LINE_SIZE]) {
    json_t *word;
    size_t i;

    line[0] = '\0';
    json_array_foreach (words, i, word)
        append_quoted(line, json_is_string(word) ? json_string_value(word) : "?");
}

static const struct wrap plain = {.width = WIDTH, .indent = INDENT}, command = {.width = WIDTH, .indent = INDENT + 2, .end = " \\"},
                         count = {.width = WIDTH, .indent = 4};

static void print_finding(FILE *out, const struct finding *f) {
    char line[LINE_SIZE];
    json_t *item;
    size_t i;

    fprintf(out, "%s %-*s", severity_words[f->severity], INDENT - 5, f->check);
    wrap_print(out, f->text, INDENT, &plain);
    json_array_foreach (f->remedies, i, item) {
        fprintf(out, "%*s", INDENT, "");
        wrap_print(out, json_is_string(item) ? json_string_value(item) : "?", INDENT, &plain);
    }
    json_array_foreach (f->commands, i, item) {
        format_command(item, line);
        fprintf(out, "%*s", INDENT, "");
        wrap_print(out, line, INDENT, &command);
    }
}

static size_t count_fine(const struct shown *s) {
    size_t n = 0;

    for (size_t i = 0; i < doctor_n_checks; i++)
        n += s->is_wanted[i] && report_is_fine(s->report, doctor_checks[i].name);
    return n;
}

/* Appends "NAME, NAME: WHY" for the checks that were not possible for the reason of finding i, unless an
 * earlier finding has the same reason. */
static void append_reason(const struct report *r, size_t i, char line[static LINE_SIZE]) {
    const char *why = r->items[i].text;
    size_t n;

    for (size_t k = 0; k < i; k++)
        if (r->items[k].severity == SEVERITY_UNKNOWN && strcmp(r->items[k].text, why) == 0)
            return;
    n = strlen(line);
    if (n > 0)
        n += (size_t) snprintf(line + n, LINE_SIZE - n, "; ");
    for (size_t k = i; k < r->n; k++)
        if (r->items[k].severity == SEVERITY_UNKNOWN && strcmp(r->items[k].text, why) == 0 && n < LINE_SIZE)
            n += (size_t) snprintf(line + n, LINE_SIZE - n, "%s%s", k > i ? ", " : "", r->items[k].check);
    if (n < LINE_SIZE)
        (void) snprintf(line + n, LINE_SIZE - n, ": %s", why);
}

void show_text(const struct shown *s) {
    FILE *out = s->out;
    char reasons[LINE_SIZE] = "", line[LINE_SIZE + 64];
    size_t fine = count_fine(s), unknown = report_count(s->report, SEVERITY_UNKNOWN);

    for (size_t i = 0; i < s->report->n; i++) {
        if (s->report->items[i].severity == SEVERITY_UNKNOWN)
            append_reason(s->report, i, reasons);
        else
            print_finding(s->out, &s->report->items[i]);
    }
    if (unknown == 0)
        fprintf(out, "%zu check%s fine\n", fine, fine == 1 ? "" : "s");
    else {
        (void) snprintf(line, sizeof(line), "%zu check%s fine, %zu not possible (%s)", fine,
                        fine == 1 ? "" : "s", unknown, reasons);
        wrap_print(out, line, 0, &count);
    }
}

/* --- Nagios --- */

/* Nagios would take what follows a '|' for figures. */
static void print_plain(FILE *out, const char *text) {
    for (; *text; text++)
        fputc(*text == '|' ? '/' : *text, out);
}

static void print_figures(FILE *out, const struct shown *s) {
    double trip = json_number_value(json_object_get(s->facts->redis, "rtt_ms")), age, warn, crit;
    size_t n = 0;

    for (size_t i = 0; i < doctor_n_checks; i++)
        n += s->is_wanted[i];
    fprintf(out, " | checks=%zu crit=%zu warn=%zu", n, report_count(s->report, SEVERITY_CRIT),
            report_count(s->report, SEVERITY_WARN));
    if (trip > 0)
        fprintf(out, " redis_rtt=%.4fs", trip / 1000);
    if (!facts_metric(s->facts, "berth_heartbeat_age_seconds", &age))
        return;
    doctor_heartbeat_bounds(s->facts, &warn, &crit);
    fprintf(out, " heartbeat_age=%.2fs;%.4g;%.4g", age, warn, crit);
}

void show_nagios(const struct shown *s) {
    static const struct {
        const char *status, *word;
    } words[] = {{"ok", "OK"}, {"warn", "WARNING"}, {"crit", "CRITICAL"}, {"unknown", "UNKNOWN"}};
    const char *status, *separator = " - ";
    FILE *out = s->out;
    int ignored;

    status = report_status(s->report, &ignored);
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (strcmp(words[i].status, status) == 0)
            fprintf(out, "BERTH %s", words[i].word);
    for (size_t i = 0; i < s->report->n; i++) {
        const struct finding *f = &s->report->items[i];

        if (f->severity == SEVERITY_NOTE || (i > 0 && strcmp(s->report->items[i - 1].check, f->check) == 0))
            continue;
        fprintf(out, "%s%s", separator, f->check);
        separator = ", ";
    }
    if (strcmp(status, "ok") == 0)
        fprintf(out, " - %zu checks fine", count_fine(s));
    print_figures(out, s);
    fputc('\n', out);
    for (size_t i = 0; i < s->report->n; i++) {
        const struct finding *f = &s->report->items[i];

        fprintf(out, "%s %s: ", severity_words[f->severity], f->check);
        print_plain(out, f->text);
        fputc('\n', out);
    }
}

/* --- JSON --- */

static json_t *text_or_null(const char *text) {
    return *text ? json_string(text) : json_null();
}

static json_t *finding_as_json(const struct finding *f) {
    return json_pack("{s:s, s:s, s:s, s:O, s:O, s:o, s:o, s:o, s:o, s:o}", "check", f->check, "severity",
                     severity_names[f->severity], "text", f->text, "do", f->remedies, "commands",
                     f->commands, "host", text_or_null(f->host), "pool", text_or_null(f->pool), "run",
                     text_or_null(f->run), "value", f->is_measured ? json_real(f->value) : json_null(),
                     "bound", f->is_measured ? json_real(f->bound) : json_null());
}

json_t *show_as_json(const struct shown *s) {
    json_t *findings = json_array(), *fine = json_array();
    int ignored, k = 0;

    for (size_t i = 0; i < s->report->n; i++)
        k |= json_array_append_new(findings, finding_as_json(&s->report->items[i]));
    for (size_t i = 0; i < doctor_n_checks; i++)
        if (s->is_wanted[i] && report_is_fine(s->report, doctor_checks[i].name))
            k |= json_array_append_new(fine, json_string(doctor_checks[i].name));
    if (k < 0) {
        json_decref(findings);
        json_decref(fine);
        return NULL;
    }
    return json_pack("{s:i, s:o, s:s, s:o, s:o}", "schema", 1, "host", text_or_null(facts_host(s->facts)),
                     "status", report_status(s->report, &ignored), "findings", findings, "fine", fine);
}
