/* SPDX-License-Identifier: MIT */
#include "runner/directories.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/file.h"
#include "base/protocol.h"
#include "runner/guard-file.h"

/* Makes a directory. With must_own, an existing one must belong to this user, and no other may write to
 * it. */
static int make_directory(struct journal *j, const char *path, mode_t mode, bool must_own) {
    struct stat st;
    int k = file_make_directory(path, mode);

    if (k == 0 && lstat(path, &st) < 0)
        k = -errno;
    if (k < 0) {
        journal_log(j, LOG_ERR, "%s: cannot create: %s", path, strerror(-k));
        return k;
    }
    if (!S_ISDIR(st.st_mode) || (must_own && (st.st_uid != geteuid() || (st.st_mode & 022)))) {
        journal_log(j, LOG_ERR, "%s: must be a directory of berth-runner's user that no other may write to",
                    path);
        return -EPERM;
    }
    return 0;
}

static int take_lock(struct journal *j, const char *path, unsigned patience_s, int *ret_fd) {
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int k = fd < 0 ? -errno : 0;

    if (k == 0) {
        (void) alarm(patience_s);
        if (flock(fd, LOCK_EX) < 0)
            k = errno == EINTR ? -EBUSY : -errno;
        (void) alarm(0);
    }
    if (k == -EBUSY)
        journal_log(j, LOG_ERR, "%s: another berth-runner holds this lock", path);
    else if (k < 0)
        journal_log(j, LOG_ERR, "%s: cannot lock: %s", path, strerror(-k));
    if (k == 0)
        *ret_fd = steal_fd(&fd);
    return k;
}

int directories_take(struct journal *j, const char *runtime_directory, unsigned patience_s,
                     int *ret_lock_fd) {
    char path[GUARD_FILE_PATH_SIZE];
    int k;

    k = make_directory(j, runtime_directory, 0755, false);
    if (k < 0)
        return k;
    snprintf(path, sizeof(path), "%s/runner", runtime_directory);
    k = make_directory(j, path, 0711, true);
    if (k < 0)
        return k;
    snprintf(path, sizeof(path), "%s/%s", runtime_directory, PROTOCOL_RUNS);
    k = make_directory(j, path, 0711, true);
    if (k < 0)
        return k;
    snprintf(path, sizeof(path), "%s/%s", runtime_directory, PROTOCOL_CREDENTIALS);
    k = make_directory(j, path, 0711, true);
    if (k < 0)
        return k;
    snprintf(path, sizeof(path), "%s/runner/lock", runtime_directory);
    return take_lock(j, path, patience_s, ret_lock_fd);
}
