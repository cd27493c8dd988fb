/* SPDX-License-Identifier: MIT */
#pragma once

/* When a host counts as silent, for people and monitoring. R4 decides when it expires. */

#include <stdint.h>

/* Returns how long ago a live host may have been seen, in the unit of the arguments. An idle host sends a
 * heartbeat after 11/30 of a lease. Another idle host sees that after as much again. With long heartbeats
 * it is one of that host, one of this host, and one to spare. */
static inline uint64_t silence_bound(uint64_t lease, uint64_t heartbeat) {
    uint64_t idle = lease * 3 / 4, busy = 3 * heartbeat;

    return idle > busy ? idle : busy;
}
