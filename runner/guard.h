/* SPDX-License-Identifier: MIT */
#pragma once

/* The guard: the process that starts the command of one run, stops it before its deadline, and reports
 * its end. It needs neither berthd nor berth-runner for that. */

#include "conf/settings.h"
#include "runner/access.h"
#include "runner/guard-file.h"

struct guard_start {
    const struct guard_file *record;
    const struct job_settings *job;
    const struct access *access;
    const char *directory; /* runs */
    int lifeline_fd;       /* of a prepared guard: a pipe whose writer is the runner; else -1 */
    int listen_fd;         /* of RUN.sock */
    int record_fd;         /* holds the lock */
};

/* Runs in the forked child and ends it. Closes all descriptors but 0, 1, 2 and those of `start`. Does not
 * free the memory of berth-runner, so its pages stay shared. */
_Noreturn void guard_main(const struct guard_start *start);
