/* SPDX-License-Identifier: MIT */

#include "base/client/metrics-text.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metric.h"

#define NUMBER_SIZE 32
#define FAMILY_SIZE 80
#define LABEL_SIZE 32

struct family { /* one metric, being written */
    FILE *f;
    const struct metric_row *row;
    bool is_openmetrics, is_cut;
    char name[FAMILY_SIZE]; /* is_cut: of a counter without "_total" */
};

static bool has_end(const char *text, const char *end) {
    size_t n = strlen(text), n_end = strlen(end);

    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* --- texts and numbers --- */

/* Both formats have only these three escapes. Prometheus does not escape a quote in a help text. */
static void print_escaped(FILE *f, const char *text, bool with_quotes) {
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", f);
        else if (*text == '\\' || (*text == '"' && with_quotes))
            fprintf(f, "\\%c", *text);
        else
            fputc(*text, f);
}

static const char *format_number(double value, char buffer[static NUMBER_SIZE]) {
    bool is_whole = fabs(value) < 1e15 && value == (double) (long long) value;

    (void) snprintf(buffer, NUMBER_SIZE, is_whole ? "%.0f" : "%.16g", value);
    return buffer;
}

/* --- samples --- */

/* Prints the labels of the table, whatever berthd sends. */
static void print_sample(const struct family *family, const char *suffix, const json_t *labels,
                         const char *bound, double value) {
    const char *separator = "{", *at = family->row->labels;
    char number[NUMBER_SIZE], name[LABEL_SIZE];

    fprintf(family->f, "%s%s", family->name, suffix);
    while (*at) {
        size_t n = strcspn(at, ",");
        const char *text;

        (void) snprintf(name, sizeof(name), "%.*s", (int) n, at);
        text = json_string_value(json_object_get(labels, name));
        fprintf(family->f, "%s%s=\"", separator, name);
        print_escaped(family->f, text ? text : "", true);
        fputc('"', family->f);
        separator = ",";
        at += n + (at[n] == ',');
    }
    if (bound) {
        fprintf(family->f, "%sle=\"%s\"", separator, bound);
        separator = ",";
    }
    fprintf(family->f, "%s %s\n", *separator == ',' ? "}" : "", format_number(value, number));
}

/* OpenMetrics requires "1.0" where Prometheus has "1". */
static void print_bucket(const struct family *family, const json_t *labels, double bound, double count) {
    char number[NUMBER_SIZE], text[NUMBER_SIZE + 2];
    bool is_whole = !strpbrk(format_number(bound, number), ".e");

    (void) snprintf(text, sizeof(text), "%s%s", number, family->is_openmetrics && is_whole ? ".0" : "");
    print_sample(family, "_bucket", labels, text, count);
}

static void print_histogram(const struct family *family, const json_t *labels, const json_t *sample) {
    const json_t *bounds = json_object_get(sample, "bounds"), *counts = json_object_get(sample, "counts");
    double count = 0;
    json_t *item;
    size_t i;

    if (json_array_size(counts) != json_array_size(bounds) + 1)
        return;
    json_array_foreach (counts, i, item) {
        count += json_number_value(item);
        if (i < json_array_size(bounds))
            print_bucket(family, labels, json_number_value(json_array_get(bounds, i)), count);
    }
    print_sample(family, "_bucket", labels, "+Inf", count);
    print_sample(family, "_sum", labels, NULL, json_number_value(json_object_get(sample, "sum")));
    print_sample(family, "_count", labels, NULL, count);
}

/* --- families --- */

static const char *type_name(enum metric_type type) {
    switch (type) {
    case METRIC_GAUGE:
        return "gauge";
    case METRIC_COUNTER:
        return "counter";
    case METRIC_HISTOGRAM:
        return "histogram";
    }
    return "unknown";
}

static struct family begin_family(FILE *f, enum metric metric, bool is_openmetrics) {
    const struct metric_row *row = metric_get(metric);
    struct family family = {.f = f, .row = row, .is_openmetrics = is_openmetrics};

    family.is_cut = is_openmetrics && row->type == METRIC_COUNTER;
    (void) snprintf(family.name, sizeof(family.name), "%.*s",
                    (int) (strlen(row->name) - (family.is_cut ? strlen("_total") : 0)), row->name);
    fprintf(f, "# HELP %s ", family.name);
    print_escaped(f, row->help, is_openmetrics);
    fprintf(f, "\n# TYPE %s %s\n", family.name, type_name(row->type));
    if (is_openmetrics && has_end(family.name, "_seconds"))
        fprintf(f, "# UNIT %s seconds\n", family.name);
    return family;
}

/* Prints a family, and leaves out malformed samples. */
static void print_samples(FILE *f, enum metric metric, const json_t *samples, bool is_openmetrics) {
    struct family family;
    json_t *sample;
    size_t i;

    if (json_array_size(samples) == 0)
        return;
    family = begin_family(f, metric, is_openmetrics);
    json_array_foreach (samples, i, sample) {
        const json_t *labels = json_object_get(sample, "labels"), *value = json_object_get(sample, "value");

        if (family.row->type == METRIC_HISTOGRAM)
            print_histogram(&family, labels, sample);
        else if (json_is_number(value))
            print_sample(&family, family.is_cut ? "_total" : "", labels, NULL, json_number_value(value));
    }
}

void metrics_print(FILE *f, const json_t *metrics, bool is_openmetrics) {
    struct family up = begin_family(f, METRIC_IS_UP, is_openmetrics);

    print_sample(&up, "", NULL, NULL, metrics ? 1 : 0);
    for (enum metric i = METRIC_IS_UP + 1; i < METRICS; i++)
        print_samples(f, i, json_object_get(metrics, metric_get(i)->name), is_openmetrics);
    if (is_openmetrics)
        fputs("# EOF\n", f);
}
