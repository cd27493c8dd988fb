/* SPDX-License-Identifier: MIT */
#pragma once

/* Turns a job's settings into a command with its user, environment, input and output. The child does all of
 * it (exec_child), because a lookup that hangs can be killed there. The child waits at its gate
 * (base/process/gate.h) before it looks at anything that may change, and before it drops privileges. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/process/gate.h"
#include "base/process/supervise.h"
#include "conf/settings.h"
#include "runner/exec/environment.h"
#include "runner/guard-file.h"

struct exec_plan {
    const struct job_settings *job;
    const struct guard_file *record;
    const char *runs;    /* directory of the runs */
    bool changes_user;   /* drop to uid, gid, groups */
    uid_t uid;
    gid_t gid;
    gid_t *groups;       /* sorted */
    size_t n_groups;
    char *home;          /* of the user */
    struct environment environment; /* HOME to LANG; the child adds the rest */
    pid_t parent;        /* the guard: the command dies with it */
    struct gate *gate;
    const struct supervise_term *term; /* checked right before exec */
    char text[SUPERVISE_TEXT_SIZE];    /* set in the child: what failed, if an errno is not enough */
};

/* The caller sets gate and term. */
void exec_plan_init(struct exec_plan *plan, const struct job_settings *job, const struct guard_file *record, const char *runs);

/* A supervise_child_fn; userdata is the plan, whose text is set in the child. */
int exec_child(void *userdata, const char **ret_stage);
