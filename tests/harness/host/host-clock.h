/* SPDX-License-Identifier: MIT */
#pragma once

/* Clocks of one host that the test controls (tests/harness/clock-file.h): all its programs see the same
 * jumps. */

#include "tests/harness/host/host.h"

#define QUICK "command = {\"/bin/true\"} output = \"null\" "
#define MARKER_WITH(options) "pool \"local\" { limit = 1 scope = \"host\" }\njob \"marker\" { " QUICK options "}\n"
#define MARKER MARKER_WITH("")
/* Runs the marker: berthd has begun what was due before. */
void host_await_marker(struct host *h);

/* To be called before the host is started; lasts until cluster_down(). */
void host_clock_give(struct host *h);
/* Sets CLOCK_REALTIME to an RFC 3339 time and so many ms more. */
void host_clock_set(struct host *h, const char *time, int64_t msec);
/* From its next start on, the host has only the time zones written here. offset: seconds east, all year. */
void host_clock_write_zone(struct host *h, const char *name, int32_t offset);
void host_clock_remove_zone(struct host *h, const char *name);
/* Advances CLOCK_BOOTTIME by this many µs, as a suspend does. */
void host_clock_jump(struct host *h, usec_t usec);
/* Sets CLOCK_REALTIME off by this many µs. */
void host_clock_step(struct host *h, int64_t usec);
/* Sets CLOCK_REALTIME to this time, from which it runs on. */
void host_clock_set_realtime(struct host *h, usec_t realtime);
/* See clock_file_end_berthd(). */
void host_clock_end_berthd(struct host *h, unsigned effects);
unsigned host_clock_effects(struct host *h);
void host_clock_lose_kills(struct host *h, bool are_lost);
void host_clock_stall_disk(struct host *h, bool is_stalled);
