/* SPDX-License-Identifier: MIT */
#pragma once

/* Clocks of one host in a test's hands (tests/harness/clock-file.h): all its programs see them jump at once. */

#include "tests/harness/host.h"

/* Before the host is started; until cluster_down(). */
void host_clock_give(struct host *h);
/* CLOCK_BOOTTIME is so many µs further on from now, as after a suspend. */
void host_clock_jump(struct host *h, usec_t usec);
/* CLOCK_REALTIME is off by so many µs from now on. */
void host_clock_step(struct host *h, int64_t usec);
