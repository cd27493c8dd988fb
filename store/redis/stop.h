/* SPDX-License-Identifier: MIT */
#pragma once

/* The end of the session: a store that stops sends `bye`. */

#include "store/store.h"

struct store_redis;

struct store_stop {
    bool is_under_way;
    store_reply_fn done;
    void *userdata;
};

/* Ends the session; `done` is called once, a turn later at the earliest. */
void stop_start(struct store_redis *store, store_reply_fn done, void *userdata);
/* Gives up: the session stays in Redis until its lease ends, or the next berthd continues it. Closes both connections, logs why, and
 * calls `done` with -ENOTCONN. */
void stop_fail(struct store_redis *store, const char *why);
