/* SPDX-License-Identifier: MIT */
#pragma once

/* Bars of one character each: UTF-8 where the locale is, else ASCII. */

#include <stdbool.h>
#include <stddef.h>

#define CELL_SIZE 3 /* bytes of one at most */

/* Takes the locale of the environment for characters. Returns whether it is UTF-8. */
bool cells_use_locale(void);
/* Appends a bar to text: a space for 0, the lowest bar for more than 0, the highest for `highest` and more.
 * Returns the new end, which is terminated. */
char *cells_add(char *end, double value, double highest, bool utf8);
/* The span of time as the name of a column: "24H", "7D", "90M"; two units at most. */
#define CELLS_SPAN_SIZE 32
const char *cells_span(unsigned long long msec, char buffer[static CELLS_SPAN_SIZE]);
