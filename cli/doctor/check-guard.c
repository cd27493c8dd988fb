/* SPDX-License-Identifier: MIT */
/* Guards that are gone, and ends of runs that berthd did not take: files of berth-runner (runner/guard-file.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json/format.h"
#include "cli/doctor/doctor.h"

#define OLD (60 * USEC_PER_SEC) /* berth-runner and berthd take a moment */
#define SHOWN 5
#define GUARD ".guard"
#define REPORT ".report"

struct folder {
    const struct facts *facts;
    struct report *report;
    DIR *dir;
    size_t n; /* findings */
};

/* How long ago the file was changed. */
static usec_t age_of(const struct facts *f, const struct stat *st) {
    return usec_sub(f->now, (usec_t) st->st_mtim.tv_sec * USEC_PER_SEC + (usec_t) st->st_mtim.tv_nsec / 1000);
}

/* A guard has a lock on its file as long as it lives. berth-runner looks in the same way. */
static bool is_locked(const struct folder *folder, const char *name) {
    _cleanup_close_ int fd = openat(dirfd(folder->dir), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    return fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0;
}

static void add_guard(const struct folder *folder, const char *run) {
    report_add(folder->report, SEVERITY_WARN, "run %.8s: its guard is gone, and berth-runner did not notice", run);
    report_about(folder->report, facts_host(folder->facts), NULL, run);
    report_do(folder->report, "its processes, if there are any, have no deadline; other runs outlive this:");
    report_command(folder->report, "systemctl", "restart", "berth-runner");
}

static void add_report(const struct folder *folder, const char *run, usec_t age) {
    char text[FORMAT_SIZE];

    report_add(folder->report, SEVERITY_WARN, "run %.8s: it ended %s ago, and berthd did not take its report", run,
               format_msec((json_int_t) (age / USEC_PER_MSEC), text));
    report_about(folder->report, facts_host(folder->facts), NULL, run);
    report_do(folder->report, "its permits stay taken until then; see what berthd says:");
    report_command(folder->report, "journalctl", "-u", "berthd", "-u", "berth-runner", "-n", "50");
}

static void check_file(struct folder *folder, const char *name) {
    const char *suffix = strchr(name, '.');
    char run[ID_TEXT_SIZE];
    struct stat st;
    usec_t age;

    if (!suffix || (size_t) (suffix - name) != ID_TEXT_SIZE - 1 || folder->n >= SHOWN)
        return;
    memcpy(run, name, ID_TEXT_SIZE - 1);
    run[ID_TEXT_SIZE - 1] = '\0';
    if (!id_is_valid(run) || fstatat(dirfd(folder->dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return;
    age = age_of(folder->facts, &st);
    if (age < OLD)
        return;
    if (strcmp(suffix, REPORT) == 0) {
        add_report(folder, run, age);
        folder->n++;
    } else if (strcmp(suffix, GUARD) == 0 && !is_locked(folder, name)) {
        add_guard(folder, run);
        folder->n++;
    }
}

void doctor_guard(const struct facts *f, struct report *r) {
    _cleanup_free_ char *path = NULL;
    struct folder folder = {.facts = f, .report = r};
    const struct dirent *entry;

    if (asprintf(&path, "%s%s/runner/runs", f->root, f->settings->runtime_directory) < 0) {
        path = NULL;
        r->out_of_memory = true;
        return;
    }
    folder.dir = opendir(path);
    if (!folder.dir) {
        if (errno == EACCES)
            report_add(r, SEVERITY_UNKNOWN, "needs root");
        return; /* berth-runner makes it */
    }
    while ((entry = readdir(folder.dir)))
        check_file(&folder, entry->d_name);
    (void) closedir(folder.dir);
}
