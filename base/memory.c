/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

void memory_exit(const char *what) {
    (void) dprintf(STDERR_FILENO, SD_CRIT "out of memory for %s, exiting: the next start continues from the records\n", what);
    _exit(70);
}
