/* SPDX-License-Identifier: MIT */
#include "runner/leftovers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/process/process-environ.h"
#include "runner/report.h"

/* Returns whether a guard file exists and cannot be read at the moment (out of descriptors, for example). */
static bool is_unread(int error) {
    return error < 0 && error != -ENOENT && error != -EBADMSG && error != -EFBIG;
}

int leftovers_write_report(const char *directory, const char *run) {
    struct message_writer w;
    struct guard_file record;
    int k = guard_file_load(&record, directory, run);

    if (is_unread(k))
        return k;
    if (k < 0) {
        record = (struct guard_file) {0};
        memcpy(record.run, run, sizeof(record.run));
    }
    report_begin(&w, &record, "none");
    message_put(&w, "lost", "1");
    return report_write(&w, directory, run);
}

/* Without a cgroup, and after the subreaper of the run ended, only its environment identifies a process. */
static bool kill_by_environ(const char *run) {
    struct environ_run wanted = {.run = run};

    return process_environ_kill(&wanted, 1) == 0 && wanted.n_found == 0;
}

/* A run whose cgroup could not be made runs without one. */
static bool has_cgroup(const struct guard_file *record) {
    return record->cgroup[0] && (access(record->cgroup, F_OK) == 0 || errno != ENOENT);
}

bool leftovers_kill(const char *directory, const char *run) {
    struct guard_file record;
    int k = guard_file_load(&record, directory, run);

    if (is_unread(k))
        return false;
    if (k < 0 || !has_cgroup(&record))
        return kill_by_environ(run);
    (void) cgroup_kill(record.cgroup);
    if (cgroup_is_populated(record.cgroup) != 0)
        return false;
    (void) cgroup_remove(record.cgroup);
    return true;
}
