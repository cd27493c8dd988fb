/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-runner: starts the jobs that root configured, when berthd requests it (base/protocol.h). */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "runner/job-config.h"

struct runner;

struct runner_options {
    struct job_config *config; /* borrowed */
    int socket_fd; /* berthd's socketpair, owned by the runner; -1: berthd connects to runner/runner.sock */
    int listen_fd; /* that socket from the service manager, owned by the runner; or -1 */
};

/* Creates the directories, takes the lock, finds living guards, listens. Returns 0 or a negative errno,
 * logged; -EBUSY: there is another runner. The journal and the config must outlive the runner. */
int runner_new(struct runner **ret, sd_event *event, struct journal *journal, const struct runner_options *options);
struct runner *runner_free(struct runner *r); /* guards live on */
DEFINE_CLEANUP(struct runner, runner_free)
