/* SPDX-License-Identifier: MIT */
#pragma once

/* Detects that the machine itself stands still: on each processor a process that wants to run every 5 ms
 * notes when it could not for long. A lease of 2 s has a margin of half a second; a guard that does not run
 * for as long proves nothing (R8). */

#include "base/clock.h"

#define STALL_NOTED (50 * USEC_PER_MSEC) /* shorter ones are not noted */

void stall_start(void);
/* Returns the longest stall that overlaps these two times (boottime). */
usec_t stall_between(usec_t from, usec_t until);
void stall_stop(void); /* idempotent */
