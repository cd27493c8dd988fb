/* SPDX-License-Identifier: MIT */
#pragma once

/* Five cron fields as bit sets. Syntax and meaning: berth-schedule(7). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/schedule/civil.h"

#define CRON_ERROR_SIZE 256

struct cron {
    uint64_t minutes;           /* bit n: minute n */
    uint32_t hours;
    uint32_t days;              /* bits 1 to 31 */
    uint32_t last_days;         /* bit n: n days before the last of the month; 0: L itself */
    uint16_t months;            /* bits 1 to 12 */
    uint8_t weekdays;           /* bits 0 (Sunday) to 6 */
    uint8_t last_weekdays;      /* the last such weekday of the month */
    uint8_t nth_weekdays[5];    /* the first to fifth such weekday of the month */
    bool needs_both;            /* "+": day of month and weekday must both match */
};

/* Parses five fields, or a word such as @daily. 0, or -EINVAL with an error text that has what to write instead, and not the
 * wrong text. */
int cron_parse(const char *text, struct cron *ret, char error[static CRON_ERROR_SIZE]);
/* Returns whether all 24 hours match: then due times follow real time instead of the time of day. */
bool cron_is_every_hour(const struct cron *cron);
bool cron_matches(const struct cron *cron, const struct civil *time); /* date, hour and minute */
