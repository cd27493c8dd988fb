/* SPDX-License-Identifier: MIT */
#pragma once

/* What an operator wants to know of a process that does not end. */

#include <sys/types.h>

#define PROCESS_TEXT_SIZE 160

/* Describes a process in printable ASCII: "process 4711 (cp), state D in nfs_wait_bit_killable", or "process 4711 (cp), state Z, traced
 * by process 17". "": there is no such process. What this process may not see is left out. */
void process_describe(pid_t pid, char text[static PROCESS_TEXT_SIZE]);
