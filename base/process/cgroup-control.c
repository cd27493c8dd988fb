/* SPDX-License-Identifier: MIT */
#include "base/process/cgroup-control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define CGROUP_FILE_MAX (1024 * 1024)

static const struct {
    unsigned controller;
    const char *name;
} controllers_known[] = {{CGROUP_CPU, "cpu"}, {CGROUP_MEMORY, "memory"}, {CGROUP_PIDS, "pids"}};

int cgroup_write(const char *path, const char *file, const char *text) {
    _cleanup_close_ int fd = -1;
    char name[PATH_MAX];

    if ((size_t) snprintf(name, sizeof(name), "%s/%s", path, file) >= sizeof(name))
        return -ENAMETOOLONG;
    fd = open(name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int cgroup_read(const char *path, const char *file, char **ret) {
    char name[PATH_MAX];
    size_t size;

    if ((size_t) snprintf(name, sizeof(name), "%s/%s", path, file) >= sizeof(name))
        return -ENAMETOOLONG;
    return file_read(name, CGROUP_FILE_MAX, ret, &size);
}

static int read_controllers(const char *path, const char *file, unsigned *ret) {
    _cleanup_free_ char *text = NULL;
    unsigned found = 0;
    char *rest, *word;
    int r = cgroup_read(path, file, &text);

    if (r < 0)
        return r;
    rest = text;
    while ((word = strsep(&rest, " \n")))
        for (size_t i = 0; i < ELEMENTSOF(controllers_known); i++)
            if (strcmp(word, controllers_known[i].name) == 0)
                found |= controllers_known[i].controller;
    *ret = found;
    return 0;
}

int cgroup_available(const char *path, unsigned *ret) {
    return read_controllers(path, "cgroup.controllers", ret);
}

unsigned cgroup_enabled(const char *path) {
    unsigned found = 0;

    (void) read_controllers(path, "cgroup.subtree_control", &found);
    return found;
}

unsigned cgroup_enable(const char *path, unsigned controllers) {
    unsigned missing = controllers & ~cgroup_enabled(path);

    for (size_t i = 0; i < ELEMENTSOF(controllers_known); i++) { /* one at a time, because a missing one would make the write fail for all */
        char text[16];

        if (!(missing & controllers_known[i].controller))
            continue;
        snprintf(text, sizeof(text), "+%s", controllers_known[i].name);
        (void) cgroup_write(path, "cgroup.subtree_control", text);
    }
    return missing ? controllers & ~cgroup_enabled(path) : 0;
}

int cgroup_move_down(const char *path, const char *name) {
    _cleanup_free_ char *below = NULL, *text = NULL;
    char *rest, *pid;
    int r;

    if (asprintf(&below, "%s/%s", path, name) < 0) {
        below = NULL;
        return -ENOMEM;
    }
    if (mkdir(below, 0755) < 0 && errno != EEXIST)
        return -errno;
    r = cgroup_read(path, "cgroup.procs", &text);
    rest = text;
    while (r == 0 && (pid = strsep(&rest, "\n")))
        if (*pid) {
            r = cgroup_write(below, "cgroup.procs", pid);
            r = r == -ESRCH ? 0 : r; /* it has ended */
        }
    return r;
}

/* systemd marks the groups that it delegates (systemd: CGROUP_DELEGATION). */
bool cgroup_is_delegated(const char *path) {
    static const char *const names[] = {"trusted.delegate", "user.delegate"};
    char value[2];

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (getxattr(path, names[i], value, sizeof(value)) == 1 && value[0] == '1')
            return true;
    return false;
}

int cgroup_set(const char *path, const char *file, uint64_t value) {
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    return cgroup_write(path, file, text);
}

const char *cgroup_format(unsigned controllers, char buffer[static CGROUP_NAMES_SIZE]) {
    size_t n = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < ELEMENTSOF(controllers_known); i++)
        if (controllers & controllers_known[i].controller)
            n += (size_t) snprintf(buffer + n, CGROUP_NAMES_SIZE - n, "%s%s", n > 0 ? ", " : "", controllers_known[i].name);
    return buffer;
}
