/* SPDX-License-Identifier: MIT */

/* Preloaded into redis-server: its wall clock is off by the µs in the file that REDIS_CLOCK_OFFSET names, as
 * soon as the file changes. TIME, expiry and scripts use that clock. The monotonic clock is left alone. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int gettimeofday(struct timeval *restrict tv, void *restrict zone);

static long long read_offset(void) {
    static int fd = -2;
    char text[32];
    ssize_t n;

    if (fd == -2) {
        const char *path = getenv("REDIS_CLOCK_OFFSET");

        fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    }
    n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return strtoll(text, NULL, 10);
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    struct timespec now;
    long long usec;

    (void) zone;
    if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &now) < 0)
        return -1;
    usec = (long long) now.tv_sec * 1000000 + now.tv_nsec / 1000 + read_offset();
    tv->tv_sec = (time_t) (usec / 1000000);
    tv->tv_usec = (suseconds_t) (usec % 1000000);
    return 0;
}
