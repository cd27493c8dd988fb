/* SPDX-License-Identifier: MIT */
#pragma once

/* How long a process was ready to run and got no processor, as the kernel counts it. */

#include <inttypes.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/clock.h"

/* Returns the sum since the process began; 0: it has ended. */
static inline usec_t run_delay(pid_t pid) {
    char path[64];
    uint64_t ns = 0;
    FILE *f;

    (void) snprintf(path, sizeof(path), "/proc/%d/schedstat", (int) pid);
    f = fopen(path, "re");
    if (f && fscanf(f, "%*u %" SCNu64, &ns) != 1)
        ns = 0;
    if (f)
        (void) fclose(f);
    return ns / 1000;
}
