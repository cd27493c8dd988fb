/* SPDX-License-Identifier: MIT */

/* A host runs out of processes or of writable files. Its programs run as an ordinary user, because root
 * never runs out of processes, or the runtime directory is mounted over, because root ignores modes. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/faults/fault.h"
#include "tests/harness/test.h"

/* --- processes --- */

/* The runner can fork no guard, and a waiting `berth run` can fork no command when it is granted. */
static void take_processes(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    i->n_hit += bound(b, i->host, KIND_RUNNER, RLIMIT_NPROC, 0);
    i->n_hit += bound(b, i->host, KIND_RUN, RLIMIT_NPROC, 0);
}

static void give_processes(struct bed *b, struct injection *i) {
    (void) bound(b, i->host, KIND_RUNNER, RLIMIT_NPROC, RLIM_INFINITY);
    (void) bound(b, i->host, KIND_RUN, RLIMIT_NPROC, RLIM_INFINITY);
}

static void take_berthds(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    i->n_hit += bound(b, i->host, KIND_BERTHD, RLIMIT_NPROC, 0);
    (void) hit(b, i, KIND_RUNNER, SIGKILL, 1, false); /* berthd cannot start it again yet */
}

static void give_berthds(struct bed *b, struct injection *i) {
    (void) bound(b, i->host, KIND_BERTHD, RLIMIT_NPROC, RLIM_INFINITY);
}

/* --- descriptors --- */

/* A guard can accept no connection of berthd, and open no report and no file of /proc. */
static void take_guards_descriptors(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    i->n_hit += bound(b, i->host, KIND_GUARD, RLIMIT_NOFILE, 5);
}

static void give_guards_descriptors(struct bed *b, struct injection *i) {
    (void) bound(b, i->host, KIND_GUARD, RLIMIT_NOFILE, 1024);
}

/* --- files --- */

static const char *runtime_of(struct bed *b, struct injection *i) {
    return b->load.hosts[i->host].host->runtime;
}

/* Paths lead to a read-only file system from now on (EROFS); open files stay as they are. */
static void mount_read_only(struct bed *b, struct injection *i) {
    const char *path = runtime_of(b, i);

    touch(b, i, 2);
    if (mount(path, path, NULL, MS_BIND, NULL) == 0 && mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0)
        i->n_hit++;
    else
        CU_FAIL("the runtime directory cannot be made read-only");
}

static void mount_writable(struct bed *b, struct injection *i) {
    if (umount2(runtime_of(b, i), MNT_DETACH) < 0)
        CU_FAIL("the runtime directory stays read-only");
}

static void set_modes(struct bed *b, struct injection *i, mode_t mode) {
    static const char *const folders[] = {"", "/waiting", "/holds", "/jobs", "/runner/runs", "/runner"};
    char path[160];

    for (size_t k = 0; k < ELEMENTSOF(folders); k++) {
        snprintf(path, sizeof(path), "%s%s", runtime_of(b, i), folders[k]);
        (void) chmod(path, mode);
    }
}

static void forbid_writing(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    set_modes(b, i, 0555);
    i->n_hit++;
}

static void allow_writing(struct bed *b, struct injection *i) {
    set_modes(b, i, 0755);
}

/* berthd is down, so guards write reports, for which there is no room. */
static void fill_without_berthd(struct bed *b, struct injection *i) {
    faults_find("berthd-away-long")->begin(b, i);
    faults_find("disk-full")->begin(b, i);
}

static void free_with_berthd(struct bed *b, struct injection *i) {
    faults_find("disk-full")->end(b, i);
    faults_find("berthd-away-long")->end(b, i);
}

/* TMPFS faults are not mixed: no berthd starts on a read-only file system. */
#define USER (FAULT_HOST | FAULT_USER)
#define TMPFS (FAULT_HOST | FAULT_TMPFS | FAULT_ALONE)

const struct fault faults_scarce[] = {
    {"no-processes", "no process can be made by berth-runner and `berth run`", USER | FAULT_FULL, 1500, take_processes, give_processes, NULL},
    {"berthd-no-processes", "berth-runner killed, berthd can make no process", USER | FAULT_FULL, 1500, take_berthds, give_berthds, NULL},
    {"guard-no-descriptors", "guards may open no more descriptors", FAULT_HOST | FAULT_ALONE | FAULT_FULL, 1500, take_guards_descriptors,
     give_guards_descriptors, NULL},
    {"runtime-read-only", "the runtime directory on a file system that is read-only", TMPFS, 1500, mount_read_only, mount_writable, NULL},
    {"runtime-forbidden", "the runtime directory's modes forbid writing", USER | FAULT_FULL, 1500, forbid_writing, allow_writing, NULL},
    {"reports-no-room", "berthd away, and no room for reports", TMPFS | FAULT_FULL, 2500, fill_without_berthd, free_with_berthd,
     "etcd-io/etcd#19261"},
    {0},
};
