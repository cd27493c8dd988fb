/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-runner: starts the jobs that root configured, when berthd requests it (base/protocol.h). */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "conf/settings.h"

struct runner;

struct runner_options {
    const char *config;        /* path; read again when berthd requests an unknown job */
    struct settings *settings; /* from that path; ownership passes to the runner */
    int socket_fd;             /* berthd's socketpair, owned by the runner; -1: berthd connects to runner/runner.sock */
    int listen_fd;             /* that socket from the service manager, owned by the runner; or -1 */
};

/* Creates the directories, takes the lock, finds living guards, listens. Returns 0 or a negative errno,
 * logged; -EBUSY: there is another runner. The journal must outlive the runner. */
int runner_new(struct runner **ret, sd_event *event, struct journal *journal, const struct runner_options *options);
struct runner *runner_free(struct runner *r); /* guards live on */
DEFINE_CLEANUP(struct runner, runner_free)
