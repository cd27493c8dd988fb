/* SPDX-License-Identifier: MIT */
#pragma once

/* A table for people; the only user of libsmartcols. Colours are used only on a terminal without NO_COLOR
 * (no-color.org), and no greys, which are unreadable on some backgrounds. Unprintable characters are
 * escaped, so that no name can control the terminal. */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct table;

enum table_colour { TABLE_PLAIN, TABLE_GOOD, TABLE_NOTICE, TABLE_BAD };

struct table_column {
    const char *name;
    bool right;          /* numbers */
    unsigned char drop;  /* on a terminal that is too narrow the column is left out, 1 first; empty ones before all; 0: never */
    unsigned char digits; /* an id, of which these first ones do there; 0: it is none */
};

/* `columns` must outlive the table. Negative errno. */
int table_new(struct table **ret, const struct table_column *columns, size_t n);
struct table *table_free(struct table *t);
DEFINE_CLEANUP(struct table, table_free)
/* Begin a line, and add one cell after the other. Text is copied; "" is shown as "-". table_print() reports
 * failures. */
void table_line(struct table *t);
void table_cell(struct table *t, enum table_colour colour, const char *format, ...) _printf_(3, 4);
/* Prints to standard output: in full, but for a terminal on which the lines would be broken. There ids become
 * shorter and columns are left out, and what is still too wide is cut. Negative errno. */
int table_print(struct table *t);
bool table_is_empty(const struct table *t);
