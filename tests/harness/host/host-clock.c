/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/host-clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/schedule/schedule.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/test.h"
#include "tests/harness/tzif.h"

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

void host_clock_end_berthd(struct host *h, unsigned effects) {
    clock_file_end_berthd(&clocks_of(h)->file, effects);
}

unsigned host_clock_effects(struct host *h) {
    return clock_file_effects(&clocks_of(h)->file);
}

void host_clock_stall_disk(struct host *h, bool is_stalled) {
    clock_file_stall_disk(&clocks_of(h)->file, is_stalled);
}

void host_clock_lose_kills(struct host *h, bool are_lost) {
    clock_file_lose_kills(&clocks_of(h)->file, are_lost);
}

void host_clock_set_realtime(struct host *h, usec_t realtime) {
    struct timespec now; /* true time, whatever the clock of this program is */

    (void) syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    host_clock_step(h, (int64_t) realtime - ((int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000));
}

void host_clock_step(struct host *h, int64_t usec) {
    clock_file_step(&clocks_of(h)->file, usec);
}

void host_clock_set(struct host *h, const char *time, int64_t msec) {
    struct timespec now;
    int64_t wanted = 0;

    if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &now) < 0 || schedule_parse_time(time, &wanted) < 0)
        abort();
    host_clock_step(h, (wanted - now.tv_sec) * (int64_t) USEC_PER_SEC + msec * 1000 - now.tv_nsec / 1000);
}

static void format_zone(const struct host *h, const char *name, char path[static 160]) {
    snprintf(path, 160, "%s/%s.clock.zones", cluster.folder, h->name);
    (void) mkdir(path, 0755);
    snprintf(path, 160, "%s/%s.clock.zones/%s", cluster.folder, h->name, name);
}

void host_clock_write_zone(struct host *h, const char *name, int32_t offset) {
    size_t size;
    struct tzif tzif = {.first_offset = offset};
    uint8_t *data = tzif_make(&tzif, &size);
    char path[160];

    format_zone(h, name, path);
    if (file_write_atomic(path, (const char *) data, size, 0644) < 0)
        abort();
    free(data);
}

void host_clock_remove_zone(struct host *h, const char *name) {
    char path[160];

    format_zone(h, name, path);
    (void) unlink(path);
}

void host_await_marker(struct host *h) {
    TEST_INT(berth(h, "start marker --wait"), 0);
}
