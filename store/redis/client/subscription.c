/* SPDX-License-Identifier: MIT */

#include "store/redis/client/subscription.h"

/* Returns whether the reply answers PING. An error also does: a user may lack the right to PING. */
static bool is_answer(const struct redisReply *reply) {
    return reply_error(reply) || reply_is(reply_at(reply, 0), "pong");
}

bool redis_subscription_receive(struct redis_subscription *s, const struct redisReply *reply) {
    bool is_expected = s->awaits_pong && is_answer(reply);

    s->has_received = true;
    if (is_expected)
        s->awaits_pong = false;
    else
        s->fn(reply, s->userdata);
    return is_expected;
}

enum redis_silence redis_subscription_check(struct redis_subscription *s) {
    if (s->has_received) {
        s->has_received = false;
        return REDIS_SILENCE_NONE;
    }
    if (s->awaits_pong)
        return REDIS_SILENCE_DEAD;
    s->awaits_pong = true;
    return REDIS_SILENCE_ASK;
}
