/* SPDX-License-Identifier: MIT */
#pragma once

/* What was measured: figures, each beside its yardstick and its goal, and the points of curves. Written as a table to standard output,
 * as bench.json, and as one data file a curve for gnuplot. */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum goal {
    GOAL_NONE,
    GOAL_RATIO_AT_MOST,
    GOAL_RATIO_AT_LEAST,
    GOAL_VALUE_AT_MOST,
    GOAL_VALUE_AT_LEAST,
};

struct figure {
    const char *name;        /* what, with the circumstances: "release that grants, 100 000 waiting" */
    double value;
    const char *unit;
    const char *yardstick;   /* what it is held against, or NULL */
    double yardstick_value;  /* in the same unit; the ratio is value / yardstick_value */
    enum goal goal;
    double limit;
};

struct report;

/* Everything goes into this folder, which exists. NULL: no memory. */
struct report *report_new(const char *folder);
struct report *report_free(struct report *r);
DEFINE_CLEANUP(struct report, report_free)
/* Says a line of progress. */
void report_section(struct report *r, const char *title);
/* Texts are copied. */
void report_add(struct report *r, const struct figure *f);
/* A figure that cannot be had here, and why: no result, never a met goal. */
void report_skip(struct report *r, const char *name, const char *why);
/* A point of a curve: folder/CURVE.dat. */
void report_point(struct report *r, const char *curve, double x, double y);
/* A fact about this run ("redis": "7.0.15"). */
void report_note(struct report *r, const char *key, const char *value);
/* Prints the table; writes bench.json and table.md, as each section does. */
void report_write(struct report *r);
