/* SPDX-License-Identifier: MIT */

/* span FILE USEC: a command that lasts this long and notes in FILE (tests/bench/span.h) when it began and
 * ended. It reads the clock first and notes the end last. Linked statically, because that starts fastest. */

#include "tests/bench/span.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

int main(int argc, char **argv) {
    uint64_t began = now();
    int fd = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    struct spans *spans = mmap(NULL, sizeof(*spans), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const struct timespec time = {.tv_nsec = argc == 3 ? atol(argv[2]) * 1000 : 0};
    uint32_t i;

    if (spans == MAP_FAILED)
        return 1;
    i = atomic_fetch_add(&spans->n, 1);
    if (i >= SPANS_MAX)
        return 1;
    spans->of[i].began = began;
    (void) clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    spans->of[i].ended = now();
    _exit(0);
}
