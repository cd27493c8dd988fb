/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/clock.h"

/* Parses "250ms", "30s", "10m", "2h", "1d", "1h30m": one or more numbers, each with its unit, largest unit
 * first, each unit at most once; "0" needs a unit as well. 0, -EINVAL (not of this form) or -ERANGE (above
 * 10 years). */
int duration_parse(const char *text, usec_t *ret_usec);

/* Formats the shortest text that duration_parse() reads back to the same number of milliseconds ("1h30m").
 * µs below a millisecond are dropped; USEC_INFINITY is "never". */
#define DURATION_TEXT_SIZE 48
const char *duration_format(usec_t usec, char buffer[static DURATION_TEXT_SIZE]);
