/* SPDX-License-Identifier: MIT */
#pragma once

/* Times as people give them to --since and --until. */

#include "base/clock.h"

/* "2026-11-20T11:00:00[.5]Z" or with +01:00 (RFC 3339), "2026-11-20 11:00[:30]" (local time), "-2h" or "-1h30m" (so long before now).
 * µs since 1970. 0 or -EINVAL. */
int when_parse(const char *text, usec_t now, usec_t *ret_realtime);
