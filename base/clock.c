/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static usec_t clock_read(clockid_t id) {
    struct timespec ts;

    /* Cannot fail for these two clocks on any Linux that berth runs on (clock_gettime(2)). */
    (void) clock_gettime(id, &ts);
    return (usec_t) ts.tv_sec * USEC_PER_SEC + (usec_t) ts.tv_nsec / 1000;
}

usec_t clock_boottime(void) {
    return clock_read(CLOCK_BOOTTIME);
}

usec_t clock_monotonic(void) {
    return clock_read(CLOCK_MONOTONIC);
}

usec_t clock_realtime(void) {
    return clock_read(CLOCK_REALTIME);
}

void clock_namespace(char name[static CLOCK_NAMESPACE_SIZE]) {
    ssize_t n = readlink("/proc/self/ns/time", name, CLOCK_NAMESPACE_SIZE - 1);

    name[n < 0 ? 0 : n] = '\0';
}

usec_t usec_add(usec_t a, usec_t b) {
    return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

usec_t usec_sub(usec_t a, usec_t b) {
    if (a == USEC_INFINITY)
        return b == USEC_INFINITY ? 0 : USEC_INFINITY;
    return a > b ? a - b : 0;
}

const char *clock_format(usec_t realtime_usec, char buffer[static CLOCK_TEXT_SIZE]) {
    time_t seconds = (time_t) (realtime_usec / USEC_PER_SEC);
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900) {
        buffer[0] = '\0';
        return buffer;
    }
    size_t n = strftime(buffer, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buffer + n, CLOCK_TEXT_SIZE - n, ".%06uZ", (unsigned) (realtime_usec % USEC_PER_SEC));
    return buffer;
}
