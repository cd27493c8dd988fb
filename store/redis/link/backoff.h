/* SPDX-License-Identifier: MIT */
#pragma once

/* The pauses between attempts. Those before a connection are random, so that thousands of hosts that lost a Redis in
 * one moment do not return in one moment. */

#include "base/clock.h"

#define BACKOFF_MIN (50 * USEC_PER_MSEC)
#define BACKOFF_MAX (2 * USEC_PER_SEC)
#define BACKOFF_BRIEF (500 * USEC_PER_MSEC) /* while a failover is awaited */
#define BACKOFF_FIRST_MAX (500 * USEC_PER_MSEC) /* before the first connection after one that worked */

struct backoff {
    usec_t heartbeat_usec;
    usec_t next_usec;
};

void backoff_init(struct backoff *b, usec_t heartbeat_usec);
/* Makes the next pause 0. */
void backoff_reset(struct backoff *b);
/* Returns the next pause: 0, BACKOFF_MIN, then twice as much each time, up to `most`. */
usec_t backoff_next(struct backoff *b, usec_t most);
/* Returns the next pause of a host that awaits a failover. Above BACKOFF_BRIEF each pause is a 64th longer than the
 * one before, up to the longest. */
usec_t backoff_next_brief(struct backoff *b);
/* Returns the heartbeat interval, at most BACKOFF_MAX. */
usec_t backoff_longest(const struct backoff *b);
/* Returns the same for an overloaded Redis: the heartbeat interval, at least BACKOFF_MAX. */
usec_t backoff_longest_busy(const struct backoff *b);

/* Returns a random pause before a connection: 0.5 to 1.5 times `pause`; for 0 up to a tenth of the heartbeat
 * interval, at most BACKOFF_FIRST_MAX. */
usec_t backoff_draw(const struct backoff *b, usec_t pause);
/* Returns a random pause from 0 to `most`. */
usec_t backoff_draw_within(usec_t most);
