/* SPDX-License-Identifier: MIT */
#pragma once

/* Times as people give them to --since and --until, in the forms that journalctl(1) takes (systemd.time(7)). */

#include <stdbool.h>

#include "base/clock.h"

/* Accepts, in local time unless a zone is given:
 *     now, today, yesterday, tomorrow                       the last three: at 00:00
 *     2026-11-20, "2026-11-20 14:00[:30[.5]]", 14:00[:30]   a time alone is one of today; 'T' may stand for the space
 *     ... UTC                                               after any of these; after a time also Z or +01:00
 *     @1763640000[.5]                                       seconds since 1970
 *     -2h, +1h30m, "2 hours ago", "1 week 2 days ago"       before or after now
 * A local time that exists twice, because clocks were turned back, is the first of the two. A time that was
 * skipped, because clocks were turned forward, counts from before the change: 02:30 is then 03:30.
 * Stores µs since 1970. Returns 0 or -EINVAL. */
int when_parse(const char *text, usec_t now, usec_t *ret_realtime);

/* Formats a time so that when_parse() can read it: "2026-11-20 14:00:30" in local time, or
 * "2026-11-20T13:00:30Z". */
#define WHEN_TEXT_SIZE 32
const char *when_format(usec_t realtime, bool utc, char buffer[static WHEN_TEXT_SIZE]);
/* Formats a time for lines of a log: "2026-11-20T14:00:30.123456+01:00", or "...Z". */
const char *when_format_exactly(usec_t realtime, bool utc, char buffer[static 2 * WHEN_TEXT_SIZE]);
