/* SPDX-License-Identifier: MIT */
#pragma once

/* What a zone is made of; for zone*.c alone. */

#include <stddef.h>
#include <sys/stat.h>

#include "base/schedule/zone.h"

#define ZONE_TIME_MAX (INT64_C(1) << 55) /* s: a change before or after does not occur */
#define ZONE_YEAR_FIRST 1900             /* of a rule with no transitions, or only earlier ones, before it */
#define ZONE_TIME_FIRST INT64_C(-2208988800) /* its first second */
#define ZONE_YEAR_LAST 2400

struct zone_change {
    int64_t at;
    int32_t offset; /* from here on */
};

struct zone {
    int32_t first_offset;        /* before the first change */
    struct zone_change *changes; /* by time; each to another offset */
    size_t n_changes;
    char *path;      /* NULL: of no file */
    bool is_missing; /* the file was not there */
    struct stat file;
};

/* Adds a change later than all others; nothing if the offset stays. 0, ZONE_E_INVALID or -ENOMEM. */
int zone_add_change(struct zone *zone, int64_t at, int32_t offset);

/* The rule in the footer of a TZif file, in the form of POSIX's TZ (RFC 9636, 3.3.1). text: NUL-terminated,
 * not empty. Adds its changes later than `after` to the zone. is_all: the zone has no transitions, and the
 * rule holds for all times. 0, ZONE_E_INVALID or -ENOMEM. */
int zone_add_rule(struct zone *zone, const char *text, int64_t after, bool is_all);
