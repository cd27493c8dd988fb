/* SPDX-License-Identifier: MIT */
#pragma once

/* A snapshot while it is collected, which takes several calls. inspect.c decides which call is next, and inspect-call.c
 * composes it. A reader of each reply adds to the snapshot. */

#include "store/redis/client/command.h"
#include "store/redis/client/connection.h"
#include "store/redis/client/reply.h"
#include "store/redis/operator/inspect.h"

#define INSPECT_SLICE_MAX 100 /* claims in one call */
#define INSPECT_SESSIONS_MAX 32
#define INSPECT_TIMES_MAX 20 /* hosts in one call */

/* Positions in each reply of inspect.lua. */
enum { INSPECT_ANSWER, INSPECT_MALFORMED, INSPECT_FIRST };

enum inspect_step { /* first the sessions, then the others for each pool */
    INSPECT_SESSIONS, INSPECT_POOL, INSPECT_POSITIONS, INSPECT_HELD, INSPECT_QUEUE, INSPECT_PARKED, INSPECT_KEYS,
    INSPECT_TIMES, /* last */
};

enum inspect_part { /* of a step that lists claims */
    INSPECT_LIST,    /* the claims of a slice */
    INSPECT_RECORDS, /* their records */
    INSPECT_RECHECK, /* those that were missing: by inspect.lua, which tells a claim that has left the list meanwhile */
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
    bool times;          /* include the times of hosts with claims in pools of these names */
    bool keys;           /* include the counts of all other keys with claims */
    bool is_begun, is_under_way; /* under way: a call */
    bool is_repeated;    /* it was begun again because of another epoch */
    enum inspect_step step;
    size_t n_calls;       /* of the step, so far */
    size_t n_limits;      /* that the sessions declare */
    size_t pool, n_pools; /* index of the step's pool; pools of the snapshot without keys, which follow them */
    char cursor[32];      /* of a step with several calls */
    char (*mine)[ID_TEXT_SIZE]; /* this host's claims that wait in the pool */
    size_t n_mine, mine_at;     /* mine_at: the first one of this call */
    struct inspected_claim *claims; /* of the last call of a list (inspect-claims.c) */
    size_t n_claims, n_members;     /* n_members: in Redis, with malformed ones */
    enum inspect_part part;
    size_t times_at;            /* the first host of this call */
    struct inspected_key *of_pattern;
    size_t n_of_pattern, n_of_pattern_allocated;
    usec_t time_realtime; /* Redis's */
};

/* Returns the step's name in inspect.lua. */
const char *inspect_step_word(enum inspect_step step);
/* Returns how many holders, and how many waiting claims, of the step's pool are listed. */
size_t inspect_list_max(const struct inspection *inspection);

/* --- inspect-call.c --- */

/* Sends the next call. fn: gets its reply, with the inspection as userdata. */
void inspect_send_call(struct inspection *inspection, redis_reply_fn fn);
/* Returns whether the call is a plain command, and none of inspect.lua. */
bool inspect_is_plain(const struct inspection *inspection);
/* Returns for how long the call probably kept Redis busy, in µs. */
usec_t inspect_cost_of(const struct inspection *inspection, const struct redisReply *reply);

/* --- readers return 1: the step has another call; 0: it has none; -EBADMSG, -ENOMEM, or -ESTALE (sessions): another epoch --- */

int inspect_read_sessions(struct inspection *inspection, const struct redisReply *reply); /* inspect-sessions.c */
/* Sorts them by id. A session that sends a heartbeat between two calls is in both replies; one of the two is dropped. */
void inspect_sort_sessions(struct snapshot *snapshot);
/* Adds the pools that the sessions and this host declare, when all sessions are read, and keeps of the sessions' limits
 * those that differ (inspect-pools.c). 0 or -ENOMEM. */
int inspect_collect_pools(struct inspection *inspection);
int inspect_read_pool(struct inspection *inspection, const struct redisReply *reply); /* inspect-pool.c */
int inspect_read_positions(struct inspection *inspection, const struct redisReply *reply);
int inspect_read_held(struct inspection *inspection, const struct redisReply *reply); /* inspect-claims.c */
int inspect_read_queue(struct inspection *inspection, const struct redisReply *reply);
int inspect_read_parked(struct inspection *inspection, const struct redisReply *reply);
/* Adds the claims without a record as arguments of the next call. */
void inspect_add_unknown(const struct inspection *inspection, struct redis_command *command);
int inspect_read_keys(struct inspection *inspection, const struct redisReply *reply); /* inspect-keys.c */
/* Notes the hosts whose times follow, when all pools are read (inspect-times.c). Returns their number, or -ENOMEM. */
int inspect_collect_hosts(struct inspection *inspection);
/* Adds the hosts of the next call as its arguments. */
void inspect_add_hosts(struct inspection *inspection, struct redis_command *command);
int inspect_read_times(struct inspection *inspection, const struct redisReply *reply);
/* Returns whether the question names this pool (inspect.c). */
bool inspect_is_named(const struct inspection *inspection, const char *pool);

/* Returns NULL if the session has no valid record. */
const struct snapshot_session *inspect_find_session(const struct snapshot *snapshot, const char *id);

/* --- inspect-malformed.c --- */

/* Adds a record of any bytes, unless the list has it; id and record may be NULL. Returns it, borrowed until
 * the next one, or NULL: the list is full, or there is no memory. */
struct snapshot_malformed *inspect_malformed_add(struct snapshot *snapshot, const char *key,
                                                 const struct redisReply *id,
                                                 const struct redisReply *record);
/* Adds the records that the script found. */
void inspect_malformed_read(struct snapshot *snapshot, const struct redisReply *list);
