/* SPDX-License-Identifier: MIT */

/* Checks a config against what this machine can do. */

#include <errno.h>

#include "base/process/cgroup-control.h"
#include "base/process/cgroup.h"
#include "base/cleanup.h"
#include "conf/syntax/notes.h"
#include "conf/settings.h"

static void check_job(const struct job_settings *job, unsigned available, struct notes *notes) {
    const struct {
        unsigned controller;
        bool is_needed;
        const char *option, *name;
    } needs[] = {{CGROUP_MEMORY, job->resources.memory_max > 0, "memory-max", "memory"},
                 {CGROUP_MEMORY, job->resources.memory_high > 0, "memory-high", "memory"},
                 {CGROUP_CPU, job->resources.cpu_weight > 0, "cpu-weight", "cpu"},
                 {CGROUP_PIDS, job->resources.tasks_max > 0, "tasks-max", "pids"}};

    for (size_t i = 0; i < ELEMENTSOF(needs); i++)
        if (needs[i].is_needed && !(needs[i].controller & available))
            notes_add(notes, &job->place,
                      "job \"%s\": %s needs the controller \"%s\" of cgroup v2, which this machine does not have; remove it, or have "
                      "the machine boot with that controller",
                      job->name, needs[i].option, needs[i].name);
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
