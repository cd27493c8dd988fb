/* SPDX-License-Identifier: MIT */
#pragma once

/* The arithmetic of a run's deadline (R8, R12). The stop begins a whole stop timeout before the kill, and
 * the kill is sent a little before the deadline. A command with less time than that would be stopped at once
 * although the lease lives, so it starts later, when an answered heartbeat has moved the deadline. Durations
 * and times in µs; times on CLOCK_BOOTTIME. */

#include <stdbool.h>

#include "base/clock.h"

/* Time between the kill and the deadline, by which the last process must have ended (R8). */
#define DEADLINE_KILL_LEAD (100 * USEC_PER_MSEC)
/* Time that a command must have before its stop; the reply to the next heartbeat comes sooner. */
#define DEADLINE_RUN_MIN (100 * USEC_PER_MSEC)

/* Returns when the kill must be sent; USEC_INFINITY: never. */
static inline usec_t deadline_kill_at(usec_t deadline) {
    return deadline == USEC_INFINITY ? USEC_INFINITY : usec_sub(deadline, DEADLINE_KILL_LEAD);
}

/* Returns when the stop must begin; USEC_INFINITY: never. */
static inline usec_t deadline_stop_at(usec_t deadline, usec_t stop_timeout) {
    return deadline == USEC_INFINITY ? USEC_INFINITY : usec_sub(deadline_kill_at(deadline), stop_timeout);
}

/* Returns how long before its deadline a command must start at the latest. */
static inline usec_t deadline_needed(usec_t stop_timeout) {
    return usec_add(stop_timeout, DEADLINE_KILL_LEAD + DEADLINE_RUN_MIN);
}

/* Returns whether a command may start now. */
static inline bool deadline_leaves_time(usec_t deadline, usec_t stop_timeout, usec_t now) {
    return deadline == USEC_INFINITY || usec_add(now, deadline_needed(stop_timeout)) <= deadline;
}
