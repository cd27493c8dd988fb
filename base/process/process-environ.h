/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds the processes of a run that nobody supervises any more, by BERTH_RUN in the environment with which they were
 * started. It does not find a process that clears its environment. */

#include <sys/types.h>

/* Sends SIGKILL to all other processes that were started with exactly this "NAME=value" in their environment (also: NULL, or a
 * second one), and to their descendants. Processes whose environment cannot be read are skipped. Returns how many have it, or a
 * negative errno, also if some processes could not be checked now. */
int process_environ_kill(const char *assignment, const char *also);
/* Returns one of these processes; 0: none was found, or a negative errno. */
pid_t process_environ_find(const char *assignment);
