/* SPDX-License-Identifier: MIT */
#pragma once

/* One connection to Redis, driven by sd-event. Nothing blocks; each command has a deadline; what is said in one turn of the event
 * loop goes out together. A connection that failed once is over: on_down is called once, never from inside a call, and what was
 * under way is not told again one by one. */

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "conf/settings.h"
#include "store/redis/client/reply.h"

struct redis_connection;

typedef void (*redis_reply_fn)(const struct redisReply *reply, void *userdata);

struct redis_connection_options { /* must outlive the connection */
    const struct redis_settings *settings;
    const char *password;     /* or NULL */
    const char *client_name;  /* for CLIENT SETNAME */
    void (*on_up)(struct redis_connection *c, void *userdata); /* connected, authenticated, database selected */
    /* It is over. error: what that calls for; text: why, until the call returns. To be freed by the owner. */
    void (*on_down)(struct redis_connection *c, enum redis_error error, const char *text, void *userdata);
    /* What this turn of the event loop has said is about to be written: the last chance to say more with it. May be NULL. */
    void (*on_writing)(struct redis_connection *c, void *userdata);
    void *userdata;
};

/* Begins to connect, to settings->unix_path, or to this address (numeric: a name would block) and settings->port. 0 or a negative
 * errno; then there is no connection and on_down is not called. */
int redis_connection_new(struct redis_connection **ret, sd_event *event, const char *address,
                         const struct redis_connection_options *options);
/* May be called from its callbacks; none is called after it. */
struct redis_connection *redis_connection_free(struct redis_connection *c);

/* Sends a command. fn gets its reply, error replies too, and is not called when the connection goes down. Arguments are copied. 0,
 * -ENOTCONN if it is over, -ENOMEM. */
int redis_connection_call(struct redis_connection *c, size_t argc, const char *const *argv, redis_reply_fn fn, void *userdata);
/* on_writing will be called before this turn of the event loop is over, or when there is room again. */
void redis_connection_flush(struct redis_connection *c);
/* Subscribes to a channel: fn gets the acknowledgment first (an array whose first element is "subscribe"), then each message
 * ("message", channel, text). One channel a connection, and no other command after it. */
int redis_connection_subscribe(struct redis_connection *c, const char *channel, redis_reply_fn fn, void *userdata);
