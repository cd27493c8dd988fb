/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds the processes of runs that nobody supervises any more, by BERTH_RUN in the environment with which they were
 * started. It does not find a process that clears its environment. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct environ_run {
    const char *run;  /* its id */
    uint64_t token;   /* only processes with this BERTH_TOKEN; 0: all of the run */
    unsigned n_found; /* result: its processes, but this one */
    pid_t found;      /* result: one of them; 0: none */
};

/* Sends SIGKILL to the processes of all these runs, and to their descendants. Processes whose environment cannot be read are
 * skipped. Returns 0, or a negative errno: some processes could not be checked now. */
int process_environ_kill(struct environ_run *runs, size_t n);
/* Returns one of the processes of a run; 0: none was found, or a negative errno. */
pid_t process_environ_find(const char *run);
