/* SPDX-License-Identifier: MIT */
#pragma once

/* Logs that Redis was lost, has moved or is connected: each change once. */

#include <stdbool.h>

#include "store/status.h"

struct store_redis;

struct link_log {
    bool is_connected, is_lost;        /* as logged */
    bool is_reloaded;                  /* a reload caused the present attempt to connect */
    char last_error[256];              /* logged already */
    char address[STATUS_ADDRESS_SIZE]; /* where the link was live last; "": never */
};

/* Logs that the link has failed, unless that is logged. */
void link_log_lost(struct store_redis *store, const char *why, bool needs_administrator);
/* Makes the next redis-connected news, because the session is a new one. */
void link_log_forget_connected(struct store_redis *store);
/* Notes whether a reload causes the next connection. */
void link_log_note_reload(struct store_redis *store, bool is_reloaded);
/* Logs redis-moved if the server of a live link has another address, and redis-connected if that is news. */
void link_log_live(struct store_redis *store);
