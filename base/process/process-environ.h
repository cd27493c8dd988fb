/* SPDX-License-Identifier: MIT */
#pragma once

/* The last way to find what is left of a run when its guard and the runner are gone and there is no cgroup: BERTH_RUN in the
 * environment with which a process was started. A process that cleans its environment escapes it. */

/* Sends a signal to all processes but this one that were started with exactly this "NAME=value" in their environment. How many
 * there were that live, or a negative errno (also: not all could be looked at just now); processes whose environment this one may not read are passed over. */
int process_environ_signal(const char *assignment, int signal);
