/* SPDX-License-Identifier: MIT */
#pragma once

/* The queues of some pools, as queue.c reads them and queue-play.c plays them. */

#include "base/explain/queue.h"

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
};

/* Returns the number of a claim by its id, in queue->held or queue->waiting; SIZE_MAX: none. */
size_t queue_find(const json_t *index, const char *id);
