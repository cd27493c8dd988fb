/* SPDX-License-Identifier: MIT */
#pragma once

/* A snapshot that is being collected, by one call of inspect.lua after the other. inspect.c decides which
 * call is next; a reader of each reply adds to the snapshot. */

#include "store/redis/client/command.h"
#include "store/redis/client/reply.h"
#include "store/redis/operator/inspect.h"

#define INSPECT_SLICE_MAX 100 /* claims in one call */
#define INSPECT_SESSIONS_MAX 32
#define INSPECT_TIMES_MAX 20 /* hosts in one call */

/* Positions that all replies of inspect.lua have. */
enum { INSPECT_ANSWER, INSPECT_MALFORMED, INSPECT_FIRST };

enum inspect_step { /* first the sessions, then the others for each pool */
    INSPECT_SESSIONS, INSPECT_POOL, INSPECT_POSITIONS, INSPECT_HELD, INSPECT_QUEUE, INSPECT_PARKED, INSPECT_KEYS,
    INSPECT_TIMES, /* last */
};

struct inspected_key {
    char name[POOL_NAME_SIZE];
    uint32_t limit, used, waiting, parked;
};

struct inspection {
    struct store_redis *store;
    struct list link;    /* on store->operator.inspections.list */
    struct list askers;  /* struct inspect_asker */
    struct snapshot *snapshot;
    char **names;        /* of pools: listed in full; keys among them are pools of the snapshot */
    size_t n_names;
    bool times;          /* the snapshot has what hosts told, of those with claims in pools of these names */
    bool keys;           /* the snapshot has the counts of all other keys with claims, too */
    bool is_begun, is_under_way; /* a call of it */
    enum inspect_step step;
    size_t pool, n_pools; /* the one that is asked for; of how many: keys come behind them */
    char cursor[32];      /* of a step that has several calls */
    char (*mine)[ID_TEXT_SIZE]; /* of the pool: this host's waiting claims */
    size_t n_mine, mine_at;     /* the first one of this call */
    size_t times_at;            /* the first host of this call */
    struct inspected_key *of_pattern;
    size_t n_of_pattern, n_of_pattern_allocated;
    usec_t time_realtime; /* Redis's */
};

/* As inspect.lua calls it. */
const char *inspect_step_word(enum inspect_step step);
/* How many claims of the pool are listed, those that hold and those that wait. */
size_t inspect_list_max(const struct inspection *inspection);

/* --- readers: 1: the step has another call; 0: it has none; -EBADMSG or -ENOMEM --- */

int inspect_read_sessions(struct inspection *inspection, const struct redisReply *reply); /* inspect-sessions.c */
/* All sessions are read: puts the pools that they and this host declare into the snapshot. 0 or -ENOMEM. */
int inspect_collect_pools(struct inspection *inspection);
int inspect_read_pool(struct inspection *inspection, const struct redisReply *reply); /* inspect-pool.c */
int inspect_read_positions(struct inspection *inspection, const struct redisReply *reply);
int inspect_read_held(struct inspection *inspection, const struct redisReply *reply); /* inspect-claims.c */
int inspect_read_queue(struct inspection *inspection, const struct redisReply *reply);
int inspect_read_parked(struct inspection *inspection, const struct redisReply *reply);
int inspect_read_keys(struct inspection *inspection, const struct redisReply *reply); /* inspect-keys.c */
/* All pools are read: notes the hosts whose times are asked for (inspect-times.c). How many, or -ENOMEM. */
int inspect_collect_hosts(struct inspection *inspection);
/* Adds the hosts of the next call to it. */
void inspect_add_hosts(struct inspection *inspection, struct redis_command *command);
int inspect_read_times(struct inspection *inspection, const struct redisReply *reply);
/* Whether the pool of this name was asked for (inspect.c). */
bool inspect_is_named(const struct inspection *inspection, const char *pool);

/* Returns NULL if the session has no valid record. */
const struct snapshot_session *inspect_find_session(const struct snapshot *snapshot, const char *id);

/* --- inspect-malformed.c --- */

/* Adds a record of any bytes; id and record may be NULL. Without memory the list is shorter. */
void inspect_malformed_add(struct snapshot *snapshot, const char *key, const struct redisReply *id,
                           const struct redisReply *record);
/* Adds what the script has found. */
void inspect_malformed_read(struct snapshot *snapshot, const struct redisReply *list);
