/* SPDX-License-Identifier: MIT */
#include "tests/harness/host-clock.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/clock-file.h"

#define CLOCKS_MAX 8

static struct clocks {
    const struct host *host;
    struct clock_file file;
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

    for (size_t i = 0; i < cluster.n_hosts; i++)
        if (cluster.hosts[i] == h)
            c = &all[i];
    snprintf(path, sizeof(path), "%s/%s.clock", cluster.folder, h->name);
    c->host = h;
    clock_file_done(&c->file);
    clock_file_make(&c->file, path);
    h->environment = c->file.environment;
}

void host_clock_jump(struct host *h, usec_t usec) {
    clock_file_jump(&clocks_of(h)->file, usec);
}

void host_clock_step(struct host *h, int64_t usec) {
    clock_file_step(&clocks_of(h)->file, usec);
}
