/* SPDX-License-Identifier: MIT */
#include "tests/bench/report.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"

struct report {
    char *folder;
    json_t *figures, *notes, *curves; /* curves: names of those begun */
};

struct report *report_new(const char *folder) {
    struct report *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->folder = strdup(folder);
    r->figures = json_array();
    r->notes = json_object();
    r->curves = json_object();
    return r->folder && r->figures && r->notes && r->curves ? r : report_free(r);
}

struct report *report_free(struct report *r) {
    if (r) {
        json_decref(r->figures);
        json_decref(r->notes);
        json_decref(r->curves);
        free(r->folder);
        free(r);
    }
    return NULL;
}

static void save(const struct report *r);

void report_section(struct report *r, const char *title) {
    save(r); /* because a part that fails ends the program */
    printf("== %s\n", title);
    fflush(stdout);
}

/* Returns a value with four significant digits. */
static double rounded(double value) {
    char text[40];

    snprintf(text, sizeof(text), "%.4g", value);
    return strtod(text, NULL);
}

static const char *number(double value, char buffer[static 32]) {
    if (fabs(value) >= 1000)
        snprintf(buffer, 32, "%.0f", value);
    else
        snprintf(buffer, 32, "%.3g", value);
    return buffer;
}

static void print_figure(const json_t *f) {
    char a[32], b[32], goal[64] = "";
    const json_t *value = json_object_get(f, "value"), *ratio = json_object_get(f, "ratio"), *met = json_object_get(f, "met");

    if (!json_is_number(value)) {
        printf("%-62s %s\n", json_string_value(json_object_get(f, "name")), json_string_value(json_object_get(f, "skipped")));
        return;
    }
    if (!json_is_null(met))
        snprintf(goal, sizeof(goal), "%s %s", json_string_value(json_object_get(f, "goal")), json_is_true(met) ? "met" : "NOT MET");
    printf("%-62s %10s %-8s %7s%s %s\n", json_string_value(json_object_get(f, "name")), number(json_number_value(value), a),
           json_string_value(json_object_get(f, "unit")), json_is_number(ratio) ? number(json_number_value(ratio), b) : "",
           json_is_number(ratio) ? "x" : " ", goal);
}

static bool is_met(const struct figure *f, double ratio) {
    switch (f->goal) {
    case GOAL_RATIO_AT_MOST:
        return ratio <= f->limit;
    case GOAL_RATIO_AT_LEAST:
        return ratio >= f->limit;
    case GOAL_VALUE_AT_MOST:
        return f->value <= f->limit;
    case GOAL_VALUE_AT_LEAST:
        return f->value >= f->limit;
    case GOAL_NONE:
        break;
    }
    return false;
}

static json_t *goal_text(const struct figure *f) {
    bool ratio = f->goal == GOAL_RATIO_AT_MOST || f->goal == GOAL_RATIO_AT_LEAST;
    bool most = f->goal == GOAL_RATIO_AT_MOST || f->goal == GOAL_VALUE_AT_MOST;
    char text[64];

    if (f->goal == GOAL_NONE)
        return json_null();
    snprintf(text, sizeof(text), "%s %g%s%s", most ? "<=" : ">=", f->limit, ratio ? "x" : " ", ratio ? "" : f->unit);
    return json_string(text);
}

void report_add(struct report *r, const struct figure *f) {
    double ratio = f->yardstick && f->yardstick_value > 0 ? f->value / f->yardstick_value : NAN;
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(f->name));
    json_object_set_new(o, "value", json_real(rounded(f->value)));
    json_object_set_new(o, "unit", json_string(f->unit));
    json_object_set_new(o, "yardstick", f->yardstick ? json_string(f->yardstick) : json_null());
    json_object_set_new(o, "yardstick_value", f->yardstick ? json_real(rounded(f->yardstick_value)) : json_null());
    json_object_set_new(o, "ratio", isnan(ratio) ? json_null() : json_real(rounded(ratio)));
    json_object_set_new(o, "goal", goal_text(f));
    json_object_set_new(o, "met", f->goal == GOAL_NONE ? json_null() : json_boolean(is_met(f, ratio)));
    print_figure(o);
    fflush(stdout);
    json_array_append_new(r->figures, o);
}

