/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/host-reboot.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/name.h"
#include "base/process/cgroup.h"
#include "base/protocol.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define FAMILY_MAX 64

struct family {
    pid_t pids[FAMILY_MAX];
    size_t n;
};

static bool is_named(pid_t pid, const char *begin) {
    char path[64], name[32] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int) pid);
    f = fopen(path, "re");
    if (f && !fgets(name, sizeof(name), f))
        name[0] = '\0';
    if (f)
        (void) fclose(f);
    return strncmp(name, begin, strlen(begin)) == 0;
}

/* Returns whether a process is a runner, a guard or below one, also of an earlier berthd: all descend from
 * this program. */
static bool is_of_family(pid_t pid) {
    bool is_below = false;

    for (; pid > 1 && pid != getpid(); pid = child_parent(pid))
        is_below |= is_named(pid, "berth-runner") || is_named(pid, "berth-guard");
    return pid == getpid() && is_below;
}

static void find_family(struct family *family) {
    DIR *proc = opendir("/proc");

    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);

        if (pid > 1 && family->n < FAMILY_MAX && is_of_family(pid))
            family->pids[family->n++] = pid;
    }
    if (proc)
        (void) closedir(proc);
}

/* Orphans become children of this program. */
static bool is_gone(pid_t pid) {
    (void) waitpid(pid, NULL, WNOHANG);
    return child_parent(pid) == 0;
}

/* A reboot removes the cgroups, too: each guard's file is named by its run, and so is the cgroup. */
static void remove_cgroups(const struct host *h) {
    _cleanup_free_ char *own = NULL;
    char path[512];
    DIR *runs;

    snprintf(path, sizeof(path), "%s/" PROTOCOL_RUNS, h->runtime);
    runs = opendir(path);
    if (cgroup_find_own(&own) < 0)
        own = NULL;
    for (struct dirent *entry; runs && own && (entry = readdir(runs));) {
        snprintf(path, sizeof(path), "%s/berth-%.*s", own, ID_TEXT_SIZE - 1, entry->d_name);
        (void) cgroup_remove(path);
    }
    if (runs)
        (void) closedir(runs);
}

void host_reboot(struct host *h) {
    usec_t until = clock_monotonic() + HOST_PATIENCE;
    struct family family = {};

    find_family(&family);
    host_kill(h);
    for (size_t i = 0; i < family.n; i++)
        (void) kill(family.pids[i], SIGKILL);
    for (size_t i = 0; i < family.n; i++)
        while (!is_gone(family.pids[i]) && clock_monotonic() < until)
            (void) usleep(1000);
    remove_cgroups(h);
    place_remove(h->runtime);
    CU_ASSERT(mkdir(h->runtime, 0755) == 0);
}
