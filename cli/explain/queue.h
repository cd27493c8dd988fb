/* SPDX-License-Identifier: MIT */
#pragma once

/* The queues of some pools at one moment, played on: without time (which claims start at once if a limit
 * were another one, or if a claim ended?) or with it (when does a claim start if each holds its permits so
 * long?). By the rules of doc/protocol.md: a claim starts when it is first in all its queues (R2) and fits
 * in all its pools (R3); one that needs more than a limit is passed over (parked).
 */

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"

struct queue;

struct queue_change {
    const char *pool; /* gets this limit; NULL: none */
    json_int_t limit;
    const char *ended; /* the claim that ends; NULL: none */
    const char *first; /* the claim that moves before all others in its queues; NULL: none */
};

/* pools: of io.berth.Pools; must outlive the queue. Negative errno. */
int queue_new(struct queue **ret, const json_t *pools);
struct queue *queue_free(struct queue *q);
DEFINE_CLEANUP(struct queue, queue_free)

/* Returns whether all claims of all these pools are known. Otherwise the answers below may be wrong. */
bool queue_is_complete(const struct queue *q);

/* --- without time --- */

/* Plays. Returns whether the claim starts; false without memory. ret: the claims that start, in this order
 * (owned array of Waiter; may be NULL). */
bool queue_starts(const struct queue *q, const struct queue_change *change, const char *claim, json_t **ret);
/* Returns the lowest limit above the one in force with which the claim starts; -1: none up to what is wanted
 * now. */
json_int_t queue_lowest_limit(const struct queue *q, const char *pool, const char *claim);
/* Returns the holder whose end alone starts the claim, the one that began last (a Holder, borrowed); NULL:
 * none. first: if the claim were the first in all its queues. */
const json_t *queue_enough(const struct queue *q, const char *claim, bool first);

/* --- with time --- */

struct queue_later { /* a limit that is another one from then on */
    size_t pool;     /* its place in the array */
    json_int_t limit;
    double msec;
};

struct queue_times {
    const double *msec; /* of each claim: how long it holds from its start on, a holder from now on */
    const struct queue_later *later; /* by their time */
    size_t n_later;
};

size_t queue_count(const struct queue *q);
/* Returns claim number i, a Holder or a Waiter (borrowed). */
const json_t *queue_claim(const struct queue *q, size_t i, bool *ret_is_held);
/* Returns a pool of the claim: its place in the array. */
size_t queue_pool_of(const struct queue *q, size_t i);
/* Marks the claims whose times the start of this one can depend on (needs: of each claim). -ENOMEM. */
int queue_needs(const struct queue *q, const struct queue_change *change, const char *claim,
                const struct queue_times *times, bool *needs);
/* Returns after how many ms the claim starts; -1: never, or no memory. */
double queue_start_time(const struct queue *q, const struct queue_change *change, const char *claim,
                        const struct queue_times *times);
