/* SPDX-License-Identifier: MIT */
#include "runner/resource-control.h"

#include <errno.h>

#include "base/process/cgroup.h"

#define GUARDS_GROUP "guards"

unsigned resource_control_needed(const struct job_settings *job) {
    return (job->resources.cpu_weight > 0 ? CGROUP_CPU : 0U) | (job->resources.memory_max > 0 ? CGROUP_MEMORY : 0U) | (job->resources.tasks_max > 0 ? CGROUP_PIDS : 0U);
}

/* A group with processes of its own must not have controllers below it, and we are in this one. Controllers of a group outlive us: the
 * unit's ExecStopPost= switches them off again, for systemd before 254 cannot start a service in such a group. We move where
 * systemd delegated, and nowhere else: processes of others may be in another group. */
unsigned resource_control_prepare(const char *cgroup, unsigned controllers) {
    if (controllers == 0 || !cgroup)
        return controllers;
    if ((cgroup_enabled(cgroup) & controllers) == controllers)
        return 0;
    if (cgroup_is_delegated(cgroup) && cgroup_move_down(cgroup, GUARDS_GROUP) < 0)
        return controllers & ~cgroup_enabled(cgroup);
    return cgroup_enable(cgroup, controllers);
}

int resource_control_apply(const char *cgroup, const struct job_settings *job) {
    const struct {
        const char *file;
        uint64_t value;
    } bounds[] = {{"memory.max", job->resources.memory_max}, {"cpu.weight", job->resources.cpu_weight}, {"pids.max", job->resources.tasks_max}};

    for (size_t i = 0; i < ELEMENTSOF(bounds); i++) {
        int r = bounds[i].value > 0 ? cgroup_set(cgroup, bounds[i].file, bounds[i].value) : 0;

        if (r < 0 && r != -ENOENT)
            return -r;
    }
    return 0;
}

int resource_control_begin(const char *cgroup, const struct job_settings *job, const char **ret_cgroup) {
    int r;

    *ret_cgroup = NULL;
    if (!cgroup[0])
        return 0;
    r = -cgroup_make(cgroup);
    if (r != 0)
        return resource_control_needed(job) != 0 ? r : 0;
    *ret_cgroup = cgroup;
    return resource_control_apply(cgroup, job);
}
