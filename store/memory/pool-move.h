/* SPDX-License-Identifier: MIT */
#pragma once

/* Moves of claims in pools. Core: decisions only. */

#include "store/memory/pool.h"
#include "store/store.h"

/* Moves a waiting or parked claim as store_move() does, and fills the result. before: for STORE_MOVE_BEFORE, a claim
 * in one of these states. 0 or STORE_E_APART. */
int pools_move(struct pools *p, struct pool_claim *c, const struct pool_claim *before, struct store_move *move, usec_t now_realtime);
