/* SPDX-License-Identifier: MIT */
#pragma once

/* memory-max, cpu-weight and tasks-max: bounds of a run's cgroup. The runner sees to it that there are controllers, the guard sets
 * them before it forks the command. */

#include "base/process/cgroup-control.h"
#include "conf/settings.h"

/* The controllers that a job needs. */
unsigned resource_control_needed(const struct job_settings *job);
/* Has them switched on for the groups below `cgroup` (NULL: there are none), if that can be done. Those that are missing. If the
 * kernel wants that, this process moves out of the way, to a group "guards" below it; and if systemd delegated the group, so do
 * guards of an earlier runner. */
unsigned resource_control_prepare(const char *cgroup, unsigned controllers);
/* Sets the bounds of one run's cgroup, but those whose controller is missing. 0 or an errno, positive. */
int resource_control_apply(const char *cgroup, const struct job_settings *job);
