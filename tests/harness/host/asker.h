/* SPDX-License-Identifier: MIT */
#pragma once

/* Claims of pools of scope host (store/memory/pool.h). All times are passed in; asker_begin() opens at
 * NOW. */

#include "store/memory/pool.h"

#define NOW ((usec_t) 1700000000000000)

struct asker {
    struct claim claim;
    char id[ID_TEXT_SIZE];
    struct demands demands;
    struct demand_ref refs[DEMAND_POOLS_MAX]; /* of the claim, into demands */
    struct pool_claim *in_pools;
};

/* Makes a claim, not requested yet; pools as in "db:2,net". Freed by asker_give_back(). */
struct asker *asker_new(const char *pools);
/* Requests the claim; fails the test if that is refused. */
struct asker *asker_ask(struct pools *p, const char *pools, usec_t now);
void asker_give_back(struct pools *p, struct asker *a, usec_t now);
void asker_declare(struct pools *p, const char *name, uint32_t limit, uint32_t queue_limit);
/* Makes pools "db" with 4 permits and "net" with 1. */
void asker_begin(struct pools *p);
