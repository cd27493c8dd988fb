/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls the listener and the reply handlers of the store in memory when the event loop turns, never from
 * inside a call. */

#include <stdbool.h>

#include "base/timer.h"
#include "store/memory/pool.h"
#include "store/store.h"

struct delivery_reply {
    struct list link;  /* on delivery->replies */
    store_reply_fn fn; /* or inspect_fn */
    store_inspect_fn inspect_fn;
    void *userdata;
    int result;
};

struct delivery {
    struct store *store; /* not owned; as are the pools */
    struct pools *pools;
    char host[NAME_MAX_LENGTH + 1];
    struct list outbox;  /* struct pool_claim, in the order of the changes */
    struct list replies; /* struct delivery_reply */
    struct delivery_reply stop_reply;
    bool state_due;
    struct defer turn; /* set while a notice or reply is due */
};

int delivery_init(struct delivery *d, sd_event *event, struct store *store, struct pools *pools,
                  const char *host);
/* Fails the replies that are due. */
void delivery_done(struct delivery *d);

/* Has the claim's listener called. */
void delivery_notify(struct delivery *d, struct pool_claim *entry);
/* Does so for claims that other claims' calls have granted, parked or requeued. */
void delivery_collect(struct delivery *d);
/* Calls the listeners of these claims now. The turn calls those that are more than its bound. */
void delivery_claims(struct delivery *d);
/* Writes the claim's public part. */
void delivery_publish(struct pool_claim *entry, enum claim_state state);
/* Returns the claim to its owner. */
void delivery_end_claim(struct pool_claim *entry);
/* Delivered when the loop turns, so the caller may still set its result. NULL: no memory. */
struct delivery_reply *delivery_add_reply(struct delivery *d, store_reply_fn fn, store_inspect_fn inspect_fn,
                                          void *userdata);
void delivery_set_state(struct delivery *d, enum store_state state);
/* Delivers only replies from now on; `done` is the last one. */
void delivery_stop(struct delivery *d, store_reply_fn done, void *userdata);
