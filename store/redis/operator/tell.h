/* SPDX-License-Identifier: MIT */
#pragma once

/* What this host tells the others (store_tell()): one text, which a heartbeat takes along once on each
 * connection, and again when it has changed. If that heartbeat is lost, so is its connection. */

#include <stdbool.h>

#include "store/redis/client/command.h"
#include "store/store.h"

struct store_redis;

struct tell {
    char *text; /* NULL: nothing yet */
    bool is_sent;
};

/* --- operation of the store --- */

void tell_set(struct store *base, char *text);

void tell_done(struct store_redis *store);
/* There is a new connection, perhaps a new session. */
void tell_again(struct store_redis *store);
/* Returns whether the next heartbeat takes it along. A Redis without memory gets nothing (R13). */
bool tell_is_due(const struct store_redis *store);
void tell_add(struct store_redis *store, struct redis_command *command);
