/* SPDX-License-Identifier: MIT */
#pragma once

/* Dates of the Gregorian calendar as numbers. No zone, no clock, no struct tm. */

#include <stdbool.h>
#include <stdint.h>

struct civil {
    int64_t year;
    unsigned month, day;                  /* 1 to 12, 1 to 31 */
    unsigned hour, minute, second;
};

/* Days since 1970-01-01; negative before. The date must exist. */
int64_t civil_to_days(int64_t year, unsigned month, unsigned day);
/* local: seconds since 1970-01-01 00:00 of the same clock. */
void civil_from_seconds(int64_t local, struct civil *ret);
int64_t civil_to_seconds(const struct civil *civil);
unsigned civil_month_length(int64_t year, unsigned month);
