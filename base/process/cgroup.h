/* SPDX-License-Identifier: MIT */
#pragma once

/* Control groups v2, used for one thing: to know and to kill all processes of a run, whatever they did to hide
 * (Linux: Documentation/admin-guide/cgroup-v2.rst). Controllers are in
 * base/process/cgroup-control.h. Where none may be made, supervise does without. */

#include <sys/types.h>

/* The directory of this process's cgroup, to be freed, if it may make groups below it: one that it owns or was delegated to it,
 * or any where no systemd manages them. -EOPNOTSUPP: there is no cgroup v2 here; -EACCES: it may not. */
int cgroup_find_own(char **ret);
/* Where cgroup v2 is mounted, to be freed. -EOPNOTSUPP: nowhere. */
int cgroup_find_root(char **ret);
/* 0 or a negative errno; -EEXIST: somebody else's. */
int cgroup_make(const char *path);
/* Forks a child that is born in the group: clone3(CLONE_INTO_CGROUP), Linux 5.7. The child's pid, 0 in the child, or a negative
 * errno; then fork(2) and cgroup_enter() do the same, but that waits some 10 ms for the kernel. */
pid_t cgroup_fork(const char *path);
/* Moves the calling process into the group. Allocates nothing. 0 or an errno, positive. */
int cgroup_enter(const char *path);
/* A signal for every process of the group and the groups below it. How many there were, or a negative errno. */
int cgroup_signal(const char *path, int signal);
/* SIGKILL for all of them, at once (cgroup.kill, Linux 5.14), else one by one. 0, also if the group is gone, or a negative errno. */
int cgroup_kill(const char *path);
/* Whether a living process is in the group or below. 1, 0 (also if it is gone), or a negative errno. */
int cgroup_is_populated(const char *path);
/* The group's cgroup.events: ready for EPOLLPRI when that has changed since it was last read (Linux: kernfs_notify()). A descriptor, or a
 * negative errno. */
int cgroup_open_events(const char *path);
/* The same answer as cgroup_is_populated(), but -ENODEV: the group is gone. It is ready for ever then. */
int cgroup_read_events(int fd);
/* Removes it and the groups below. 0, also if it is gone; -EBUSY while there are processes. */
int cgroup_remove(const char *path);
