/* SPDX-License-Identifier: MIT */
#pragma once

/* Collects a snapshot: one call for the sessions, which name the pools, then one call for each pool, and
 * calls for the keys of each pattern (inspect-keys.c). */

#include "store/redis/client/reply.h"
#include "store/store.h"

struct store_redis;

/* --- operation of the store --- */

int inspect_start(struct store *base, const struct store_question *question, store_inspect_fn fn, void *userdata);

/* Sends what waited for a live link. */
void inspect_send_pending(struct store_redis *store);
/* Forgets calls under way. */
void inspect_reset(struct store_redis *store);
/* Redis is away: fails inspections that are not under way. */
void inspect_fail(struct store_redis *store);

/* --- inspect-parse.c: replies into a snapshot; malformed records are listed. 0, -EBADMSG or -ENOMEM --- */

/* ret_time: Redis's clock. names: of keys that are pools of the snapshot, too. */
int inspect_parse_sessions(const struct store_redis *store, struct snapshot *snapshot, char *const *names,
                           size_t n_names, const struct redisReply *reply, usec_t *ret_time);
int inspect_parse_pool(struct snapshot *snapshot, size_t pool, usec_t time, const struct redisReply *reply);
/* The positions of these claims in the pool's queue. */
int inspect_parse_positions(struct snapshot *snapshot, size_t pool, const char (*ids)[ID_TEXT_SIZE],
                            size_t n, const struct redisReply *reply);

/* --- inspect-malformed.c --- */

/* Adds a record of any bytes; id and record may be NULL. Without memory the list is shorter. */
void inspect_malformed_add(struct snapshot *snapshot, const char *key, const struct redisReply *id,
                           const struct redisReply *record);
/* Adds the records that the script has rejected. */
void inspect_malformed_read(struct snapshot *snapshot, const struct redisReply *list);
