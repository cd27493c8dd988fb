/* SPDX-License-Identifier: MIT */
#pragma once

/* The namespace's clock, which numbers tickets and tokens (R7, R10), as far as this host knows it. The
 * knowledge survives a loss of Redis's data: this host then reports a number that no number drawn before the
 * loss exceeds, whatever Redis's own clock shows. */

#include <stdbool.h>

#include "base/clock.h"

struct store_redis;

struct namespace_clock {
    uint64_t drawn;  /* the highest number known to be drawn */
    uint64_t latest; /* at `since` (boottime) no number drawn was higher */
    usec_t since;
    usec_t observed_at; /* boottime when `latest` was received; never before `since` */
};

/* Takes a ticket, a token or the last number drawn. It was drawn after the last answered heartbeat was sent,
 * so its age counts from then, however late this host receives it. */
void clock_observe_drawn(struct store_redis *store, uint64_t number);
/* Takes Redis's reply to a call of time `sent` (boottime): no number drawn so far is higher. */
void clock_observe_latest(struct store_redis *store, uint64_t number, usec_t sent);
/* Takes the value of the session's file. */
void clock_restore(struct store_redis *store, uint64_t latest, usec_t since);
/* Forgets the clock, because another namespace has another one. */
void clock_forget(struct store_redis *store);
/* Returns a number that no number drawn until now exceeds, as far as this host knows. 0: not known. */
uint64_t clock_latest(const struct store_redis *store, usec_t now);
