/* SPDX-License-Identifier: MIT */
#pragma once

/* A second pair of connections with another user, password or certificate, made after a reload while the first pair
 * works. It replaces the first pair when both connections are up, so no heartbeat is missed. */

#include "base/list.h"
#include "store/redis/client/connection.h"
#include "store/status.h"

struct store_redis;

struct renewal {
    struct redis_connection_options options; /* of the second pair */
    bool is_under_way;
    struct redis_connection *commands, *pushes; /* NULL: not up yet */
    bool is_awaited;               /* settings are to come into use, with a second pair or without */
    struct list watches;           /* struct store_use_watch */
    char why[STATUS_WARNING_SIZE]; /* why the last renewal failed; "": it did not */
};

void renewal_init(struct store_redis *store);
/* Begins a renewal of a live link; ends an earlier one. */
void renewal_start(struct store_redis *store);
/* Notes that other settings are to come into use. */
void renewal_expect(struct store_redis *store);
/* Ends that, and calls the watches. why: the reason why the settings are not in use; NULL: they are. */
void renewal_conclude(struct store_redis *store, const char *why);
/* Takes a new connection, or a failure. Returns whether it belongs to a renewal. */
bool renewal_take(struct store_redis *store, struct redis_connection *connection);
bool renewal_fail(struct store_redis *store, const char *why);
/* Ends a renewal, and forgets why an earlier one failed. */
void renewal_reset(struct store_redis *store);
