/* SPDX-License-Identifier: MIT */
#pragma once

/* The files of a control group v2, and its controllers: which there are, switching them on for the groups below, and what they are
 * told (Linux: Documentation/admin-guide/cgroup-v2.rst). Sets of controllers are masks. */

#include <inttypes.h>
#include <stdbool.h>

enum { CGROUP_CPU = 1, CGROUP_MEMORY = 2, CGROUP_PIDS = 4 };
#define CGROUP_NAMES_SIZE 24

/* Those that this group could give to groups below it. 0 and *ret, or a negative errno. */
int cgroup_available(const char *path, unsigned *ret);
/* Those that groups below this one have. */
unsigned cgroup_enabled(const char *path);
/* Switches on what of these is not; moves nothing. Returns those that are missing still: not delegated, or there are processes in this
 * very group, which the kernel then forbids ("no internal processes"). */
unsigned cgroup_enable(const char *path, unsigned controllers);
/* Moves the processes of this very group to a group below it, which is made if need be. 0 or a negative errno. */
int cgroup_move_down(const char *path, const char *name);
/* Whether systemd leaves this group to whom it runs. Then nobody else's processes are in it. */
bool cgroup_is_delegated(const char *path);
/* One of its files, to be freed; and what is written to one, which allocates nothing. 0; -ENOENT: there is no such file, or no such
 * group; another negative errno. */
int cgroup_read(const char *path, const char *file, char **ret);
int cgroup_write(const char *path, const char *file, const char *text);
/* Writes a number, to "memory.max" say. */
int cgroup_set(const char *path, const char *file, uint64_t value);
/* "memory, pids" */
const char *cgroup_format(unsigned controllers, char buffer[static CGROUP_NAMES_SIZE]);
