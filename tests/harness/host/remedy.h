/* SPDX-License-Identifier: MIT */
#pragma once

#include "tests/harness/host/host.h"

/* Asks `berth doctor` of a host for a check, and runs the commands below its findings as they are printed, in a shell: `berth` speaks to
 * `on`, and redis-cli to the cluster's Redis. A failed assertion if there is no command, or one fails. */
void remedy_run(struct host *asked, struct host *on, const char *check);
