/* SPDX-License-Identifier: MIT */
#pragma once

/* The steps of exec_child() that have files of their own. They run in the child and return 0 or a
 * negative errno. */

#include "runner/exec.h"

struct exec_context {
    struct exec_plan *plan;
    struct environment environment; /* of the command */
    const char **stage;             /* of a failure, of the step that is under way */
    int journal_fd;  /* the stream to the journal; -1: none */
};

/* runner/exec-plan.c: user, groups and what depends on them. EPERM "user": a user or group is configured and this process may not become
 * it; ESRCH "user" or "group": there is no such one; EACCES "user": it is uid 0, and not called root; EINVAL: its uid is invalid. */
int exec_look_up(struct exec_context *context);

/* runner/exec-rlimits.c. Raising limits and lowering nice and the OOM score needs privileges. */
int exec_set_rlimits(struct exec_context *context); /* but those of exec_set_late_rlimits() */
int exec_set_nice(struct exec_context *context);
int exec_set_oom_score(struct exec_context *context);
int exec_set_io_class(struct exec_context *context);
/* Sets a limit of descriptors that is below ours. Before, no output could be opened; lowering needs no
 * privileges. */
int exec_set_late_rlimits(struct exec_context *context);

/* Sets the text of the failure, which becomes the reason of the run, and returns r. */
int exec_explain(struct exec_context *context, int r, const char *format, ...) _printf_(3, 4);

/* runner/exec-environment.c: reads files as the user of berth-runner */
int exec_environment(struct exec_context *context);

/* runner/exec-credentials.c: likewise */
int exec_credentials(struct exec_context *context);

/* runner/exec-drop.c */
int exec_set_ids(struct exec_context *context);
int exec_drop_capabilities(struct exec_context *context);
/* Checks that uid, gid and groups are those of the plan, and that the old ones cannot be had again. */
int exec_verify_ids(struct exec_context *context);
int exec_set_no_new_privileges(struct exec_context *context);

/* Opens a file of the config without waiting for the other end of a FIFO. A descriptor that may wait, or a
 * negative errno. -ELOOP: somebody else could have made a symbolic link on the path. */
int exec_open_file(const char *path, int flags);
