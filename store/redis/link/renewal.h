/* SPDX-License-Identifier: MIT */
#pragma once

/* A second pair of connections, made after a reload while the first one works: with another user, password
 * or certificate. It replaces the first when both connections are up, so no heartbeat is missed. */

#include "base/list.h"
#include "store/redis/client/connection.h"
#include "store/status.h"

struct store_redis;

struct renewal {
    struct redis_connection_options options; /* of the second pair */
    bool is_under_way;
    struct redis_connection *commands, *pushes; /* NULL: not up yet */
    bool is_awaited;               /* by store_redis_watch_use(): settings are to come into use */
    struct list watches;           /* struct store_use_watch */
    char why[STATUS_WARNING_SIZE]; /* the last one failed, and the first pair goes on; "": no */
};

void renewal_init(struct store_redis *store);
/* Begins it; ends an earlier one. The link must be live. */
void renewal_start(struct store_redis *store);
/* Other settings are to come into use, with a second pair or without; they are, or why they are not. */
void renewal_expect(struct store_redis *store);
void renewal_conclude(struct store_redis *store, const char *why);
/* Returns whether the connection that was found, or the failure, belongs to the renewal. */
bool renewal_take(struct store_redis *store, struct redis_connection *connection);
bool renewal_fail(struct store_redis *store, const char *why);
/* Ends it, and forgets why an earlier one failed. */
void renewal_reset(struct store_redis *store);
