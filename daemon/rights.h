/* SPDX-License-Identifier: MIT */
#pragma once

/* Who may do what. A right follows from the credentials of the connection (base/socket.h) and the config alone, so it is decided for
 * each call and a reload changes it at once. Nothing is inherited: a `berth run` inside a run has the rights of its own process. */

#include "base/socket.h"
#include "conf/settings.h"
#include "daemon/runs/run.h"

enum right {
    RIGHT_MISSING,   /* of a method that was given none: control_new() refuses it */
    RIGHT_LOOK,      /* methods that only show: every client that can connect */
    RIGHT_RUN,       /* `berth run`, and the stop of one's own: members of run-group */
    RIGHT_OPERATE,   /* all else: root, berthd's own user, members of operate-group */
    RIGHT_BY_TARGET, /* of a method that asks rights_cover_...() itself, about the run, job or pools that the call names */
};
const char *right_name(enum right right); /* "look", "run", "operate" */

/* The greatest right of a caller: LOOK, RUN or OPERATE. */
enum right rights_get(const struct settings *s, const struct caller *c);
/* Whether a caller may use a pool by `berth run`. */
bool rights_cover_pool(const struct settings *s, const struct caller *c, const struct pool_settings *pool);
/* Whether a caller may start and stop a job. job: NULL if the config does not have it (any more). */
bool rights_cover_job(const struct settings *s, const struct caller *c, const struct job_settings *job);
/* Whether a caller may stop a run: its own ad hoc run, or one of a job that it may stop. */
bool rights_cover_run(const struct settings *s, const struct caller *c, const struct run *run);

/* "root and members of group berth-admin have it". besides: others who have it, or NULL; who has the right to run on a pool with `users`
 * is who operates, and these. Returns buffer. */
#define RIGHTS_TEXT_SIZE 1024
const char *rights_format_holders(const struct settings *s, enum right right, const struct accounts *besides,
                                  char buffer[static RIGHTS_TEXT_SIZE]);
