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
    struct store *store; /* borrowed, as are the pools */
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

/* Schedules the listener's call for a claim. */
void delivery_notify(struct delivery *d, struct pool_claim *entry);
/* Schedules the calls for claims that other claims' calls have granted, parked or requeued. */
void delivery_collect(struct delivery *d);
/* Calls the listener for scheduled claims, up to a bound; the next turns serve the rest. */
void delivery_claims(struct delivery *d);
/* Writes the claim's public part. */
void delivery_publish(struct pool_claim *entry, enum claim_state state);
/* Returns the claim to its owner. */
void delivery_end_claim(struct pool_claim *entry);
/* Returns a reply whose result the caller may set until the loop turns. NULL: no memory. */
struct delivery_reply *delivery_add_reply(struct delivery *d, store_reply_fn fn, store_inspect_fn inspect_fn,
                                          void *userdata);
void delivery_set_state(struct delivery *d, enum store_state state);
/* Delivers nothing but replies from now on; `done` is the last one. */
void delivery_stop(struct delivery *d, store_reply_fn done, void *userdata);
