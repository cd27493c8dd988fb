/* SPDX-License-Identifier: MIT */
#pragma once

/* The bounds of a run's cgroup (struct resource_control). berth-runner enables the controllers, the guard
 * sets the values before it forks the command. */

#include "base/journal/journal.h"
#include "base/process/cgroup-control.h"
#include "conf/settings.h"
#include "runner/guard-file.h"

/* Returns the controllers that a job needs. */
unsigned resource_control_needed(const struct job_settings *job);
/* Enables controllers for the groups below `cgroup` (NULL: none) and returns those that are missing.
 * If systemd delegated the group, this process and guards of an earlier runner first move to a group
 * "guards" below it, as the kernel requires. */
unsigned resource_control_prepare(const char *cgroup, unsigned controllers);
/* Logs that a run goes without the bounds of these missing controllers; 0: none is missing. */
void resource_control_warn(struct journal *journal, const struct guard_file *record, unsigned missing);
/* Sets the values of one run's cgroup, except those whose controller is missing. 0 or an errno, positive. */
int resource_control_apply(const char *cgroup, const struct job_settings *job);
/* Makes the cgroup of a run and sets its values. Without a cgroup *ret_cgroup is NULL, and the guard finds
 * the run's processes by descent. Returns 0 or an errno, positive; a job with bounds fails without a
 * cgroup. */
int resource_control_begin(const char *cgroup, const struct job_settings *job, const char **ret_cgroup);
