/* SPDX-License-Identifier: MIT */
#pragma once

/* The measured figures, each beside its yardstick and goal, and the points of curves. Writes a table to
 * standard output, bench.json, and one data file a curve for gnuplot. */

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
    const char *yardstick;   /* what the figure is compared with, or NULL */
    double yardstick_value;  /* in the same unit; the ratio is value / yardstick_value */
    enum goal goal;
    double limit;
};

struct report;

/* folder: exists; gets all files. NULL: no memory. */
struct report *report_new(const char *folder);
struct report *report_free(struct report *r);
DEFINE_CLEANUP(struct report, report_free)
/* Prints a line of progress. */
void report_section(struct report *r, const char *title);
/* Texts are copied. */
void report_add(struct report *r, const struct figure *f);
/* Adds a figure that cannot be measured here, and why: it never meets a goal. */
void report_skip(struct report *r, const char *name, const char *why);
/* Adds a point of a curve to folder/CURVE.dat. */
void report_point(struct report *r, const char *curve, double x, double y);
/* Adds a fact about this run ("redis": "7.0.15"). */
void report_note(struct report *r, const char *key, const char *value);
/* Prints the table; writes bench.json and table.md, as each section does. */
void report_write(struct report *r);