void report_skip(struct report *r, const char *name, const char *why) {
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(name));
    json_object_set_new(o, "value", json_null());
    json_object_set_new(o, "skipped", json_sprintf("skipped: %s", why));
    print_figure(o);
    json_array_append_new(r->figures, o);
}

void report_point(struct report *r, const char *curve, double x, double y) {
    char path[512];
    bool begun = json_object_get(r->curves, curve);
    _cleanup_fclose_ FILE *f = NULL;

    snprintf(path, sizeof(path), "%s/%s.dat", r->folder, curve);
    f = fopen(path, begun ? "ae" : "we");
    if (f)
        fprintf(f, "%.6g %.6g\n", x, y);
    json_object_set_new(r->curves, curve, json_true());
}

void report_note(struct report *r, const char *key, const char *value) {
    json_object_set_new(r->notes, key, json_string(value));
}

/* The same table for doc/bench.md. */
static void write_markdown(const struct report *r) {
    char path[512], a[32], b[32], c[32];
    _cleanup_fclose_ FILE *out = NULL;
    const char *key;
    json_t *f, *value;
    size_t i;

    snprintf(path, sizeof(path), "%s/table.md", r->folder);
    out = fopen(path, "we");
    if (!out)
        return;
    json_object_foreach(r->notes, key, value)
        fprintf(out, "- %s: %s\n", key, json_string_value(value));
    fputs("\n| figure | value | yardstick | ratio | goal | met |\n|---|---:|---|---:|---|---|\n", out);
    json_array_foreach(r->figures, i, f) {
        const json_t *ratio = json_object_get(f, "ratio"), *met = json_object_get(f, "met");
        const char *yardstick = json_string_value(json_object_get(f, "yardstick")), *goal = json_string_value(json_object_get(f, "goal"));

        value = json_object_get(f, "value");
        if (!json_is_number(value)) {
            fprintf(out, "| %s | %s | | | | |\n", json_string_value(json_object_get(f, "name")),
                    json_string_value(json_object_get(f, "skipped")));
            continue;
        }
        snprintf(c, sizeof(c), "%s", json_is_number(ratio) ? number(json_number_value(json_object_get(f, "yardstick_value")), b) : "");
        fprintf(out, "| %s | %s %s | %s%s%s | %s | %s | %s |\n", json_string_value(json_object_get(f, "name")),
                number(json_number_value(value), a), json_string_value(json_object_get(f, "unit")), yardstick ? yardstick : "",
                *c ? ": " : "", c, json_is_number(ratio) ? number(json_number_value(ratio), b) : "", goal ? goal : "",
                !json_is_boolean(met) ? "" : json_is_true(met) ? "yes" : "**no**");
    }
}

static void save(const struct report *r) {
    char path[512];
    json_t *root = json_object();

    write_markdown(r);
    json_object_set(root, "run", r->notes);
    json_object_set(root, "figures", r->figures);
    snprintf(path, sizeof(path), "%s/bench.json", r->folder);
    if (json_dump_file(root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(5)) < 0)
        printf("bench: %s cannot be written\n", path);
    json_decref(root);
}

void report_write(struct report *r) {
    size_t i, goals = 0, met = 0;
    json_t *f;

    printf("\n%-62s %10s %-8s %8s %s\n", "figure", "value", "unit", "ratio", "goal");
    json_array_foreach(r->figures, i, f) {
        print_figure(f);
        goals += json_is_boolean(json_object_get(f, "met"));
        met += json_is_true(json_object_get(f, "met"));
    }
    printf("%zu of %zu goals met\n", met, goals);
    save(r);
}
