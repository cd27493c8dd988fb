/* SPDX-License-Identifier: MIT */
#pragma once

/* Describes a process that does not end, for operators. */

#include <sys/types.h>

#include "base/clock.h"

#define PROCESS_TEXT_SIZE 160
#define PROCESS_OF_OTHERS "of another user: kill it as root" /* stands in the text if this process may not kill that one */
/* From the first kill of a run's processes to the report that one of them does not end, and from one report to the next. The check
 * may come one pause between two kills later. */
#define PROCESS_STUCK_AFTER (10 * USEC_PER_SEC)
#define PROCESS_STUCK_AGAIN (3600 * USEC_PER_SEC)

/* Writes printable ASCII: "process 4711 (cp), state D in nfs_wait_bit_killable", or "process 4711 (cp), state Z, traced by
 * process 17". "": there is no such process. Facts that this process may not see are left out. */
void process_describe(pid_t pid, char text[static PROCESS_TEXT_SIZE]);
