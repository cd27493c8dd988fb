/* SPDX-License-Identifier: MIT */
#pragma once

/* Collects snapshots. inspect.lua replies in slices, so that no call delays a grant for long, and one call is under
 * way at a time. Questions that arrive before a snapshot begins share it. */

#include "base/list.h"
#include "base/timer.h"
#include "store/redis/operator/inspect-budget.h"
#include "store/store.h"

struct store_redis;

struct inspections {
    struct list list; /* struct inspection; the first one is under way */
    struct inspect_budget budget;
    struct timer timer; /* begins the first one, at the end of this turn or when the budget allows it; frees
                         * memory when nobody looks */
};

int inspect_init(struct store_redis *store);
void inspect_done(struct store_redis *store);

/* --- operation of the store --- */

int inspect_start(struct store *base, const struct store_question *question, store_inspect_fn fn, void *userdata);

/* Sends what waited for a live link. */
void inspect_send_pending(struct store_redis *store);
/* Forgets the call under way, and begins its snapshot again. */
void inspect_reset(struct store_redis *store);
/* Fails all inspections without a call under way, because Redis is away. */
void inspect_fail(struct store_redis *store);
