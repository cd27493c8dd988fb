/* SPDX-License-Identifier: MIT */
/* Whole files, read with a bound and replaced in one step. */

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FILE_CHUNK 4096

/* Opens a regular file. O_NONBLOCK: the open of a FIFO does not wait for a writer. */
static int file_open(const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    return steal_fd(&fd);
}

int file_read_fd(int fd, size_t max, char **ret, size_t *ret_size) {
    _cleanup_free_ char *data = NULL;
    size_t size = 0, room = 0;

    for (;;) {
        ssize_t n;

        if (room - size < 2) { /* one byte for the NUL, and one that detects a file above max */
            char *more = realloc(data, room + FILE_CHUNK);

            if (!more)
                return -ENOMEM;
            data = more;
            room += FILE_CHUNK;
        }
        n = read(fd, data + size, room - size - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        size += (size_t) n;
        if (size > max)
            return -EFBIG;
    }
    data[size] = '\0';
    *ret = steal_pointer(&data);
    *ret_size = size;
    return 0;
}

int file_read(const char *path, size_t max, char **ret, size_t *ret_size) {
    _cleanup_close_ int fd = file_open(path);

    return fd < 0 ? fd : file_read_fd(fd, max, ret, ret_size);
}

int file_write(int fd, const void *data, size_t size) {
    const char *rest = data;

    while (size > 0) {
        ssize_t n = write(fd, rest, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        rest += n;
        size -= (size_t) n;
    }
    return 0;
}

/* Syncs the rename. On a file system that cannot do so, the file's content was still synced. */
static void file_sync_directory(const char *path) {
    _cleanup_free_ char *directory = strdup(path);
    _cleanup_close_ int fd = -1;
    char *slash;

    if (!directory)
        return;
    slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory ? 1 : 0] = '\0';
    fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void) fsync(fd);
}

/* All attempts use one name, so that the remains of a crash are replaced. */
static int file_create(const char *path) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, 0600);

    return fd < 0 && errno == EEXIST && unlink(path) == 0 ? open(path, flags, 0600) : fd;
}

static int file_fill(const char *path, const void *data, size_t size, unsigned mode, bool durable) {
    _cleanup_close_ int fd = file_create(path);
    int r;

    if (fd < 0)
        return -errno;
    r = file_write(fd, data, size);
    if (r < 0)
        return r;
    return fchmod(fd, mode) < 0 || (durable && fsync(fd) < 0) ? -errno : 0;
}

static int file_replace(const char *path, const void *data, size_t size, unsigned mode, bool durable) {
    _cleanup_free_ char *temporary = NULL;
    int r;

    if (asprintf(&temporary, "%s.tmp", path) < 0) {
        temporary = NULL;
        return -ENOMEM;
    }
    r = file_fill(temporary, data, size, mode, durable);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        (void) unlink(temporary);
        return r;
    }
    if (durable)
        file_sync_directory(path);
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t size, unsigned mode) {
    return file_replace(path, data, size, mode, false);
}

int file_write_durable(const char *path, const void *data, size_t size, unsigned mode) {
    return file_replace(path, data, size, mode, true);
}

int file_make_directory(const char *path, unsigned mode) {
    if (mkdir(path, mode) < 0)
        return errno == EEXIST ? 0 : -errno;
    return chmod(path, mode) < 0 ? -errno : 0;
}

int directory_each(const char *path, int (*fn)(const char *name, void *userdata), void *userdata) {
    DIR *directory = opendir(path);
    const struct dirent *entry;
    int r = 0;

    if (!directory)
        return -errno;
    while (r >= 0 && (errno = 0, entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            r = fn(entry->d_name, userdata);
    if (r >= 0)
        r = -errno;
    (void) closedir(directory);
    return r;
}
