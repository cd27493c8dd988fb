/* SPDX-License-Identifier: MIT */
#pragma once

/* The node of a cluster that has the slot of the namespace (R17). */

#include <stdbool.h>

#include "base/clock.h"

struct store_redis;

struct namespace_slot {
    unsigned n_redirects;  /* since the link was live */
    usec_t waiting_since;  /* boottime; the slot moves to another node; 0: it does not */
};

/* The slot does not move any more, as far as is known. */
void slot_reset(struct store_redis *store);
/* Goes to the node that an error names, at once: Redis is not away meanwhile. Returns false if the error names
 * none, or the nodes send this host in circles. */
bool slot_redirect(struct store_redis *store, const char *error);
/* Returns whether slot_redirect() has just refused for that reason. */
bool slot_goes_in_circles(const struct store_redis *store);
/* The slot moves, and no node answers until it has moved: hello is repeated on the same connections. Deadlines
 * go on. After `timeout` Redis counts as away. */
void slot_wait(struct store_redis *store, const char *why);
/* Returns whether the slot has been moving for longer than `timeout`. */
bool slot_is_away(const struct store_redis *store);
/* How much longer than a lease the grace period is: a replaced master may go on answering that long (R10). */
usec_t slot_failover_margin(const struct store_redis *store);
