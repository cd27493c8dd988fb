/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/redis-clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/place.h"

static char clock_path[64];

void redis_clock_own(void) {
    char library[512];
    int fd;

    snprintf(clock_path, sizeof(clock_path), "/tmp/berth-clock-XXXXXX");
    fd = mkstemp(clock_path);
    if (fd < 0 || close(fd) < 0 || !redis_clock_set(0))
        abort();
    (void) setenv("REDIS_CLOCK_OFFSET", clock_path, 1);
    (void) setenv("REDIS_PRELOAD", place_program(library, sizeof(library), "tests/preload/clock-step.so"), 1);
}

bool redis_clock_set(long long usec) {
    _cleanup_close_ int fd = clock_path[0] ? open(clock_path, O_WRONLY | O_CLOEXEC) : -1;
    char text[32];
    int n = snprintf(text, sizeof(text), "%-20lld", usec);

    return fd >= 0 && pwrite(fd, text, (size_t) n, 0) == n;
}

void redis_clock_done(void) {
    if (clock_path[0])
        (void) unlink(clock_path);
    clock_path[0] = '\0';
}
