/* SPDX-License-Identifier: MIT */
#pragma once

/* Processes by descent, through /proc. Pids are looked up and used at once, through pidfds: never kept as identity. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

/* Sends a signal to every descendant of `root`, children of subreaped orphans included, but not to root itself. Goes over
 * the tree again until a pass finds no process that it has not signalled (a fork race cannot slip through with SIGKILL).
 * The number of processes signalled in the last pass, or a negative errno. */
int process_tree_signal(pid_t root, int signal);
/* How many living (not zombie) descendants there are. */
int process_tree_count(pid_t root);
/* Whether `pid` is `root` or one of its descendants right now. 1, 0, or a negative errno. */
int process_tree_contains(pid_t root, pid_t pid);

/* What makes a pid an identity: its start time in clock ticks since boot (field 22 of /proc/PID/stat). -ESRCH if it is gone. */
int process_start_time(pid_t pid, uint64_t *ret_ticks);
