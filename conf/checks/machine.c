/* SPDX-License-Identifier: MIT */

/* Checks a config against what this machine can do, and lists the bounds that need a controller. */

#include <errno.h>
#include <string.h>

#include "base/process/cgroup-control.h"
#include "base/process/cgroup.h"
#include "base/cleanup.h"
#include "conf/syntax/notes.h"
#include "conf/settings.h"

void resource_control_list(const struct resource_control *resources, struct resource_bound ret[static RESOURCE_BOUNDS]) {
    const struct resource_bound bounds[] = {
        {"memory-max", CGROUP_MEMORY, "memory.max", resources->memory_max},
        {"memory-high", CGROUP_MEMORY, "memory.high", resources->memory_high},
        {"cpu-weight", CGROUP_CPU, "cpu.weight", resources->cpu_weight},
        {"tasks-max", CGROUP_PIDS, "pids.max", resources->tasks_max},
    };

    _Static_assert(sizeof(bounds) == RESOURCE_BOUNDS * sizeof(*ret), "RESOURCE_BOUNDS is another number");
    memcpy(ret, bounds, sizeof(bounds));
}

static void check_job(const struct job_settings *job, unsigned available, struct notes *notes) {
    struct resource_bound bounds[RESOURCE_BOUNDS];
    char name[CGROUP_NAMES_SIZE];

    resource_control_list(&job->resources, bounds);
    for (size_t i = 0; i < RESOURCE_BOUNDS; i++)
        if (bounds[i].value > 0 && !(bounds[i].controller & available))
            notes_add(notes, &job->place,
                      "job \"%s\": %s needs the controller \"%s\" of cgroup v2, which this machine does not have; remove it, or have "
                      "the machine boot with that controller",
                      job->name, bounds[i].option, cgroup_format(bounds[i].controller, name));
}

int settings_check_controllers(const struct settings *s, unsigned available, struct settings_errors *errors) {
    struct notes notes = {};
    int r;

    for (size_t i = 0; i < s->n_jobs; i++)
        check_job(&s->jobs[i], available, &notes);
    r = notes.out_of_memory ? -ENOMEM : notes.n > 0 ? SETTINGS_E_INVALID : 0;
    notes_finish(&notes, s->files, s->n_files, errors);
    notes_done(&notes);
    return r;
}

/* If the machine's controllers cannot be determined, there is no error. */
static int check_own_controllers(const struct settings *s, struct settings_errors *errors) {
    _cleanup_free_ char *root = NULL;
    unsigned available = 0;
    int r = cgroup_find_root(&root);

    if (r == 0)
        r = cgroup_available(root, &available);
    if (r == -ENOMEM)
        return r;
    return r < 0 && r != -EOPNOTSUPP ? 0 : settings_check_controllers(s, available, errors);
}

int settings_check_machine(struct settings *s, struct settings_errors *errors) {
    size_t n = errors->n;
    int r = settings_find_accounts(s, errors);

    if (r == 0)
        r = settings_check_commands(s, errors);
    if (r >= 0)
        r = settings_check_zones(s, ZONE_DIRECTORY, clock_realtime(), errors);
    if (r >= 0)
        r = check_own_controllers(s, errors);
    return r >= 0 && errors->n > n ? SETTINGS_E_INVALID : r;
}
