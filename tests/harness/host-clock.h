/* SPDX-License-Identifier: MIT */
#pragma once

/* Clocks of one host that the test controls (tests/harness/clock-file.h): all its programs see the same
 * jumps. */

#include "tests/harness/host.h"

/* To be called before the host is started; lasts until cluster_down(). */
void host_clock_give(struct host *h);
/* Advances CLOCK_BOOTTIME by this many µs, as a suspend does. */
void host_clock_jump(struct host *h, usec_t usec);
/* Sets CLOCK_REALTIME off by this many µs. */
void host_clock_step(struct host *h, int64_t usec);
