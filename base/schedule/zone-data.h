/* SPDX-License-Identifier: MIT */
#pragma once

/* The data of a zone; for zone*.c alone. */

#include <stddef.h>
#include <sys/stat.h>

#include "base/schedule/zone.h"

#define ZONE_TIME_MAX (INT64_C(1) << 55) /* s: changes beyond it, before or after 1970, are ignored */
#define ZONE_YEAR_FIRST 1900             /* in which a rule begins without transitions, or with only earlier ones */
#define ZONE_TIME_FIRST INT64_C(-2208988800) /* the first second of that year */
#define ZONE_YEAR_LAST 2400

struct zone_change {
    int64_t at;
    int32_t offset; /* from here on */
};

struct zone {
    int32_t first_offset;        /* before the first change */
    struct zone_change *changes; /* by time; each to another offset */
    size_t n_changes;
    char *path;      /* NULL: the zone has no file */
    bool is_missing; /* there was no file */
    struct stat file;
};

/* Adds a change later than all others; does nothing if the offset stays. 0, ZONE_E_INVALID or -ENOMEM. */
int zone_add_change(struct zone *zone, int64_t at, int32_t offset);

/* Adds the changes later than `after` of the rule in the footer of a TZif file, which has the form of POSIX's TZ (RFC 9636,
 * 3.3.1). text: NUL-terminated, not empty. is_all: the zone has no transitions, and the rule holds for all times. 0,
 * ZONE_E_INVALID or -ENOMEM. */
int zone_add_rule(struct zone *zone, const char *text, int64_t after, bool is_all);
