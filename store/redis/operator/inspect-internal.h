/* SPDX-License-Identifier: MIT */
#pragma once

/* A snapshot that is being collected. Shared by inspect.c and inspect-keys.c. */

#include "store/redis/client/command.h"
#include "store/redis/operator/inspect.h"

struct inspection;

struct inspected_key {
    char name[POOL_NAME_SIZE];
    uint32_t limit, used, waiting, parked;
};

struct pool_call { /* the calls for one pool */
    struct inspection *inspection;
    size_t n_mine;
    char (*mine)[ID_TEXT_SIZE];
    struct inspected_key *keys; /* of a pattern */
    size_t n_keys, n_keys_allocated;
};

struct inspection {
    struct store_redis *store;
    struct list link;    /* on store->inspections */
    store_inspect_fn fn; /* NULL: called already, while other replies are still under way */
    void *userdata;
    struct snapshot *snapshot;
    char **names; /* of keys that the snapshot has as pools */
    size_t n_names;
    bool keys;               /* it has the counts of all other keys with claims, too */
    struct pool_call *pools; /* as in the snapshot */
    size_t n_pools;
    size_t n_calls;       /* under way */
    usec_t time_realtime; /* Redis's */
    bool is_sent;
};

void inspection_begin_call(struct store_redis *store, struct redis_command *command, const char *what);
/* A reply has arrived. Returns whether it is still wanted; if not, the last one frees the inspection. */
bool inspection_end_call(struct inspection *inspection);
/* The reply was read with this result: answers the inspection if that is an error, or if the reply was the
 * last one. */
void inspection_continue(struct inspection *inspection, int r);
/* Calls fn once; the last reply frees the inspection. */
void inspection_answer(struct inspection *inspection, int result);

/* --- inspect-keys.c --- */

/* Asks for some keys of a pattern. Negative errno: nothing was sent. */
int inspect_keys_send(struct pool_call *call, const char *cursor);
/* Puts the keys of all patterns into the snapshot. 0 or -ENOMEM. */
int inspect_keys_finish(struct inspection *inspection);
