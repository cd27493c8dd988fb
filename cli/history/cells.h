/* SPDX-License-Identifier: MIT */
#pragma once

/* Bars of one character each, in UTF-8 if the locale allows it, else ASCII. */

#include <stdbool.h>
#include <stddef.h>

#define CELL_SIZE 3 /* bytes of a bar at most */

/* Appends a bar to text: a space for 0, the lowest bar for more than 0, the full bar for `highest` and more.
 * Returns the new end, which is terminated. */
char *cells_add(char *end, double value, double highest, bool utf8);
/* Formats a span of time as the name of a column: "24H", "7D", "90M"; two units at most. */
#define CELLS_SPAN_SIZE 32
const char *cells_span(unsigned long long msec, char buffer[static CELLS_SPAN_SIZE]);
