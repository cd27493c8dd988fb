/* SPDX-License-Identifier: MIT */
#pragma once

/* A table for people; the only user of libsmartcols. Colours are used only on a terminal without NO_COLOR
 * (no-color.org), and all are readable on white and on black. Unprintable characters are
 * escaped, so that no name can control the terminal. */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct table;

enum table_colour { TABLE_PLAIN, TABLE_GOOD, TABLE_NOTICE, TABLE_BAD };

#define TABLE_IF_EMPTY 255 /* as `drop`: left out only if it is empty */

struct table_column {
    const char *name;
    bool right;          /* numbers */
    unsigned char drop;   /* its turn to be left out on a narrow terminal; empty columns go first; 0: never */
    unsigned char digits; /* of an id: how many are shown there; 0: not an id */
};

/* `columns` must outlive the table. Negative errno. */
int table_new(struct table **ret, const struct table_column *columns, size_t n);
struct table *table_free(struct table *t);
DEFINE_CLEANUP(struct table, table_free)
/* Begin a line; add its next cell. Text is copied; "" is shown as "-". table_print() reports failures. */
void table_line(struct table *t);
void table_cell(struct table *t, enum table_colour colour, const char *format, ...) _printf_(3, 4);
/* Prints to standard output. If the lines are too wide for a terminal, ids become shorter, columns are left
 * out, and the longest texts are cut. Negative errno. */
int table_print(struct table *t);
bool table_is_empty(const struct table *t);
/* Sets the character set from the environment. Returns whether it is UTF-8. */
bool table_has_utf8(void);
/* Returns the columns of the terminal that is standard output; SIZE_MAX: lines may have any width. */
size_t table_terminal_width(void);
