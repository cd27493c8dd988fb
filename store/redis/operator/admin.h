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
/* Answers calls that end grace, because it is over. */
void admin_answer_grace(struct store_redis *store);
/* Fails calls that end the grace of an earlier epoch: their callers do not know what Redis has lost since. */
void admin_leave_grace(struct store_redis *store);
/* Forgets the calls under way, which are sent again. */
void admin_reset(struct store_redis *store);
/* Fails calls that are not under way, because Redis is away. */
void admin_fail(struct store_redis *store);
