/* SPDX-License-Identifier: MIT */

/* Resources that a host runs out of, and reloads. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/faults/fault.h"

static void reload(struct bed *b, struct injection *i) {
    for (size_t h = 0; h < LOAD_HOSTS; h++)
        if (!b->load.hosts[h].down)
            load_reload(&b->load, h);
    i->n_hit++;
}

/* A config with an error changes nothing. */
static void break_config(struct bed *b, struct injection *i) {
    struct host *h = b->load.hosts[i->host].host;

    host_set_config(h, "pool \"db\" { limit = many }\n");
    if (!b->load.hosts[i->host].down)
        host_signal(h, SIGHUP);
    i->n_hit++;
}

static void mend_config(struct bed *b, struct injection *i) {
    load_reload(&b->load, i->host);
}

/* --- descriptors --- */

/* berthd can open nothing more; open files stay. */
static void take_descriptors(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    i->n_hit += bound(b, i->host, KIND_BERTHD, RLIMIT_NOFILE, 6);
}

static void give_descriptors(struct bed *b, struct injection *i) {
    (void) bound(b, i->host, KIND_BERTHD, RLIMIT_NOFILE, 1024);
}

static void take_runners_descriptors(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    i->n_hit += bound(b, i->host, KIND_RUNNER, RLIMIT_NOFILE, 6);
}

static void give_runners_descriptors(struct bed *b, struct injection *i) {
    (void) bound(b, i->host, KIND_RUNNER, RLIMIT_NOFILE, 1024);
}

/* --- the runtime directory --- */

static void fill_disk(struct bed *b, struct injection *i) {
    static const char zeros[65536];
    struct host *h = b->load.hosts[i->host].host;
    char path[128];
    _cleanup_close_ int fd = -1;

    touch(b, i, 2);
    snprintf(path, sizeof(path), "%s/full", h->runtime);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (size_t size = sizeof(zeros); fd >= 0 && size > 0;)
        if (write(fd, zeros, size) <= 0)
            size /= 2;
    i->n_hit += fd >= 0;
}

static void free_disk(struct bed *b, struct injection *i) {
    char path[128];

    snprintf(path, sizeof(path), "%s/full", b->load.hosts[i->host].host->runtime);
    (void) unlink(path);
}

/* No new file can be made; existing ones can be written. */
static void take_inodes(struct bed *b, struct injection *i) {
    struct host *h = b->load.hosts[i->host].host;
    char path[128];

    touch(b, i, 2);
    for (unsigned n = 0; n < 4096; n++) {
        int fd;

        snprintf(path, sizeof(path), "%s/inode-%u", h->runtime, n);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        i->n_hit = 1;
        (void) close(fd);
    }
}

static void give_inodes(struct bed *b, struct injection *i) {
    char path[128];

    for (unsigned n = 0; n < 4096; n++) {
        snprintf(path, sizeof(path), "%s/inode-%u", b->load.hosts[i->host].host->runtime, n);
        if (unlink(path) < 0)
            break;
    }
}

const struct fault faults_host[] = {
    {"reloaded", "all configs reloaded", 0, 0, reload, NULL, "Supervisor/supervisor#729 hashicorp/nomad#4302"},
    {"bad-config", "a config with an error, reloaded, then mended", 0, 500, break_config, mend_config, NULL},
    {"berthd-no-descriptors", "berthd may open no more descriptors", FAULT_HOST, 1500, take_descriptors, give_descriptors, NULL},
    {"runner-no-descriptors", "berth-runner may open no more descriptors", FAULT_HOST, 1500, take_runners_descriptors, give_runners_descriptors,
     NULL},
    {"disk-full", "the file system of the runtime directory is full", FAULT_HOST | FAULT_TMPFS, 1500, fill_disk, free_disk, NULL},
    {"no-inodes", "no file can be made in the runtime directory", FAULT_HOST | FAULT_TMPFS, 1500, take_inodes, give_inodes, NULL},
    {0},
};
