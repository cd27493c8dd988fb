/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a run waits in each of its pools, and what would start it now: the members "pools" and "sooner" of
 * `berth explain --json` (berth(1)). */

#include <jansson.h>

#include "base/explain/estimate.h"
#include "base/explain/listed.h"
#include "base/explain/queue.h"

#define REASON_ALL SIZE_MAX

/* Adds "pools" to an explained run. wants: permits by pool. blocked_by: of io.berth.Run, "" if not known.
 * answer: of io.berth.Pools. most: how many claims "ahead" lists; "ahead_more" counts the others. -ENOMEM. */
int reason_add_pools(json_t *explained, const json_t *wants, const char *blocked_by, const struct listed *listed, const json_t *answer,
                     size_t most);
/* Adds "sooner" to a run that has "pools": commands that start it at once, or sooner than its "estimate".
 * q and s: the queues; NULL: not known. most: how many claims "starts" lists; "starts_more" counts the others, if
 * there are any. -ENOMEM. */
int reason_add_sooner(json_t *explained, struct queue *q, struct estimator *s, const struct listed *listed, size_t most);

/* Returns whether the run waits for its pools, and not for Redis, the grace period or its own host. */
bool reason_is_pools(const json_t *explained);
