/* SPDX-License-Identifier: MIT */
#pragma once

/* The handler of a subscription, and whether the subscription is alive. A proxy can end a connection on which nothing
 * is sent without notice, so PING checks one that was silent for a while. */

#include <stdbool.h>

#include "store/redis/client/reply.h"

typedef void (*redis_reply_fn)(const struct redisReply *reply, void *userdata);

struct redis_subscription {
    redis_reply_fn fn; /* NULL: there is none */
    void *userdata;
    bool has_received; /* since the last check */
    bool awaits_pong;  /* PING was sent and is not answered */
};

/* Passes a message on, or returns true: it was the answer to PING. */
bool redis_subscription_receive(struct redis_subscription *s, const struct redisReply *reply);

enum redis_silence {
    REDIS_SILENCE_NONE,  /* check again after silence_usec */
    REDIS_SILENCE_ASK,   /* send PING, and check again after `timeout` */
    REDIS_SILENCE_DEAD,
};
enum redis_silence redis_subscription_check(struct redis_subscription *s);
