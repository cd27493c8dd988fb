/* SPDX-License-Identifier: MIT */
#pragma once

/* From a job's settings to its command: who it runs as, what it sees, where its output goes. The lookups are done before the
 * fork (exec_plan_init), what cannot be undone in the child (exec_child). */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/process/supervise.h"
#include "conf/settings.h"
#include "runner/environment.h"
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
    const struct supervise_term *term; /* looked at right before exec */
    char text[SUPERVISE_TEXT_SIZE];    /* the child's: what failed, where an errno is not enough */
};

/* 0 or an errno, positive, with its stage: EPERM "user": a user or group is configured and this process may not become it;
 * ESRCH "user" or "group": there is no such one; EACCES "user": it is uid 0, and not called root; EINVAL: its uid is invalid. */
int exec_plan_init(struct exec_plan *plan, const struct job_settings *job, const struct guard_file *record, const char *runs,
                   const char **ret_stage);
void exec_plan_done(struct exec_plan *plan);

/* A supervise_child_fn; userdata is the plan, whose text is set in the child. */
int exec_child(void *userdata, const char **ret_stage);
