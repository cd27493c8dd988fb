/* SPDX-License-Identifier: MIT */
/* Files that the config names for a job. The job's user opens output and input, so a symbolic link gives
 * that user no new rights. Root has no such bound: in another user's directory, that user could choose by a
 * link which file root reads or appends to. So a link is followed only if nobody but root and the opening
 * user can have made it. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runner/exec/exec-internal.h"

#define LINKS_MAX 40 /* as the kernel (path_resolution(7)) */

struct way { /* a walk along a path, directory by directory */
    int fd;            /* the current directory */
    char rest[PATH_MAX];
    unsigned n_links;
};

/* Returns whether only root and this process's user can make or replace files in this directory. */
static bool is_trusted(int fd) {
    struct stat st;

    return fstat(fd, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_proc(int fd) {
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Enters a directory. Returns whether it is trusted. */
static bool way_enter(struct way *w, const char *name) {
    int fd = openat(w->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    close_fd(w->fd);
    w->fd = fd;
    return fd >= 0 && is_trusted(fd);
}

/* Puts a link's target in front of the rest of the path. */
static bool way_follow(struct way *w, const char *name, const char *rest) {
    char target[PATH_MAX], joined[sizeof(w->rest)];
    ssize_t n = readlinkat(w->fd, name, target, sizeof(target) - 1);

    if (n < 0 || ++w->n_links > LINKS_MAX)
        return false;
    target[n] = '\0';
    if ((size_t) snprintf(joined, sizeof(joined), "%s/%s", target, rest) >= sizeof(joined))
        return false;
    memcpy(w->rest, joined, sizeof(joined));
    return target[0] != '/' || way_enter(w, "/");
}

/* Returns whether nobody but root and this user can have made any part of the path, the file itself included. */
static bool is_way_trusted(const char *path) {
    struct way w = {.fd = AT_FDCWD};
    bool trusted = strlen(path) < sizeof(w.rest) && way_enter(&w, "/");

    if (trusted)
        memcpy(w.rest, path, strlen(path) + 1);
    while (trusted && w.rest[strspn(w.rest, "/")] != '\0' && !is_proc(w.fd)) { /* /proc: kernel links */
        char copy[sizeof(w.rest)], *name, *rest;
        struct stat st;

        memcpy(copy, w.rest, sizeof(copy));
        rest = copy + strspn(copy, "/");
        name = strsep(&rest, "/");
        if (fstatat(w.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            break; /* open(2) creates it here or fails */
        memmove(w.rest, rest ? rest : "", rest ? strlen(rest) + 1 : 1);
        if (S_ISLNK(st.st_mode))
            trusted = way_follow(&w, name, rest ? rest : "");
        else if (S_ISDIR(st.st_mode))
            trusted = way_enter(&w, name);
        else
            break;
    }
    close_fd(w.fd);
    return trusted;
}

static int open_without_links(const char *path, uint64_t flags) {
    struct open_how how = {.flags = flags, .mode = flags & O_CREAT ? 0666 : 0, .resolve = RESOLVE_NO_SYMLINKS};

    return (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

int exec_open_file(const char *path, int flags) {
    int fd;

    flags |= O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
    fd = is_way_trusted(path) ? open(path, flags, 0666) : open_without_links(path, (uint64_t) flags);

    if (fd < 0)
        return -errno;
    flags = fcntl(fd, F_GETFL); /* only the open must not block, on a FIFO without a peer */
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) {
        int r = -errno;

        close_fd(fd);
        return r;
    }
    return fd;
}
