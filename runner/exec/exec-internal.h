/* SPDX-License-Identifier: MIT */
#pragma once

/* The steps of exec_child() that have files of their own. They run in the child and return 0 or a
 * negative errno. */

#include <pwd.h>

#include "runner/exec/exec.h"

struct exec_context {
    struct exec_plan *plan;
    struct environment environment; /* of the command */
    const char **stage;             /* name of the current step, for a failure */
    int journal_fd;                 /* the stream to the journal; -1: none */
};

/* runner/exec/exec-plan.c: looks up user, groups and the variables that depend on them. -EPERM "user": this
 * process may not become the configured user or group; -ESRCH "user" or "group": it does not exist; -EACCES
 * "user": uid 0 with a name other than root; -EINVAL "user": an invalid uid. */
int exec_look_up(struct exec_context *context);

/* runner/exec/exec-rlimits.c. Raising limits and lowering nice and the OOM score needs privileges. */
int exec_set_rlimits(struct exec_context *context); /* without that of exec_set_late_rlimits() */
int exec_set_nice(struct exec_context *context);
int exec_set_oom_score(struct exec_context *context);
int exec_set_io_class(struct exec_context *context);
/* Sets a limit of descriptors that is lower than the present one. With it, no output could be opened.
 * Lowering needs no privileges. */
int exec_set_late_rlimits(struct exec_context *context);

/* Sets the text of the failure, which becomes the reason of the run, and returns r. */
int exec_explain(struct exec_context *context, int r, const char *format, ...) _printf_(3, 4);

/* runner/exec/exec-environment.c: reads files as the user of berth-runner */
int exec_environment(struct exec_context *context);
/* Sets HOME to LANG. user: the command's user; NULL if its uid has no name. 0 or -ENOMEM. */
int exec_init_environment(struct environment *e, const struct passwd *user);

/* runner/exec/exec-credentials.c: as well */
int exec_credentials(struct exec_context *context);

/* runner/exec/exec-drop.c */
int exec_set_ids(struct exec_context *context);
int exec_drop_capabilities(struct exec_context *context);
/* Checks that uid, gid and groups are those of the plan, and that the old ones cannot be regained. */
int exec_verify_ids(struct exec_context *context);
int exec_set_no_new_privileges(struct exec_context *context);

/* runner/exec/exec-file.c: opens a file of the config, and does not block on a FIFO without a peer. Returns a
 * blocking descriptor or a negative errno; -ELOOP: another user could have made a symbolic link on the
 * path. */
int exec_open_file(const char *path, int flags);
