/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds the server for the link: the url names it, or the sentinels do. They are asked for each attempt, and
 * again while the server does not answer. */

#include "store/redis/client/sentinels.h"

struct store_redis;

struct finder {
    struct sentinels sentinels;
    struct moved master; /* that the dial goes to, while `again` is set or asks */
    bool is_dialing;
    struct timer again; /* asks beside the dial */
    usec_t down_after; /* after which the sentinels take the master for down; 0: unknown */
};

/* After the link's dial was made. 0 or a negative errno; find_done() in any case, before the dial is freed. */
int find_init(struct store_redis *store);
void find_done(struct store_redis *store);
/* Begins an attempt to connect; ends an earlier one. Ends in the handler of the link's dial. */
void find_start(struct store_redis *store);
void find_stop(struct store_redis *store);
/* The dial has connected: the sentinels are asked no more. */
void find_settle(struct store_redis *store);
bool find_uses_sentinels(const struct store_redis *store);
