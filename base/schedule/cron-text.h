/* SPDX-License-Identifier: MIT */
#pragma once

/* One field of a cron entry as text; for cron*.c alone. */

#include "base/schedule/cron.h"

struct cron_field {
    const char *name;         /* "hour" */
    const char *plural;       /* "hours" */
    const char *whole;        /* "day has hours": of what 24 are all */
    unsigned min, max;        /* values that are shown; a weekday may be 7, too */
    const char *const *words; /* of `min` and the next ones, or NULL */
};

enum { CRON_MINUTE, CRON_HOUR, CRON_DAY, CRON_MONTH, CRON_WEEKDAY, CRON_FIELDS };
extern const struct cron_field cron_fields[CRON_FIELDS];

/* Sets the field's bits. text: without the "+" before a weekday. False: error is set. *ret_step: the first
 * item of the form *\/n, in `text`; NULL if there is none, or if it has all values. */
bool cron_read_field(int field, const char *text, struct cron *cron, const char **ret_step,
                     char error[static CRON_ERROR_SIZE]);
/* Whether the values are not all that there are. */
bool cron_restricts_days(const struct cron *cron);
bool cron_restricts_weekdays(const struct cron *cron);
/* Bit n: day n of the month matches. 0: none, or the month does not. */
uint32_t cron_days(const struct cron *cron, int64_t year, unsigned month);
