/* SPDX-License-Identifier: MIT */
#pragma once

/* The pauses between tries. Those before a connection are drawn at random, so that thousands of hosts that
 * lost the same Redis in one moment do not come back in one moment. */

#include "base/clock.h"

#define BACKOFF_MIN (50 * USEC_PER_MSEC)
#define BACKOFF_MAX (2 * USEC_PER_SEC)
#define BACKOFF_FIRST_MAX (500 * USEC_PER_MSEC) /* before the first connection after one that worked */

struct backoff {
    usec_t heartbeat_usec;
    usec_t next_usec;
};

void backoff_init(struct backoff *b, usec_t heartbeat_usec);
/* Afterwards the next pause is 0 again. */
void backoff_reset(struct backoff *b);
/* Returns the next pause: 0, BACKOFF_MIN, then twice as much each time, up to `most`. */
usec_t backoff_next(struct backoff *b, usec_t most);
/* A heartbeat, at most BACKOFF_MAX. */
usec_t backoff_longest(const struct backoff *b);
/* The same of a Redis that has too much to do: a heartbeat, at least BACKOFF_MAX. */
usec_t backoff_longest_busy(const struct backoff *b);

/* Draws the pause before a connection from one of the above: 0.5 to 1.5 times it. In place of 0: up to a
 * tenth of a heartbeat, at most BACKOFF_FIRST_MAX. */
usec_t backoff_draw(const struct backoff *b, usec_t pause);
/* Draws 0 to `most`. */
usec_t backoff_draw_within(usec_t most);
