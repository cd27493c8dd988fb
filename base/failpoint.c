/* SPDX-License-Identifier: MIT */
#include "base/failpoint.h"

#ifdef BERTH_FAILPOINTS

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void failpoint(const char *name) {
    const char *wanted = getenv("FAILPOINT");
    struct timespec hang = {.tv_sec = 3, .tv_nsec = 500000000};
    char step[64], action[16], file[256];

    if (!wanted || sscanf(wanted, "%63s %15s %255s", step, action, file) != 3 || strcmp(step, name) != 0 || unlink(file) < 0)
        return;
    if (strcmp(action, "crash") == 0)
        (void) raise(SIGKILL);
    while (nanosleep(&hang, &hang) < 0)
        ;
}

#else

extern const char failpoint_none;

#endif
