/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds the server for the link, by the url or by the sentinels. It asks the sentinels for each attempt, and again
 * while the server does not answer. Its connections to the sentinels last until the server is found. */

#include "store/redis/client/sentinels.h"

struct store_redis;

struct finder {
    struct sentinels sentinels;
    struct moved master; /* the dial's target, if is_dialing */
    bool is_dialing;
    struct timer again; /* asks the sentinels again during a dial */
    usec_t down_after; /* time without an answer after which sentinels take the master for down; 0: unknown */
};

/* The link's dial must exist. 0 or a negative errno; find_done() in any case, before the dial is freed. */
int find_init(struct store_redis *store);
void find_done(struct store_redis *store);
/* Begins an attempt to connect; ends an earlier one. Ends in the handler of the link's dial. */
void find_start(struct store_redis *store);
void find_stop(struct store_redis *store);
/* Closes the connections to the sentinels: the server is found, or the settings have changed. */
void find_release(struct store_redis *store);
/* Stops asking the sentinels, because the dial has connected. */
void find_settle(struct store_redis *store);
bool find_uses_sentinels(const struct store_redis *store);
/* Returns whether the sentinels name no master yet, or one that cannot be reached. */
bool find_awaits_failover(const struct store_redis *store);
