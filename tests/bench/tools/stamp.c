/* SPDX-License-Identifier: MIT */

/* A command that writes its first instant, CLOCK_BOOTTIME in ns: as 8 bytes to standard output, or as a line
 * "BEGAN ENDED" appended to a file. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void) {
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

int main(int argc, char **argv) {
    uint64_t began = now();
    char line[64];
    int fd, length;

    if (argc < 2)
        return write(1, &began, sizeof(began)) != sizeof(began);
    fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    length = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 "\n", began, now());
    return fd < 0 || write(fd, line, (size_t) length) != length;
}
