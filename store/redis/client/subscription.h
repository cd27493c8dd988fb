/* SPDX-License-Identifier: MIT */
#pragma once

/* The listeners of a subscription, and whether it still lives: nothing is sent on it, so a proxy between may
 * have ended it unnoticed. One that was silent for a while is asked by PING. */

#include <stdbool.h>

#include "store/redis/client/reply.h"

typedef void (*redis_reply_fn)(const struct redisReply *reply, void *userdata);

struct redis_subscription {
    redis_reply_fn fn; /* NULL: there is none */
    void *userdata;
    bool is_heard; /* since the last check */
    bool is_asked; /* and has not answered yet */
};

/* Passes a message on; or returns true: it was the answer to PING. */
bool redis_subscription_hear(struct redis_subscription *s, const struct redisReply *reply);

enum redis_silence {
    REDIS_SILENCE_NONE,  /* check again after the silence that is allowed */
    REDIS_SILENCE_ASK,   /* send PING, and check again after the timeout of an answer */
    REDIS_SILENCE_DEAD,
};
enum redis_silence redis_subscription_check(struct redis_subscription *s);
