/* SPDX-License-Identifier: MIT */
#include "base/failpoint.h"

#ifdef BERTH_FAILPOINTS

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct failpoint_trace *open_trace(void) {
    const char *path = getenv("FAILPOINT_TRACE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *trace = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct failpoint_trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        (void) close(fd);
    return trace == MAP_FAILED ? NULL : trace;
}

static void note(const char *name) {
    static struct failpoint_trace *trace;
    static bool is_open;
    struct timespec now;
    uint32_t i;

    if (!is_open)
        trace = open_trace();
    is_open = true;
    i = trace ? atomic_fetch_add(&trace->n, 1) : FAILPOINT_TRACE_MAX;
    if (i >= FAILPOINT_TRACE_MAX)
        return;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    (void) snprintf(trace->of[i].name, sizeof(trace->of[i].name), "%s", name);
    trace->of[i].at = (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

void failpoint(const char *name) {
    const char *wanted = getenv("FAILPOINT");
    struct timespec hang = {.tv_sec = 3, .tv_nsec = 500000000};
    char step[64], action[16], file[256];

    note(name);
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
