/* SPDX-License-Identifier: MIT */
#pragma once

/* The files of a control group v2 and its controllers (Linux: Documentation/admin-guide/cgroup-v2.rst). Sets
 * of controllers are masks. */

#include <inttypes.h>
#include <stdbool.h>

enum { CGROUP_CPU = 1, CGROUP_MEMORY = 2, CGROUP_PIDS = 4 };
#define CGROUP_NAMES_SIZE 24

/* Stores the controllers that this group could enable for groups below it. 0 or a negative errno. */
int cgroup_available(const char *path, unsigned *ret);
/* Returns the controllers of the groups below this one. */
unsigned cgroup_enabled(const char *path);
/* Enables those of these controllers that are not enabled; moves no process. Returns those that stay
 * disabled: they are not delegated, or processes in this very group prevent it ("no internal processes"). */
unsigned cgroup_enable(const char *path, unsigned controllers);
/* Moves the processes of this very group to a group below it, made if necessary. 0 or a negative errno. */
int cgroup_move_down(const char *path, const char *name);
/* Returns whether systemd has delegated this group. Then it contains only processes of its owner. */
bool cgroup_is_delegated(const char *path);
/* Read a file of the group, to be freed, and write one, without allocation. 0; -ENOENT: no such file or
 * group; another negative errno. */
int cgroup_read(const char *path, const char *file, char **ret);
int cgroup_write(const char *path, const char *file, const char *text);
/* Writes a number, for example to "memory.max". */
int cgroup_set(const char *path, const char *file, uint64_t value);
/* "memory, pids" */
const char *cgroup_format(unsigned controllers, char buffer[static CGROUP_NAMES_SIZE]);
