/* SPDX-License-Identifier: MIT */
#pragma once

/* The claims that pools list, found by their ids. The lists are searched once for each run of `berth explain`. */

#include <jansson.h>

#include "base/cleanup.h"

struct listed;

struct listed_pool {
    json_t *json;            /* of io.berth.Pools; borrowed */
    json_t *waiting, *held;  /* map claims to their first item in "queue" and "holders" */
    const json_t *head;      /* the claim at the first place of its queue, borrowed; NULL: none is listed */
    json_t *holders;         /* "holders" as they are shown; NULL: as they are */
};

/* pools: of io.berth.Pools; must outlive the result. NULL: no memory. */
struct listed *listed_new(const json_t *pools);
struct listed *listed_free(struct listed *l);
DEFINE_CLEANUP(struct listed, listed_free)

size_t listed_count(const struct listed *l);
struct listed_pool *listed_at(const struct listed *l, size_t i); /* in the order of the pools */
/* Returns the pool of this name, or NULL. After a reload that changed its scope, one of the cluster and one of this
 * host can have the name: then the one that lists the claim. */
struct listed_pool *listed_find(const struct listed *l, const char *name, const char *claim);
/* Return the claim in the pool's queue, or among its holders (borrowed); NULL: it is not there, or there is no pool. */
const json_t *listed_waiter(const struct listed_pool *p, const char *claim);
const json_t *listed_holder(const struct listed_pool *p, const char *claim);
/* Adds a waiter to the end of the pool's queue. Steals it. -1: no memory. */
int listed_add_waiter(struct listed_pool *p, json_t *waiter);
