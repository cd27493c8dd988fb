/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a run waits in each of its pools, and what would start it now: the members "pools" and "sooner" of
 * `berth explain --json` (berth(1)). */

#include <jansson.h>

#include "base/explain/estimate.h"
#include "base/explain/queue.h"

/* Adds "pools" to an explained run. wants: permits by pool. blocked_by: of io.berth.Run, "" if not known.
 * pools: of io.berth.Pools. -ENOMEM. */
int reason_add_pools(json_t *explained, const json_t *wants, const char *blocked_by, const json_t *pools);
/* Adds "sooner" to a run that has "pools": commands that start it at once, or sooner than its "estimate".
 * view: the queues; NULL: not known. -ENOMEM. */
int reason_add_sooner(json_t *explained, const struct estimate_view *view, const json_t *pools);

/* Returns whether the run waits for its pools, and not for Redis, the grace period or its own host. */
bool reason_is_pools(const json_t *explained);
/* Returns the pool of this name (borrowed), or NULL. After a reload that changed its scope, one of the cluster and one of
 * this host can have the name: then the one that lists the claim. */
const json_t *reason_pool(const json_t *pools, const char *name, const char *claim);
/* Returns the claim in a list of Holders or Waiters (borrowed), or NULL. */
const json_t *reason_claim(const json_t *list, const char *claim);
