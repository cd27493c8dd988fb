/* SPDX-License-Identifier: MIT */
#pragma once

/* When a host counts as silent, for people and monitoring. R4 decides when it expires. */

#include <stdint.h>

/* Returns how long ago a live host may have been seen, in the unit of the arguments. An idle host sends a
 * heartbeat each 11/30 of a lease, and learns of another one's with its own next heartbeat: twice that time.
 * With long heartbeats the bound is three of them, of which one is to spare. */
static inline uint64_t silence_bound(uint64_t lease, uint64_t heartbeat) {
    uint64_t idle = lease * 3 / 4, busy = 3 * heartbeat;

    return idle > busy ? idle : busy;
}
