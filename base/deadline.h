/* SPDX-License-Identifier: MIT */
#pragma once

/* The arithmetic of a run's deadline (R8, R12). Its stop begins a whole stop timeout before its kill, and the kill is sent a little
 * before the deadline. A command that is begun with less time than that is stopped at once, though the lease lives: so it is begun later,
 * when a heartbeat was answered and has moved the deadline. Durations and times in µs; times on CLOCK_BOOTTIME. */

#include <stdbool.h>

#include "base/clock.h"

/* The kill is sent so long before the deadline, so that the last process is gone, not just told, when it comes (R8). */
#define DEADLINE_KILL_LEAD (100 * USEC_PER_MSEC)
/* A command is begun only if it can run for so long before its stop: an answer to the next heartbeat takes less. */
#define DEADLINE_RUN_MIN (100 * USEC_PER_MSEC)

/* When the kill must be sent; USEC_INFINITY: never. */
static inline usec_t deadline_kill_at(usec_t deadline) {
    return deadline == USEC_INFINITY ? USEC_INFINITY : usec_sub(deadline, DEADLINE_KILL_LEAD);
}

/* When the stop must begin; USEC_INFINITY: never. */
static inline usec_t deadline_stop_at(usec_t deadline, usec_t stop_timeout) {
    return deadline == USEC_INFINITY ? USEC_INFINITY : usec_sub(deadline_kill_at(deadline), stop_timeout);
}

/* How long before its deadline a command must be begun at the latest. */
static inline usec_t deadline_needed(usec_t stop_timeout) {
    return usec_add(stop_timeout, DEADLINE_KILL_LEAD + DEADLINE_RUN_MIN);
}

/* Whether a command may be begun now. */
static inline bool deadline_leaves_time(usec_t deadline, usec_t stop_timeout, usec_t now) {
    return deadline == USEC_INFINITY || usec_add(now, deadline_needed(stop_timeout)) <= deadline;
}
