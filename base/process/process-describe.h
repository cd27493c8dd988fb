/* SPDX-License-Identifier: MIT */
#pragma once

/* Describes a process that does not end, for operators. */

#include <sys/types.h>

#define PROCESS_TEXT_SIZE 160

/* Writes printable ASCII: "process 4711 (cp), state D in nfs_wait_bit_killable", or "process 4711 (cp), state Z, traced by
 * process 17". "": there is no such process. Facts that this process may not see are left out. */
void process_describe(pid_t pid, char text[static PROCESS_TEXT_SIZE]);
