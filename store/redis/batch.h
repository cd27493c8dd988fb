/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls for claims. Requests of one turn of the event loop that are alike are sent as one call. A batch is
 * open until another call is sent or the turn ends, so calls keep their order. */

#include "base/list.h"

struct store_redis;
struct claim_entry;
struct batch; /* batch.c */

struct batches {
    struct list all;    /* struct batch, not answered yet; the open one is the last */
    struct batch *open; /* not sent yet; NULL: none */
};

void batch_init(struct store_redis *store);
/* Requests or releases a claim on a live link. Does nothing without memory, or while the link is failing. */
void batch_add_claim(struct claim_entry *entry);
void batch_add_release(struct claim_entry *entry);
/* Sends the open batch. */
void batch_flush(struct store_redis *store);
/* Forgets all batches, because the connection is closed. */
void batch_reset(struct store_redis *store);
