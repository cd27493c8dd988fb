/* SPDX-License-Identifier: MIT */
#pragma once

/* The memory of a process, as the kernel counts it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* The next peak (VmHWM) begins with what the process has now. */
static inline void memory_reset_peak(pid_t pid) {
    char path[64];
    FILE *f;

    (void) snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int) pid);
    f = fopen(path, "we");
    if (!f || fputs("5", f) < 0 || fclose(f) != 0)
        abort();
}

/* Returns the value of "VmRSS", or of "VmHWM" (the peak), in KiB. 0: the process has ended. */
static inline unsigned long memory_kib(pid_t pid, const char *name) {
    char path[64], line[256];
    unsigned long kib = 0;
    FILE *f;

    (void) snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            kib = strtoul(line + strlen(name) + 1, NULL, 10);
    if (f)
        (void) fclose(f);
    return kib;
}
