/* SPDX-License-Identifier: MIT */
#pragma once

/* The queues of some pools, as queue.c reads them and queue-play.c plays them. */

#include "base/explain/queue.h"

#include <stdint.h>

struct want {
    size_t pool;
    json_int_t permits;
};

struct claim {
    const json_t *json; /* a Holder or a Waiter */
    bool is_held;
    json_int_t waiting_ms;
    struct want *wants;
    size_t n_wants;
    size_t twin; /* the other claim of a run that holds permits of host pools and waits; SIZE_MAX: none */
};

/* Returns whether the run of a holder still waits. */
static inline bool claim_is_of_waiting(const struct claim *c) {
    return c->is_held && c->twin != SIZE_MAX;
}

struct pool {
    const char *name;
    json_int_t limit, used;
    size_t *line, n_line; /* the waiting claims in their order; parked ones by their waiting time */
};

struct queue {
    struct pool *pools;
    struct claim *claims;
    size_t n_pools, n_claims;
    json_t *held, *waiting; /* map claims to numbers; a run may hold host pools and wait for cluster pools */
    bool is_complete;
    struct queue_help *help; /* NULL until somebody asks what would help */
};

/* Returns the number of a claim by its id, in queue->held or queue->waiting; SIZE_MAX: none. */
size_t queue_find(const json_t *index, const char *id);

/* --- queue-play.c --- */

struct end { /* of a claim that holds */
    double msec;
    size_t claim;
};

struct play {
    const struct queue *q;
    json_int_t *limits, *used; /* of each pool */
    size_t *heads; /* of each pool: the place of the first claim that has not started and is not parked */
    bool *started; /* of each claim */
    size_t *order, n_order; /* the claims that have started */
    size_t first;  /* the claim that was moved before all others; SIZE_MAX: none */
    const struct queue_times *times; /* NULL: without time */
    double now, *began; /* began: of each claim, when it starts; NULL: not wanted */
    struct end *ends; /* a heap, the next one first */
    size_t n_ends;
};

/* -ENOMEM; play_done() is needed also then. */
int play_begin(struct play *p, const struct queue *q, const struct queue_change *change);
void play_done(struct play *p);
/* Starts all claims that may start. */
void play_on(struct play *p);
/* Takes back the starts after the first n. Without time. */
void play_undo(struct play *p, size_t n);
/* Frees the permits of a claim. */
void play_give_back(struct play *p, size_t claim);
bool play_is_parked(const struct play *p, const struct claim *c);

/* --- queue-help.c --- */

struct queue_help *queue_help_free(struct queue_help *h);
