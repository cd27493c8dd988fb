/* SPDX-License-Identifier: MIT */
#include "base/failpoint.h"

#ifdef BERTH_FAILPOINTS

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t monotonic(void) {
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

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
    uint32_t i;

    if (!is_open)
        trace = open_trace();
    is_open = true;
    i = trace ? atomic_fetch_add(&trace->n, 1) : FAILPOINT_TRACE_MAX;
    if (i >= FAILPOINT_TRACE_MAX)
        return;
    (void) snprintf(trace->of[i].name, sizeof(trace->of[i].name), "%s", name);
    trace->of[i].at = monotonic();
}

/* --- a machine without memory --- */

/* Until then each allocation and each fork of this process fails; ns on CLOCK_MONOTONIC. */
static _Atomic uint64_t starved_until;

static bool is_starved(void) {
    uint64_t until = atomic_load_explicit(&starved_until, memory_order_relaxed);

    if (until == 0 || monotonic() >= until)
        return false;
    errno = ENOMEM;
    return true;
}

/* Those of glibc, which calls ours for its own memory, too. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
pid_t __fork(void);

void *malloc(size_t size) {
    return is_starved() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    return is_starved() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size) {
    return is_starved() ? NULL : __libc_realloc(memory, size);
}

pid_t fork(void) {
    return is_starved() ? -1 : __fork();
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
    if (strcmp(action, "starve") == 0) {
        atomic_store(&starved_until, monotonic() + 1000000000);
        return;
    }
    while (nanosleep(&hang, &hang) < 0)
        ;
}

#else

extern const char failpoint_none;

#endif
