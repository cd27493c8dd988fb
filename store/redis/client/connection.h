/* SPDX-License-Identifier: MIT */
#pragma once

/* One connection to Redis, driven by sd-event. No call blocks and each command has a deadline. The commands of one
 * turn of the event loop are sent together. A connection does not recover from an error: on_down is called once, never
 * from inside a call, and the fn of commands without a reply are not called. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "conf/settings.h"
#include "store/redis/client/reply.h"
#include "store/redis/client/socket.h"
#include "store/redis/client/subscription.h"

struct redis_connection;

struct redis_connection_options { /* must outlive the connection */
    const struct redis_settings *settings; /* user, database, timeout */
    const char *client_name;  /* for CLIENT SETNAME */
    void (*on_up)(struct redis_connection *c, void *userdata); /* connected, authenticated, database selected */
    /* The connection failed. text: the reason, valid during the call. The owner frees the connection. */
    void (*on_down)(struct redis_connection *c, enum redis_error error, const char *text, void *userdata);
    /* Called before the output buffer is flushed; commands added here go out in the same write. May be NULL. */
    void (*on_writing)(struct redis_connection *c, void *userdata);
    void *userdata;
    usec_t patience_usec; /* an answer may take as long, where that is more than `timeout` */
    usec_t silence_usec; /* of a subscription, after which it is checked by PING; 0: never */
};

/* Starts to connect. The target is used during the call alone; its TLS context stays the owner's. Returns 0 or a
 * negative errno; on_down is not called after an error. */
int redis_connection_new(struct redis_connection **ret, sd_event *event, const struct redis_target *target,
                         const struct redis_connection_options *options);
/* Uses the callbacks of other options from now on. */
void redis_connection_set_options(struct redis_connection *c, const struct redis_connection_options *options);
/* NULL: the connection is plain, or not up. */
const struct tls_session *redis_connection_tls(const struct redis_connection *c);
/* May be called from the connection's callbacks; calls none afterwards. */
struct redis_connection *redis_connection_free(struct redis_connection *c);

/* Sends a command; arguments are copied. fn receives the reply, also an error; it is not called if the connection
 * fails. Returns 0, -ENOMEM, or -ENOTCONN if the connection has failed. */
int redis_connection_call(struct redis_connection *c, size_t argc, const char *const *argv, redis_reply_fn fn, void *userdata);
/* Return the serial number that the next command will have, and that of the command whose reply is handled now. The
 * first command of a connection, AUTH included, has 1. */
uint64_t redis_connection_next_serial(const struct redis_connection *c);
uint64_t redis_connection_answered_serial(const struct redis_connection *c);
/* Requests on_writing in this turn of the event loop, or as soon as the socket is writable. */
void redis_connection_flush(struct redis_connection *c);
/* Sends now what this turn of the event loop would send at its end, after on_writing. Calls no reply's fn. */
void redis_connection_send(struct redis_connection *c);
/* Subscribes to a sharded channel. fn receives arrays: the acknowledgment begins with "ssubscribe", each message is
 * "smessage", channel, text. One with "sunsubscribe" comes if the slot of the channel leaves this server. A connection
 * has one channel, and takes no command after this call. */
int redis_connection_subscribe(struct redis_connection *c, const char *channel, redis_reply_fn fn, void *userdata);
