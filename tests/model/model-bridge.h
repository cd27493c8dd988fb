/* SPDX-License-Identifier: MIT */
#pragma once

/* The scripts of store/redis/lua on a Redis whose clock and replication id the model sets. */

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "store/redis/client/command.h"
#include "store/redis/client/reply.h"
#include "store/redis/client/script.h"
#include "tests/harness/redis/redis.h"
#include "tests/model/model.h"

#define MODEL_KEY "berth:{m}:meta"
#define MODEL_NOW "berth:{m}:now" /* no key: time and replication id, given to the prelude as if they were one */

struct bridge {
    struct redis_server server;
    redisContext *client; /* has the rights that berth has */
    char sha[2][REDIS_SCRIPTS][REDIS_SHA_SIZE]; /* [1]: with bounds so low that they are reached */
    bool full, replica;
    uint64_t serial; /* of the last call */
    char look[REDIS_SHA_SIZE], save[REDIS_SHA_SIZE], restore[REDIS_SHA_SIZE];
};

int bridge_open(struct bridge *b, const struct model_mutation *mutation);
void bridge_close(struct bridge *b);
/* Runs a script at this time of Redis' clock. Returns {reply, {channel, text, ...}, {epoch, grace, clock,
 * heartbeat_count, unsettled, began, lead, the overrides of all pools that any sequence has}}, to be freed; NULL if
 * Redis is gone. */
redisReply *bridge_call(struct bridge *b, enum redis_script script, bool tight, usec_t redis_time, unsigned replid,
                        const struct redis_command *arguments);
/* Returns whether a reply of bridge_call() names the last call. */
bool bridge_reply_names_call(const struct bridge *b, enum redis_script script, const redisReply *reply);
/* Returns {complaints, keys besides those at rest, claim, state, token, session, ticket, head start, ...}, to be freed: whether the
 * data is consistent, and what is in it. */
redisReply *bridge_inspect(struct bridge *b);
redisReply *bridge_keys(struct bridge *b); /* all keys; to be freed */
bool bridge_has_session(struct bridge *b, unsigned session); /* and no call has begun to end it */
void bridge_wipe(struct bridge *b);
void bridge_set_full(struct bridge *b, bool full);       /* no memory left */
void bridge_set_replica(struct bridge *b, bool replica); /* it takes no writes */
void bridge_save(struct bridge *b); /* keeps a copy of all data, to be restored */
void bridge_restore(struct bridge *b);
