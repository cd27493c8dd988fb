/* SPDX-License-Identifier: MIT */
#pragma once

/* The queues of some pools at one moment, played on: without time (which claims start at once after a change
 * of a limit or the end of a claim?) or with it (when does a claim start if all hold their permits for given
 * times?). The rules are those of doc/protocol.md: a claim starts when it is first in all its queues (R2)
 * and fits in all its pools (R3); a claim that needs more than a limit is passed over (parked). */

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

/* Returns whether all claims of these pools are known. If not, the results of the other functions may be
 * wrong. */
bool queue_is_complete(const struct queue *q);

/* --- without time --- */

/* Returns whether the claim starts; false without memory. ret: the claims that start, in order (owned array
 * of Waiter; may be NULL). */
bool queue_starts(const struct queue *q, const struct queue_change *change, const char *claim, json_t **ret);
/* The first question plays the queues for all claims. The further ones look up what was found.
 * Returns the lowest limit above the one in force with which the claim starts; -1: none up to the sum of all
 * demands, or no memory. */
json_int_t queue_lowest_limit(struct queue *q, const char *pool, const char *claim);
/* Returns the last granted holder whose end alone starts the claim (a Holder, borrowed); NULL: none, or no
 * memory. first: as if the claim were first in all its queues. */
const json_t *queue_enough(struct queue *q, const char *claim, bool first);

/* --- with time --- */

struct queue_later { /* a limit from some time on */
    size_t pool;     /* index in the array of pools */
    json_int_t limit;
    double msec;
};

struct queue_times {
    const double *msec; /* of each claim: how long it holds from its start, a holder from now; INFINITY: for ever */
    const struct queue_later *later; /* by their time */
    size_t n_later;
};

size_t queue_count(const struct queue *q);
/* Returns claim number i, a Holder or a Waiter (borrowed). */
const json_t *queue_claim(const struct queue *q, size_t i, bool *ret_is_held);
/* Returns the number of a claim that waits; SIZE_MAX: none. */
size_t queue_number(const struct queue *q, const char *claim);
/* Returns the index of a pool of the claim. */
size_t queue_pool_of(const struct queue *q, size_t i);
/* Sets needs[i] for each claim whose time may affect the start of this one. -ENOMEM. */
int queue_needs(const struct queue *q, const struct queue_change *change, const char *claim,
                const struct queue_times *times, bool *needs);
/* Plays the same queues again and again, with other times, until the claim starts. NULL: no memory. The queue must
 * outlive the player. */
struct queue_player;
struct queue_player *queue_player_new(const struct queue *q, const struct queue_change *change, const char *claim);
struct queue_player *queue_player_free(struct queue_player *player);
DEFINE_CLEANUP(struct queue_player, queue_player_free)
/* Returns after how many ms the claim starts; -1: never. */
double queue_player_start_time(struct queue_player *player, const struct queue_times *times);
/* Stores the same of all claims: `began` has a place for each. Needs no claim. */
void queue_player_start_times(struct queue_player *player, const struct queue_times *times, double *began);
/* As queue_player_start_time(), once; -1: never, or no memory. */
double queue_start_time(const struct queue *q, const struct queue_change *change, const char *claim,
                        const struct queue_times *times);
