/* SPDX-License-Identifier: MIT */
#pragma once

/* Administrators' calls: override, revoke, move, end of grace. Each is answered once, with -ENOTCONN if Redis is
 * away. */

#include "store/store.h"

struct store_redis;

/* --- operations of the store --- */

int admin_override(struct store *base, const struct store_override *override, store_reply_fn fn,
                   void *userdata);
int admin_revoke(struct store *base, const char *claim, const char *reason, store_reply_fn fn,
                 void *userdata);
int admin_move(struct store *base, struct store_move *move, store_reply_fn fn, void *userdata);
int admin_end_grace(struct store *base, store_reply_fn fn, void *userdata);

/* Sends what waited for a live link. */
void admin_send_pending(struct store_redis *store);
/* Returns whether an administrator ends grace with the next heartbeat. */
bool admin_is_ending_grace(const struct store_redis *store);
/* There is no grace (any more): answers those who end it. */
void admin_answer_grace(struct store_redis *store);
/* Another epoch has begun: fails those who end the grace of the one before. They knew what ran then, not what
 * Redis has lost since. */
void admin_leave_grace(struct store_redis *store);
/* Calls under way are sent again. */
void admin_reset(struct store_redis *store);
/* Redis is away: fails calls that are not under way. */
void admin_fail(struct store_redis *store);
