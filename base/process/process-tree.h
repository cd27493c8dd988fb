/* SPDX-License-Identifier: MIT */
#pragma once

/* Processes by descent, through /proc. Pids are looked up and used at once, through pidfds: never kept as identity. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

/* Sends a signal to every descendant of `root`, children of subreaped orphans included, but not to root itself. Goes over
 * the tree again until a pass finds no process that it has not signalled (a fork race cannot slip through with SIGKILL).
 * How many living processes the last pass saw (0: there is nothing left), or a negative errno. A process that may not be
 * signalled counts, and is left. */
int process_tree_signal(pid_t root, int signal);
/* The same, but for the children of root that `except` names, and all below them. */
int process_tree_signal_except(pid_t root, int signal, const pid_t *except, size_t n_except);
/* Sends a signal to one process if it is the one that started then. 0, -ESRCH, or another negative errno. */
int process_signal(pid_t pid, uint64_t start_ticks, int signal);
/* Lists the first n living (not zombie) descendants. Returns how many there are, or a negative errno. */
int process_tree_list(pid_t root, pid_t *ret, size_t n);
/* Whether `pid` is `root` or one of its descendants right now. 1, 0, or a negative errno. */
int process_tree_contains(pid_t root, pid_t pid);

/* What makes a pid an identity: its start time in clock ticks since boot (field 22 of /proc/PID/stat). -ESRCH if it is gone. */
int process_start_time(pid_t pid, uint64_t *ret_ticks);
/* An error that is about no process: this one is out of descriptors or memory, so nobody can be seen now, which is no reason to
 * believe that nobody is there. */
bool process_error_is_ours(int error);
/* Whether it has called exec since it was forked. 1, 0, or a negative errno; also for a zombie. */
int process_has_execed(pid_t pid);
