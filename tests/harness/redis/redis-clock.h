/* SPDX-License-Identifier: MIT */
#pragma once

/* A wall clock of the redis-servers that this program starts (tests/preload/clock-step.c), set by the test.
 * TIME and scripts see it. */

#include <stdbool.h>

/* Each redis-server started from now on has this clock. It is right at first. Aborts if that cannot be done. */
void redis_clock_own(void);
/* Sets the clock off by this many µs. Returns whether that worked; false without a private clock. */
bool redis_clock_set(long long usec);
/* Removes the file. Servers that still run go on with the last offset. Harmless if none was made. */
void redis_clock_done(void);
