/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks once a lease that Redis still has some of the claims that it confirmed. Otherwise a claim whose key was
 * deleted by hand would wait for ever: heartbeats do not look at claims. */

#include <stdbool.h>

#include "base/clock.h"

struct store_redis;
struct claim_entry;

struct verify {
    struct claim_entry *next; /* the first to be checked; NULL: the first of all */
    usec_t sent;              /* boottime of the last call */
    bool is_under_way;
};

/* To be called after each answered heartbeat. */
void verify_some(struct store_redis *store);
/* Forgets an entry that is about to be freed. */
void verify_forget(struct claim_entry *entry);
/* Forgets the call under way. */
void verify_reset(struct store_redis *store);
