/* SPDX-License-Identifier: MIT */
#pragma once

/* What a guard that died has left of its run: killed until there is nothing, then reported in its place. Who is below the runner by
 * descent is the runner's to kill (runner/runs.c). */

#include <stdbool.h>

/* Kills once more what is in the run's cgroup, or, where it has none, has BERTH_RUN in its environment. Whether nothing was left; false,
 * too, if that cannot be told at the moment. directory: of the runs. */
bool reap_run(const char *directory, const char *run);
/* The report of such a run; without a record of it, only that it was lost. 0 or a negative errno. */
int reap_write_report(const char *directory, const char *run);
