/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-runner: starts what root configured, when berthd asks for it. Talks to berthd alone (base/protocol.h). */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "conf/settings.h"


struct runner;

struct runner_options {
    const char *config;        /* path, read again when berthd names a job that is not known */
    struct settings *settings; /* as read from it; the runner's from now on */
    int socket_fd;             /* berthd's socketpair, the runner's from now on; -1: others connect to runner/runner.sock */
    int listen_fd;             /* that socket, made by the service manager, the runner's from now on; -1: it is made here */
};

/* Makes the directories, takes the lock, finds guards again, listens. Negative errno, said in the journal; -EBUSY: there is another
 * runner. The journal must outlive it. */
int runner_new(struct runner **ret, sd_event *event, struct journal *journal, const struct runner_options *options);
struct runner *runner_free(struct runner *r); /* leaves guards alone */
DEFINE_CLEANUP(struct runner, runner_free)
