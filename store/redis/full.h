/* SPDX-License-Identifier: MIT */
#pragma once

/* A Redis without memory for new claims (R13): waiting claims are requested again in their order, with
 * growing pauses. */

#include <stdbool.h>

#include "base/timer.h"

struct store_redis;

struct full {
    struct timer timer; /* requests the first claim again */
    usec_t pause_usec;  /* until then */
    usec_t logged;      /* boottime of the last warning; 0: none */
};

int full_init(struct store_redis *store);
void full_done(struct store_redis *store);
/* Notes that Redis is full, and requests a claim again after a pause. */
void full_begin(struct store_redis *store);
/* Logs that claims wait for memory, once a minute at most. */
void full_log_waiting(struct store_redis *store);
/* Notes that Redis has memory again, because it took a claim. */
void full_end(struct store_redis *store);
void full_reset(struct store_redis *store);
