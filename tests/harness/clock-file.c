/* SPDX-License-Identifier: MIT */
#include "tests/harness/clock-file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness/place.h"

#define PASSED "TEST_OWN_CLOCK" /* the descriptor */
enum { BOOT, REAL, STANDS, EFFECTS, LOST, WORDS }; /* as in tests/preload/host-clock.c */

struct clock_file own_clock;

static void put_environment(struct clock_file *c, const char *path) {
    char library[256];

    if (access(place_program(library, sizeof(library), "tests/preload/host-clock.so"), R_OK) < 0)
        abort(); /* otherwise the linker continues without it */
    snprintf(c->file, sizeof(c->file), "HOST_CLOCK=%s", path);
    snprintf(c->library, sizeof(c->library), "LD_PRELOAD=%s", library);
    /* A sanitizer must be first, except before this library, which calls the kernel alone. */
    snprintf(c->sanitizer, sizeof(c->sanitizer), "ASAN_OPTIONS=verify_asan_link_order=0:%s",
             getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "");
    c->environment[0] = c->file;
    c->environment[1] = c->library;
    c->environment[2] = c->sanitizer;
}

/* Takes fd. */
static void map(struct clock_file *c, int fd) {
    c->words = fd < 0 ? MAP_FAILED : mmap(NULL, WORDS * sizeof(*c->words), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (c->words == MAP_FAILED)
        abort();
    (void) close(fd);
}

void clock_file_make(struct clock_file *c, const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    *c = (struct clock_file) {0};
    if (fd < 0 || ftruncate(fd, WORDS * sizeof(*c->words)) < 0 || fchmod(fd, 0666) < 0)
        abort();
    map(c, fd);
    put_environment(c, path);
}

void clock_file_done(struct clock_file *c) {
    if (c->words)
        (void) munmap(c->words, WORDS * sizeof(*c->words));
    *c = (struct clock_file) {0};
}

void clock_file_jump(struct clock_file *c, usec_t usec) {
    atomic_fetch_add(&c->words[BOOT], (int64_t) usec);
}

void clock_file_step(struct clock_file *c, int64_t usec) {
    atomic_store(&c->words[REAL], usec);
}

void clock_file_end_berthd(struct clock_file *c, unsigned effects) {
    atomic_store(&c->words[EFFECTS], effects);
}

unsigned clock_file_effects(const struct clock_file *c) {
    return (unsigned) atomic_load(&c->words[EFFECTS]);
}

void clock_file_stall_disk(struct clock_file *c, bool is_stalled) {
    atomic_store(&c->words[EFFECTS], is_stalled ? -1 : 0);
}

void clock_file_lose_kills(struct clock_file *c, bool are_lost) {
    atomic_store(&c->words[LOST], are_lost);
}

void clock_file_stand(struct clock_file *c, usec_t boottime) {
    atomic_store(&c->words[STANDS], (int64_t) boottime);
}

void clock_file_go_on(struct clock_file *c) {
    struct timespec now; /* true, whatever this program's own clock is */

    if (syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now) < 0)
        abort();
    atomic_store(&c->words[BOOT], atomic_load(&c->words[STANDS]) - ((int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000));
    atomic_store(&c->words[STANDS], 0);
}

void clock_file_own(char **argv) {
    const char *passed = getenv(PASSED);
    char path[32], number[16];
    int fd;

    if (passed) {
        map(&own_clock, (int) strtol(passed, NULL, 10));
        (void) unsetenv(PASSED);
        (void) unsetenv("HOST_CLOCK");
        (void) unsetenv("LD_PRELOAD");
        (void) place_programs(); /* removed at the end of this program */
        return;
    }
    fd = memfd_create("clock", 0); /* goes through the exec */
    if (fd < 0 || ftruncate(fd, WORDS * sizeof(*own_clock.words)) < 0)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(number, sizeof(number), "%d", fd);
    put_environment(&own_clock, path);
    for (char **e = own_clock.environment; *e; e++)
        (void) putenv(*e);
    (void) setenv(PASSED, number, 1);
    place_keep_over_exec();
    (void) execv("/proc/self/exe", argv);
    abort();
}
