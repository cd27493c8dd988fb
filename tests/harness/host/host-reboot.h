/* SPDX-License-Identifier: MIT */
#pragma once

/* A host that goes down without warning, and boots again. */

#include "tests/harness/host/host.h"

/* Kills berthd and all that it and its runners started, and removes the runtime directory. host_start() is
 * the next boot. The state directory must be elsewhere (HOST_LASTING). For the only host of a test. */
void host_reboot(struct host *h);

/* For the begin of a config; needs cluster.folder as an argument of printf. */
#define HOST_LASTING "state-directory = \"%s/lasting\"\n"
