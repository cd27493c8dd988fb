/* SPDX-License-Identifier: MIT */
#pragma once

/* Collects snapshots. inspect.lua answers in slices, so that looking delays no grant for long; one call is
 * under way at a time, whoever looks. Questions that arrive before a snapshot is begun share it. */

#include "base/list.h"
#include "base/timer.h"
#include "store/redis/operator/inspect-budget.h"
#include "store/store.h"

struct store_redis;

struct inspections {
    struct list list; /* struct inspection; the first one is being made */
    struct inspect_budget budget;
    struct timer timer; /* all that ask now have asked, or the budget allows the next one to begin */
};

int inspect_init(struct store_redis *store);
void inspect_done(struct store_redis *store);

/* --- operation of the store --- */

int inspect_start(struct store *base, const struct store_question *question, store_inspect_fn fn, void *userdata);

/* Sends what waited for a live link. */
void inspect_send_pending(struct store_redis *store);
/* Forgets the call under way: its snapshot is begun again. */
void inspect_reset(struct store_redis *store);
/* Redis is away: fails all inspections without a call under way. */
void inspect_fail(struct store_redis *store);
