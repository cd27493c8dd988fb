/* SPDX-License-Identifier: MIT */
#pragma once

/* Kills the processes of a run whose guard has died, and reports the end of the run in its place. The
 * runner's own descendants are killed in runner/runs.c. */

#include <stdbool.h>

/* Kills the processes in the run's cgroup, or without a cgroup those with its BERTH_RUN in their
 * environment. Returns true if none was left, false also if that cannot be determined now. */
bool leftovers_kill(const char *directory, const char *run);
/* Writes the report of such a run: it was lost. 0 or a negative errno. */
int leftovers_write_report(const char *directory, const char *run);
