/* SPDX-License-Identifier: MIT */
#pragma once

/* The text that this host publishes (store_publish()). A heartbeat sends it once on each connection, and again when it has
 * changed. A heartbeat is only lost together with its connection. */

#include <stdbool.h>

#include "store/redis/client/command.h"
#include "store/store.h"

struct store_redis;

struct publish {
    char *text; /* NULL: none yet */
    bool is_sent;
};

/* --- operation of the store --- */

void publish_set(struct store *base, char *text);

void publish_done(struct store_redis *store);
/* Has the text sent again, on a new connection. */
void publish_again(struct store_redis *store);
/* Returns whether the next heartbeat must send the text. A Redis without memory gets none (R13). */
bool publish_is_due(const struct store_redis *store);
void publish_add(struct store_redis *store, struct redis_command *command);
