/* SPDX-License-Identifier: MIT */
#pragma once

/* A load of `berth run`s: as one ends, the next one begins. Each takes one or two permits of pool `db` for 10 to
 * 200 ms, and its witness is named "r0", "r1" ... No run may end otherwise than its command does; only a berthd
 * that is just being killed takes no new one. For tests that turn by run_load_turn() while they wait. */

#include <stddef.h>

#include "base/clock.h"
#include "tests/harness/host/host.h"

#define RUN_LOAD_WORKERS 12

/* Starts the job "long" of each host. Workers take turns over these hosts, which must outlive the load. */
void run_load_begin(struct host *const *hosts, size_t n_hosts);
/* Collects ended runs, begins missing ones, and waits up to 10 ms. Returns how many are open. */
unsigned run_load_turn(void);
void run_load_for(usec_t length);
/* Begins no more runs, and waits for the rest. Checks that each ended as its command did. */
void run_load_end(void);
/* Returns how many have begun to run. */
unsigned run_load_count(void);

/* Makes n failovers, and prints how long each took and the sum. fail_over(round, cause) returns how long the
 * slowest host needed to reconnect. Returns the longest of these times. */
usec_t run_load_fail_over(const char *name, uint64_t n, usec_t (*fail_over)(unsigned round, void (*cause)(void)),
                          void (*cause)(void));
