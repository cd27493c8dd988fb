/* SPDX-License-Identifier: MIT */
#pragma once

/* Who may do what. Rights depend on the credentials of the connection (base/socket.h) and the config alone.
 * They are decided for each call, so a reload changes them at once. Nothing is inherited: a `berth run`
 * inside a run has the rights of its own process. */

#include "base/socket.h"
#include "conf/settings.h"
#include "daemon/runs/run.h"

enum right {
    RIGHT_MISSING,   /* a method without a right: control_new() refuses it */
    RIGHT_LOOK,      /* methods that only show: every client that can connect */
    RIGHT_RUN,       /* `berth run`, and to stop one's own runs: members of run-group */
    RIGHT_OPERATE,   /* everything else: root, berthd's own user, members of operate-group */
    RIGHT_BY_TARGET, /* a method that calls rights_cover_...() for the run, job or pools of the call */
};
const char *right_name(enum right right); /* "look", "run", "operate" */

/* Returns the greatest right of a caller: LOOK, RUN or OPERATE. */
enum right rights_get(const struct settings *s, const struct caller *c);
/* Returns whether a caller may use a pool by `berth run`. */
bool rights_cover_pool(const struct settings *s, const struct caller *c, const struct pool_settings *pool);
/* Returns whether a caller may start and stop a job. job: NULL if the config does not have it. */
bool rights_cover_job(const struct settings *s, const struct caller *c, const struct job_settings *job);
/* Returns whether a caller may stop a run: its own ad hoc run, or one of a job that it may stop. */
bool rights_cover_run(const struct settings *s, const struct caller *c, const struct run *run);

/* Writes "root and members of group berth-admin have it". besides: accounts that have the right as well, or
 * NULL; for a pool with `users` these replace the run-group. Returns buffer. */
#define RIGHTS_TEXT_SIZE 1024
const char *rights_format_holders(const struct settings *s, enum right right, const struct accounts *besides,
                                  char buffer[static RIGHTS_TEXT_SIZE]);
