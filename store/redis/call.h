/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls of scripts, and the replies that any call can get. */

#include <stdbool.h>

#include "store/redis/client/command.h"
#include "store/redis/client/connection.h"
#include "store/redis/client/script.h"
#include "store/redis/link/link.h"

/* Adds a script's call up to its keys. */
void call_begin_plain(struct store_redis *store, struct redis_command *command, enum redis_script script);
/* Adds a script's call up to session and connection number. */
void call_begin_session(struct store_redis *store, struct redis_command *command, enum redis_script script);
/* Adds a script's call up to epoch and serial number. The reply names the serial number, so that it counts for no other call. No
 * other command may be sent before call_send(). */
void call_begin(struct store_redis *store, struct redis_command *command, enum redis_script script);
/* Sends a call. Returns 0, -ENOTCONN if the link is failing, or -ENOMEM: then everything pending is sent
 * again after the next heartbeat. */
int call_send(struct store_redis *store, const struct redis_command *command, redis_reply_fn fn,
              void *userdata);
/* Logs that a call could not be allocated, and requests that everything pending is sent again. */
void call_note_no_memory(struct store_redis *store);
/* Fails the link because of a malformed reply. what: the call. */
void call_bad_reply(struct store_redis *store, const char *what);
/* Returns whether a reply of hello answers its call. Any other reply (error, "epoch", "gone", "stale") is handled here,
 * provided that the link is still in the phase of the call. */
bool call_handle_common_reply(struct store_redis *store, const struct redisReply *reply,
                              enum link_phase during);
/* The same for a call that has a serial number. The link fails if the reply names another one: a proxy has lost a reply. */
bool call_accept_reply(struct store_redis *store, const struct redisReply *reply, enum link_phase during);
