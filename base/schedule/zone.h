/* SPDX-License-Identifier: MIT */
#pragma once

/* Time zones: TZif files (RFC 9636) read into memory. Times are seconds since 1970 UTC. glibc has no call
 * that takes a zone, and none that returns the transitions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define ZONE_DIRECTORY "/usr/share/zoneinfo"
#define ZONE_NAME_MAX 64
#define ZONE_FILE_MAX 65536
#define ZONE_TRANSITIONS_MAX 2000
#define ZONE_OFFSET_MAX (26 * 3600) /* s, east or west; RFC 9636, 3.2 advises against more */
#define ZONE_CHANGES_APART 3600     /* s between two transitions at least; real zones have four days */

struct zone;

/* Named answers. */
enum {
    ZONE_E_UNKNOWN = 1, /* no such file, or a name that is none */
    ZONE_E_INVALID,     /* no TZif file of version 2 or later, or one beyond the bounds above */
    ZONE_E_LEAP,        /* counts leap seconds */
};

/* Returns whether a name can be that of a zone: 1 to ZONE_NAME_MAX of A-Z a-z 0-9 / _ + -, no '/' first. */
bool zone_name_is_valid(const char *name);
/* Parses a file in memory. 0, a named answer, -ENOMEM. */
int zone_parse(const void *data, size_t size, struct zone **ret);
/* Loads a file of `directory`. name: "local": /etc/localtime, or UTC without that file; "UTC": no file is read. 0, a named
 * answer, -ENOMEM, or another negative errno. */
int zone_load(const char *directory, const char *name, struct zone **ret);
struct zone *zone_free(struct zone *zone);
DEFINE_CLEANUP(struct zone, zone_free)
/* Writes an error text for the answer of zone_load(): "is not in /usr/share/zoneinfo; did you mean "Europe/Berlin"?".
 * Reads the names of all zones. */
#define ZONE_EXPLAIN_SIZE 256
const char *zone_explain(const char *directory, const char *name, int answer, char buffer[static ZONE_EXPLAIN_SIZE]);

/* Returns whether the file has changed since the zone was loaded (device, inode, size, mtime), or is gone. */
bool zone_has_changed(const struct zone *zone);

/* Returns the seconds to add to UTC at t. */
int32_t zone_offset(const struct zone *zone, int64_t t);
/* Returns the first instant later than t at which the offset changes; INT64_MAX: none. */
int64_t zone_transition_after(const struct zone *zone, int64_t t);
/* Returns the last such instant that is not later than t; INT64_MIN: none. */
int64_t zone_transition_before(const struct zone *zone, int64_t t);
