/* SPDX-License-Identifier: MIT */
#pragma once

/* Kills the processes of a run whose guard has died, and reports the end of the run in its place. The
 * runner's own descendants are killed in runner/runs.c. */

/* Named answers of leftovers_kill(). */
enum { LEFTOVERS_E_SOME = 1, LEFTOVERS_E_NO_CGROUP };

/* Kills the processes in the run's cgroup. Returns 0: none was left, and the cgroup is removed;
 * LEFTOVERS_E_SOME: some were left, or that cannot be determined now;
 * LEFTOVERS_E_NO_CGROUP: only their environment identifies the run's processes. */
int leftovers_kill(const char *directory, const char *run);
/* Sends the kill alone, while the guard may live. */
void leftovers_kill_cgroup(const char *directory, const char *run);
/* Writes the report of such a run: it was lost. 0 or a negative errno. */
int leftovers_write_report(const char *directory, const char *run);
