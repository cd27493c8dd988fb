/* SPDX-License-Identifier: MIT */
#include "tests/harness/host-clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLOCKS_MAX 8

static struct clocks {
    const struct host *host;
    _Atomic int64_t *offsets; /* of CLOCK_BOOTTIME and CLOCK_REALTIME, shared with the host's programs */
    char file[96], library[320], sanitizer[256];
    char *environment[4];
} all[CLOCKS_MAX];

static struct clocks *clocks_of(const struct host *h) {
    for (size_t i = 0; i < CLOCKS_MAX; i++)
        if (all[i].host == h)
            return &all[i];
    abort();
}

void host_clock_give(struct host *h) {
    struct clocks *c = &all[0];
    char path[80];
    int fd;

    for (size_t i = 0; i < cluster.n_hosts; i++)
        if (cluster.hosts[i] == h)
            c = &all[i];
    snprintf(path, sizeof(path), "%s/%s.clock", cluster.folder, h->name);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, 2 * sizeof(*c->offsets)) < 0)
        abort();
    c->host = h;
    c->offsets = mmap(NULL, 2 * sizeof(*c->offsets), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (c->offsets == MAP_FAILED)
        abort();
    (void) close(fd);
    snprintf(c->file, sizeof(c->file), "HOST_CLOCK=%s", path);
    snprintf(c->library, sizeof(c->library), "LD_PRELOAD=%s/tests/preload/host-clock.so", cluster.build);
    /* A sanitizer wants to come first; this library calls the kernel alone, so it need not. */
    snprintf(c->sanitizer, sizeof(c->sanitizer), "ASAN_OPTIONS=verify_asan_link_order=0:%s",
             getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "");
    c->environment[0] = c->file;
    c->environment[1] = c->library;
    c->environment[2] = c->sanitizer;
    h->environment = c->environment;
}

void host_clock_jump(struct host *h, usec_t usec) {
    atomic_fetch_add(&clocks_of(h)->offsets[0], (int64_t) usec);
}

void host_clock_step(struct host *h, int64_t usec) {
    atomic_store(&clocks_of(h)->offsets[1], usec);
}
