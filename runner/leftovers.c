/* SPDX-License-Identifier: MIT */
#include "runner/leftovers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process/cgroup.h"
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

/* A run whose cgroup could not be made runs without one. */
static bool has_cgroup(const struct guard_file *record) {
    return record->cgroup[0] && (access(record->cgroup, F_OK) == 0 || errno != ENOENT);
}

int leftovers_kill(const char *directory, const char *run) {
    struct guard_file record;
    int k = guard_file_load(&record, directory, run);

    if (is_unread(k))
        return LEFTOVERS_E_SOME;
    if (k < 0 || !has_cgroup(&record))
        return LEFTOVERS_E_NO_CGROUP;
    (void) cgroup_kill(record.cgroup);
    if (cgroup_is_populated(record.cgroup) != 0)
        return LEFTOVERS_E_SOME;
    (void) cgroup_remove(record.cgroup);
    return 0;
}

void leftovers_kill_cgroup(const char *directory, const char *run) {
    struct guard_file record;

    if (guard_file_load(&record, directory, run) == 0 && has_cgroup(&record))
        (void) cgroup_kill(record.cgroup);
}
