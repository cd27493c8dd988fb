/* SPDX-License-Identifier: MIT */
#include "runner/exec/credentials.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"

/* Over a directory that is being removed, one for each level of its tree: more than /run has inodes by default.
 * Without a bound, a process of its user could add levels for ever. */
#define PASSES_MAX (1 << 20)

/* Writes the path of the directory `credentials` beside `runs`. */
static const char *folder_path(char *buffer, const char *runs) {
    int n = (int) (strrchr(runs, '/') - runs);

    (void) snprintf(buffer, GUARD_FILE_PATH_SIZE, "%.*s%s", n, runs, strrchr(PROTOCOL_CREDENTIALS, '/'));
    return buffer;
}

const char *credentials_path(char *buffer, const char *runs, const char *run) {
    char folder[GUARD_FILE_PATH_SIZE];

    (void) snprintf(buffer, GUARD_FILE_PATH_SIZE, "%.80s/%.32s", folder_path(folder, runs), run);
    return buffer;
}

/* ---- making ---- */

static bool is_in_memory(int fd) {
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && ((uint32_t) fs.f_type == TMPFS_MAGIC || (uint32_t) fs.f_type == RAMFS_MAGIC);
}

int credentials_make(const char *runs, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];
    _cleanup_close_ int folder =
        open(folder_path(path, runs), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd;

    if (folder < 0)
        return -errno;
    if (!is_in_memory(folder))
        return -EMEDIUMTYPE;
    if (mkdirat(folder, run, 0700) < 0)
        return -errno;
    fd = openat(folder, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Changes the owner if another one is wanted: an unprivileged berth-runner may not call fchown(2) at all. */
static int give(int fd, uid_t uid, gid_t gid) {
    return (uid != geteuid() || gid != getegid()) && fchown(fd, uid, gid) < 0 ? -errno : 0;
}

int credentials_add(int fd, const char *name, const void *bytes, size_t size, uid_t uid, gid_t gid) {
    _cleanup_close_ int file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    int r;

    if (file < 0)
        return -errno;
    r = file_write(file, bytes, size);
    if (r == 0 && fchmod(file, 0400) < 0) /* whatever the umask is */
        r = -errno;
    return r == 0 ? give(file, uid, gid) : r;
}

int credentials_hand_over(int fd, uid_t uid, gid_t gid) {
    return fchmod(fd, 0500) < 0 ? -errno : give(fd, uid, gid);
}

/* ---- removing ---- */

static void close_directory(DIR **d) {
    if (*d)
        (void) closedir(*d);
}

/* Opens a directory and becomes its owner, so that its user can no longer add files. */
static DIR *take_directory(int fd, const char *name) {
    _cleanup_close_ int taken = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d;

    if (taken < 0)
        return NULL;
    (void) !fchown(taken, geteuid(), getegid());
    (void) fchmod(taken, 0700);
    d = fdopendir(taken);
    if (d)
        taken = -1;
    return d;
}

static const char *next_name(DIR *d) {
    struct dirent *entry;

    do
        entry = readdir(d);
    while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

/* Removes a directory below `top`. Its subdirectories move up to `top`, so a deep tree needs no descriptor
 * for each level. */
static void flatten(DIR *top, const char *name, unsigned *serial) {
    _cleanup_(close_directory) DIR *d = NULL;
    const char *inner;
    char fresh[16];

    if (unlinkat(dirfd(top), name, AT_REMOVEDIR) == 0)
        return;
    d = take_directory(dirfd(top), name);
    while (d && (inner = next_name(d)))
        if (unlinkat(dirfd(d), inner, 0) < 0) {
            snprintf(fresh, sizeof(fresh), ".%u", ++*serial);
            (void) renameat(dirfd(d), inner, dirfd(top), fresh);
        }
    (void) unlinkat(dirfd(top), name, AT_REMOVEDIR);
}

void credentials_remove(const char *runs, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];
    _cleanup_(close_directory) DIR *top = take_directory(AT_FDCWD, credentials_path(path, runs, run));
    unsigned serial = 0;
    const char *name;
    bool is_empty = false;

    if (!top)
        return;
    for (int pass = 0; pass < PASSES_MAX && !is_empty; pass++) {
        is_empty = true;
        rewinddir(top);
        while ((name = next_name(top))) {
            is_empty = false;
            if (unlinkat(dirfd(top), name, 0) < 0)
                flatten(top, name, &serial);
        }
    }
    (void) rmdir(path);
}

static int sweep_run(const char *name, void *userdata) {
    char path[GUARD_FILE_PATH_SIZE];
    const char *runs = userdata;

    if (id_is_valid(name) && access(guard_file_path(path, runs, name, GUARD_FILE_SUFFIX), F_OK) < 0 &&
        errno == ENOENT)
        credentials_remove(runs, name);
    return 0;
}

void credentials_sweep(const char *runs) {
    char path[GUARD_FILE_PATH_SIZE];

    (void) directory_each(folder_path(path, runs), sweep_run, (char *) (uintptr_t) runs);
}
