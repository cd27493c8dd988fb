/* SPDX-License-Identifier: MIT */
#include "runner/resource-control.h"

#include <errno.h>
#include <stdio.h>
#include <syslog.h>

#include "base/journal/event.h"
#include "base/process/cgroup.h"

#define GUARDS_GROUP "guards"

unsigned resource_control_needed(const struct job_settings *job) {
    struct resource_bound bounds[RESOURCE_BOUNDS];
    unsigned needed = 0;

    resource_control_list(&job->resources, bounds);
    for (size_t i = 0; i < RESOURCE_BOUNDS; i++)
        needed |= bounds[i].value > 0 ? bounds[i].controller : 0U;
    return needed;
}

/* A cgroup that has processes must not enable controllers for the groups below it, so berth-runner leaves
 * its own cgroup first. It does so only if systemd delegated that cgroup; any other may have processes of
 * other programs. The unit's ExecStopPost= disables the controllers: systemd before 254 cannot start a
 * service in such a cgroup. */
unsigned resource_control_prepare(const char *cgroup, unsigned controllers) {
    if (controllers == 0 || !cgroup)
        return controllers;
    if ((cgroup_enabled(cgroup) & controllers) == controllers)
        return 0;
    if (cgroup_is_delegated(cgroup) && cgroup_move_down(cgroup, GUARDS_GROUP) < 0)
        return controllers & ~cgroup_enabled(cgroup);
    return cgroup_enable(cgroup, controllers);
}

void resource_control_warn(struct journal *journal, const struct guard_file *record, unsigned missing) {
    char names[CGROUP_NAMES_SIZE], text[160];
    const struct journal_field fields[] = {{"BERTH_EVENT", event_name(EVENT_UNBOUNDED)},
                                           {"BERTH_JOB", record->job},
                                           {"BERTH_RUN", record->run},
                                           {"BERTH_HOST", record->host},
                                           {"BERTH_NAMESPACE", record->namespace},
                                           {"BERTH_REASON", names}};

    if (missing == 0)
        return;
    snprintf(text, sizeof(text),
             "%s runs without the bounds that its config asks for: no cgroup controller here for %s",
             record->job, cgroup_format(missing, names));
    journal_send(journal, LOG_WARNING, event_message_id(EVENT_UNBOUNDED), event_name(EVENT_UNBOUNDED), text,
                 fields, ELEMENTSOF(fields));
}

int resource_control_apply(const char *cgroup, const struct job_settings *job) {
    struct resource_bound bounds[RESOURCE_BOUNDS];

    resource_control_list(&job->resources, bounds);
    for (size_t i = 0; i < RESOURCE_BOUNDS; i++) {
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
