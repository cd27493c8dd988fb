/* SPDX-License-Identifier: MIT */
#pragma once

/* A table for people; the only user of libsmartcols. Colours only on a terminal, and not where NO_COLOR is set (no-color.org); none of
 * the grey ones, which cannot be read on every background. What cannot be printed is escaped, so nothing that somebody named can talk
 * to the terminal. */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct table;

enum table_colour { TABLE_PLAIN, TABLE_GOOD, TABLE_NOTICE, TABLE_BAD };

struct table_column {
    const char *name;
    bool right; /* numbers */
};

/* Negative errno. */
int table_new(struct table **ret, const struct table_column *columns, size_t n);
struct table *table_free(struct table *t);
DEFINE_CLEANUP(struct table, table_free)
/* Begins a line; then one cell after the other, copied. NULL or "" is shown as "-". A failure is kept, told by table_print(). */
void table_line(struct table *t);
void table_cell(struct table *t, enum table_colour colour, const char *format, ...) _printf_(3, 4);
/* To standard output. Negative errno. */
int table_print(struct table *t);
bool table_is_empty(const struct table *t);
