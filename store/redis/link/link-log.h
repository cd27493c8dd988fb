/* SPDX-License-Identifier: MIT */
#pragma once

/* Logs that Redis was lost, has moved or is connected. Each is logged once until the contrary. */

#include <stdbool.h>

#include "store/status.h"

struct store_redis;

struct link_log {
    bool is_connected, is_lost;        /* logged last */
    bool is_reloaded;                  /* a reload caused the present attempt to connect */
    char last_error[256];              /* logged already */
    char address[STATUS_ADDRESS_SIZE]; /* where the link was live last; "": never */
};

/* The link has failed. */
void link_log_lost(struct store_redis *store, const char *why, bool needs_administrator);
/* The next redis-connected is news: the session is a new one. */
void link_log_forget_connected(struct store_redis *store);
/* A reload causes the next connection, or does not any more. */
void link_log_note_reload(struct store_redis *store, bool is_reloaded);
/* The link is live: redis-moved if the server has another address, and redis-connected if that is news. */
void link_log_live(struct store_redis *store);
