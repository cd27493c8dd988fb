/* SPDX-License-Identifier: MIT */
#pragma once

/* From a job's settings to its command: who it runs as, what it sees, where its output goes. All of it is done in the child
 * (exec_child): a lookup that hangs there can be killed. The child waits at its gate (base/process/gate.h) before it looks at
 * anything that could change meanwhile, and before it drops a right. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/process/gate.h"
#include "base/process/supervise.h"
#include "conf/settings.h"
#include "runner/environment.h"
#include "runner/guard-file.h"

struct exec_plan {
    const struct job_settings *job;
    const struct guard_file *record;
    const char *runs;    /* directory of the runs */
    bool is_looked_up;   /* what follows up to `environment` is known */
    bool changes_user;   /* drop to uid, gid, groups */
    uid_t uid;
    gid_t gid;
    gid_t *groups;       /* sorted */
    size_t n_groups;
    char *home;          /* of the user */
    struct environment environment; /* HOME to LANG; the child adds the rest */
    pid_t parent;        /* the guard: the command dies with it */
    struct gate *gate;
    const struct supervise_term *term; /* looked at right before exec */
    char text[SUPERVISE_TEXT_SIZE];    /* the child's: what failed, where an errno is not enough */
};

/* gate and term are the caller's to set. */
void exec_plan_init(struct exec_plan *plan, const struct job_settings *job, const struct guard_file *record, const char *runs);

/* A supervise_child_fn; userdata is the plan, whose text is set in the child. */
int exec_child(void *userdata, const char **ret_stage);
