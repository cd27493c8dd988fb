/* SPDX-License-Identifier: MIT */
#include "base/process/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process/cgroup-control.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "base/process/process-tree.h"

#define PROC_FILE_MAX (1024 * 1024)

/* Undoes the \040 of /proc/self/mountinfo, in place (proc(5)). */
static void unescape(char *text) {
    char *to = text;

    for (char *from = text; *from; to++)
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char) ((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else
            *to = *from++;
    *to = '\0';
}

/* Parses one line of mountinfo, "id parent dev root point options [tags] - type source options". Returns 1 for a
 * cgroup2. */
static int cgroup_match_mount(char *line, const char **ret_root, const char **ret_point) {
    char *type = strstr(line, " - "), *rest = line, *fields[5];

    if (!type || strncmp(type + 3, "cgroup2 ", 8) != 0)
        return 0;
    for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
        fields[i] = strsep(&rest, " ");
        if (!rest)
            return 0;
    }
    unescape(fields[3]);
    unescape(fields[4]);
    *ret_root = fields[3];
    *ret_point = fields[4];
    return 1;
}

/* Returns the PATH of the line "0::PATH" of /proc/self/cgroup; NULL: none. */
static const char *cgroup_match_path(char *text) {
    for (char *line; (line = strsep(&text, "\n"));)
        if (strncmp(line, "0::/", 4) == 0)
            return line + 3;
    return NULL;
}

/* Returns the path of the process's group below a mount that shows the tree from `root` on. */
static int cgroup_join(const char *root, const char *point, const char *path, char **ret) {
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return -EOPNOTSUPP;
    path += n;
    if (asprintf(ret, "%s%s", point, strcmp(path, "/") == 0 ? "" : path) < 0) {
        *ret = NULL;
        return -ENOMEM;
    }
    return 0;
}

/* Finds the first mount of a cgroup2. root and point are in the text, which is to be freed. */
static int cgroup_find_mount(char **ret_text, const char **ret_root, const char **ret_point) {
    char *rest, *line;
    size_t size;
    int r = file_read("/proc/self/mountinfo", PROC_FILE_MAX, ret_text, &size);

    if (r < 0)
        return r;
    rest = *ret_text;
    while ((line = strsep(&rest, "\n")))
        if (cgroup_match_mount(line, ret_root, ret_point))
            return 0;
    return -EOPNOTSUPP;
}

static int cgroup_find(char **ret) {
    _cleanup_free_ char *mounts = NULL, *groups = NULL;
    const char *path, *root, *point;
    size_t size;
    int r = file_read("/proc/self/cgroup", PROC_FILE_MAX, &groups, &size);

    if (r < 0)
        return r;
    path = cgroup_match_path(groups);
    if (!path)
        return -EOPNOTSUPP;
    r = cgroup_find_mount(&mounts, &root, &point);
    return r < 0 ? r : cgroup_join(root, point, path, ret);
}

int cgroup_find_root(char **ret) {
    _cleanup_free_ char *mounts = NULL;
    const char *root, *point;
    int r = cgroup_find_mount(&mounts, &root, &point);

    if (r < 0)
        return r;
    *ret = strdup(point);
    return *ret ? 0 : -ENOMEM;
}

int cgroup_find_own(char **ret) {
    _cleanup_free_ char *path = NULL, *procs = NULL;
    int r = cgroup_find(&path);

    if (r < 0)
        return r;
    if (asprintf(&procs, "%s/cgroup.procs", path) < 0) {
        procs = NULL;
        return -ENOMEM;
    }
    /* Moving a process requires write access to the common ancestor's cgroup.procs as well. */
    if (access(path, W_OK) < 0 || access(procs, W_OK) < 0)
        return -EACCES;
    /* A group that systemd does not delegate belongs to systemd, even if root could write (systemd:
     * CGROUP_DELEGATION). */
    if (geteuid() == 0 && access("/run/systemd/system", F_OK) == 0 && !cgroup_is_delegated(path))
        return -EACCES;
    *ret = steal_pointer(&path);
    return 0;
}

