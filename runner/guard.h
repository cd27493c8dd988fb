/* SPDX-License-Identifier: MIT */
#pragma once

/* The process that watches over one run: it started the command, stops it when its deadline passes, and tells how it ended. It
 * needs neither berthd nor the runner for any of that. */

#include "conf/settings.h"
#include "runner/access.h"
#include "runner/guard-file.h"

struct guard_start {
    const struct guard_file *record;
    const struct job_settings *job;
    const struct access *access;
    const char *directory; /* runs */
    int listen_fd;         /* of RUN.sock */
    int record_fd;         /* holds the lock */
};

/* In the forked child, which it ends. Closes every other descriptor but 0, 1 and 2. What the runner allocated stays untouched, so its
 * pages stay shared. */
_Noreturn void guard_main(const struct guard_start *start);
