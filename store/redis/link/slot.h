/* SPDX-License-Identifier: MIT */
#pragma once

/* The node of a cluster that has the slot of the namespace (R17). */

#include <stdbool.h>

#include "base/clock.h"

struct store_redis;

struct namespace_slot {
    unsigned n_redirects;  /* since the link was live */
    usec_t waiting_since;  /* boottime since which the slot moves to another node; 0: it does not */
};

/* Forgets that the slot moves. */
void slot_reset(struct store_redis *store);
/* Goes to the node that an error names at once, during which Redis is not away. Returns false if the error names no
 * node, or the nodes send this host in circles. */
bool slot_redirect(struct store_redis *store, const char *error);
/* Returns whether slot_redirect() has just refused because of circles. */
bool slot_goes_in_circles(const struct store_redis *store);
/* Waits while the slot moves and no node answers: repeats hello on the same connections. Deadlines go on. After
 * `timeout` Redis counts as away. */
void slot_wait(struct store_redis *store, const char *why);
/* Returns whether the slot has been moving for longer than `timeout`. */
bool slot_is_away(const struct store_redis *store);
/* Returns by how much the grace period exceeds a lease: the time for which a replaced master may go on answering
 * (R10). */
usec_t slot_failover_margin(const struct store_redis *store);
