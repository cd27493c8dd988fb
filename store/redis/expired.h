/* SPDX-License-Identifier: MIT */
#pragma once

/* Logs sessions of other hosts that have expired, the permits reclaimed from them, and limits that ended
 * with them. */

#include <stdbool.h>

struct store_redis;
struct sessions_reply;

/* skip_declared: see limits_apply_undeclared(). */
void expired_log(struct store_redis *store, const struct sessions_reply *sessions, bool skip_declared);
