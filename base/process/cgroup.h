/* SPDX-License-Identifier: MIT */
#pragma once

/* Control groups v2, used to find and kill all processes of a run (Linux:
 * Documentation/admin-guide/cgroup-v2.rst). Controllers are in base/process/cgroup-control.h. Where no group
 * can be made, supervise works without. */

#include <sys/types.h>

/* Returns the directory of this process's cgroup, to be freed, if it may make groups below it: it owns the
 * group, the group was delegated to it, or no systemd manages the groups. -EOPNOTSUPP: there is no cgroup
 * v2; -EACCES: not permitted. */
int cgroup_find_own(char **ret);
/* Returns where cgroup v2 is mounted, to be freed. -EOPNOTSUPP: nowhere. */
int cgroup_find_root(char **ret);
/* 0 or a negative errno; -EEXIST: the group exists already. */
int cgroup_make(const char *path);
/* Forks a child into the group with clone3(CLONE_INTO_CGROUP), Linux 5.7. Returns the child's pid, 0 in the
 * child, or a negative errno; fork(2) and cgroup_enter() then do the same, but take some 10 ms longer. */
pid_t cgroup_fork(const char *path);
/* Moves the calling process into the group. Allocates nothing. 0 or an errno, positive. */
int cgroup_enter(const char *path);
/* Signals every process of the group and the groups below it. Returns their number, or a negative errno. */
int cgroup_signal(const char *path, int signal);
/* Kills them all, at once (cgroup.kill, Linux 5.14) or one by one. 0, also if the group is gone, or a
 * negative errno. */
int cgroup_kill(const char *path);
/* Returns whether a living process is in the group or below: 1, 0 (also if the group is gone), or a negative
 * errno. */
int cgroup_is_populated(const char *path);
/* Opens the group's cgroup.events, which is ready for EPOLLPRI when it has changed since the last read
 * (Linux: kernfs_notify()). A descriptor, or a negative errno. */
int cgroup_open_events(const char *path);
/* Returns the same as cgroup_is_populated(), but -ENODEV if the group is gone. The file stays ready then. */
int cgroup_read_events(int fd);
/* Removes the group and those below. 0, also if it is gone; -EBUSY: there are processes. */
int cgroup_remove(const char *path);
