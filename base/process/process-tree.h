/* SPDX-License-Identifier: MIT */
#pragma once

/* Processes by descent, through /proc. A pid is used at once, through a pidfd, and never kept as an
 * identity. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Signals every descendant of `root`, adopted orphans included, but not root itself, and neither its children in
 * `except` nor their descendants. Repeats the walk until it finds no process that was not signalled (with SIGKILL no fork
 * can escape). Returns how many living processes the last walk found (0: none is left), or a negative errno. A process
 * that may not be signalled counts as living. */
int process_tree_signal(pid_t root, int signal, const pid_t *except, size_t n_except);
/* Signals a process if it has this start time. 0, -ESRCH, or another negative errno. */
int process_signal(pid_t pid, uint64_t start_ticks, int signal);
/* Lists the first n living (not zombie) descendants, `except` as above. Returns how many there are, or a negative errno. */
int process_tree_list(pid_t root, const pid_t *except, size_t n_except, pid_t *ret, size_t n);
/* Returns the pid of a living descendant, `except` as above. Without one, returns that of a descendant that is not reaped
 * yet. 0: there are no descendants. Or a negative errno. */
pid_t process_tree_find(pid_t root, const pid_t *except, size_t n_except);
/* Returns whether `pid` is `root` or one of its descendants, `except` as above: 1, 0, or a negative errno. */
int process_tree_contains(pid_t root, const pid_t *except, size_t n_except, pid_t pid);

/* Returns the start time in clock ticks since boot (field 22 of /proc/PID/stat), which makes a pid an
 * identity. -ESRCH: there is no such process. */
int process_start_time(pid_t pid, uint64_t *ret_ticks);
/* Returns whether a process is in this PID namespace, and not in one inside of it, where processes have other pids. */
bool process_is_in_own_namespace(pid_t pid);
/* Returns whether a process has called exec since it was forked: 1, 0, or a negative errno; also for a
 * zombie. */
int process_has_execed(pid_t pid);
