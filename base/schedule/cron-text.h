/* SPDX-License-Identifier: MIT */
#pragma once

/* One field of a cron entry as text; for cron*.c alone. */

#include "base/schedule/cron.h"

struct cron_field {
    const char *name;         /* "hour" */
    const char *plural;       /* "hours" */
    const char *whole;        /* "day has hours", for an error about too long a step */
    unsigned min, max;        /* as shown in errors; a weekday may also be 7 */
    const char *const *words; /* for `min` and the following values, or NULL */
};

enum { CRON_MINUTE, CRON_HOUR, CRON_DAY, CRON_MONTH, CRON_WEEKDAY, CRON_FIELDS };

/* Sets the field's bits. text: without the "+" before a weekday. Returns false with an error. *ret_step: the first item
 * of the form *\/n in `text`, or NULL if no item has this form or it has all values. */
bool cron_read_field(int field, const char *text, struct cron *cron, const char **ret_step,
                     char error[static CRON_ERROR_SIZE]);
/* Bit n: day n of the month matches. 0: none, or the month does not. */
uint32_t cron_days(const struct cron *cron, int64_t year, unsigned month);
