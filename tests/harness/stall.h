/* SPDX-License-Identifier: MIT */
#pragma once

/* Detects that the machine itself stands still: on each processor a process that wants to run every 5 ms
 * notes when it could not for long. A lease of 2 s has a margin of half a second; a guard that does not run
 * for as long proves nothing (R8). */

#include <stdbool.h>

#include "base/clock.h"

#define STALL_NOTED (50 * USEC_PER_MSEC) /* shorter ones are not noted */

void stall_start(void);
/* Returns the longest stall that overlaps these two times (boottime), also one that has only just ended. */
usec_t stall_between(usec_t from, usec_t until);
/* Returns whether the machine has stood still for longer than that since then, and prints it. For checks of what a guard does in time:
 * berth-runner kills 250 ms before the end of a lease what its guard, 600 ms before, did not (R8). */
#define STALL_BEARABLE (200 * USEC_PER_MSEC)
bool stall_excuses(usec_t since);
void stall_stop(void); /* idempotent */
