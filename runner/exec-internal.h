/* SPDX-License-Identifier: MIT */
#pragma once

/* The steps of exec_child() that have files of their own; in the child, after the fork. Each returns 0 or an errno, positive, with
 * its stage. */

#include "runner/exec.h"

/* While it is still who the runner is: limits (but those that exec_bounds_late() sets), nice, OOM score. Lowering the last two and
 * raising the first needs privileges, the new user has none. Stages "limits", "nice", "oom-score". */
int exec_bounds(const struct exec_plan *plan, const char **ret_stage);
/* A limit of descriptors below ours, which would be in the way of opening the command's. Lowering needs no privileges. Stage "limits". */
int exec_bounds_late(const struct exec_plan *plan, const char **ret_stage);

/* Becomes uid, gid and groups of the plan, gives up all capabilities if that is not root, looks whether all that is so, and tries to
 * get back. Stages "user", "capabilities". */
int exec_drop(const struct exec_plan *plan, const char **ret_stage);
/* no-new-privileges; the last thing before exec. Stage "privileges". */
int exec_renounce(const struct exec_plan *plan, const char **ret_stage);

/* Opens a job's output file, to append to. A descriptor, or a negative errno: -ELOOP: there is a symbolic link on the way, and somebody
 * else could have made it. */
int exec_open_output(const char *path);