int cgroup_make(const char *path) {
    return mkdir(path, 0755) < 0 ? -errno : 0;
}

pid_t cgroup_fork(const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct clone_args arguments = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t) fd};
    long pid;

    if (fd < 0)
        return -errno;
    pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
    return pid < 0 ? -errno : (pid_t) pid;
}

int cgroup_enter(const char *path) {
    return -cgroup_write(path, "cgroup.procs", "0");
}

/* Reads a file of one group; leaves *ret if there is no such group. */
static int cgroup_read_if_there(const char *path, const char *name, char **ret) {
    int r = cgroup_read(path, name, ret);

    return r == -ENOENT || r == -ENODEV ? 0 : r;
}

/* Signals every process of one group; returns how many, or a negative errno. */
static int cgroup_signal_one(const char *path, int signal) {
    _cleanup_free_ char *text = NULL;
    char *rest, *line;
    int r = cgroup_read_if_there(path, "cgroup.procs", &text), n = 0;

    if (r < 0)
        return r;
    rest = text;
    while ((line = strsep(&rest, "\n"))) {
        uint64_t pid, start;

        if (number_parse(line, INT32_MAX, &pid) < 0 || pid == 0 || process_start_time((pid_t) pid, &start) < 0)
            continue;
        (void) process_signal((pid_t) pid, start, signal);
        n++;
    }
    return n;
}

/* Calls `each` for the groups below, then for the group. Returns the first negative errno, or the sum of the
 * results. */
static int cgroup_walk(const char *path, int (*each)(const char *path, int argument), int argument) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    int r = 0, n = 0;

    if (!directory)
        return errno == ENOENT ? 0 : -errno;
    while (r >= 0 && (entry = readdir(directory))) {
        _cleanup_free_ char *below = NULL;

        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        if (asprintf(&below, "%s/%s", path, entry->d_name) < 0) {
            below = NULL;
            r = -ENOMEM;
        } else
            r = cgroup_walk(below, each, argument);
        n += r > 0 ? r : 0;
    }
    (void) closedir(directory);
    if (r >= 0)
        r = each(path, argument);
    return r < 0 ? r : n + r;
}

int cgroup_signal(const char *path, int signal) {
    return cgroup_walk(path, cgroup_signal_one, signal);
}

int cgroup_kill(const char *path) {
    int r;

    if (cgroup_write(path, "cgroup.kill", "1") == 0)
        return 0;
    if (access(path, F_OK) < 0)
        return 0;
    /* No cgroup.kill, or no access: the caller repeats this until the group is empty. */
    r = cgroup_signal(path, SIGKILL);
    return r < 0 ? r : 0;
}

/* Returns 1 or 0 from the text of cgroup.events. */
static int cgroup_match_populated(char *text) {
    for (char *line; (line = strsep(&text, "\n"));)
        if (strcmp(line, "populated 1") == 0)
            return 1;
    return 0;
}

int cgroup_open_events(const char *path) {
    _cleanup_close_ int fd = -1;
    char name[PATH_MAX];
    int r;

    if ((size_t) snprintf(name, sizeof(name), "%s/cgroup.events", path) >= sizeof(name))
        return -ENAMETOOLONG;
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = cgroup_read_events(fd); /* only changes after this read are reported */
    return r < 0 ? r : steal_fd(&fd);
}

int cgroup_read_events(int fd) {
    char text[256]; /* two short lines */
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n < 0)
        return -errno;
    text[n] = '\0';
    return cgroup_match_populated(text);
}

int cgroup_is_populated(const char *path) {
    _cleanup_close_ int fd = cgroup_open_events(path);
    int r = fd < 0 ? fd : cgroup_read_events(fd);

    return r == -ENOENT || r == -ENODEV ? 0 : r;
}

static int cgroup_remove_one(const char *path, _unused_ int argument) {
    return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

int cgroup_remove(const char *path) {
    return cgroup_walk(path, cgroup_remove_one, 0);
}
