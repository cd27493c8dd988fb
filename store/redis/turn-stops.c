/* SPDX-License-Identifier: MIT */

/* The open turns of a job are ended for an operator. Sent once: if its reply is lost, the caller asks again. */

#include <errno.h>
#include <stdlib.h>

#include "store/redis/store-redis.h"
#include "store/redis/turn-replies.h"

struct turn_stop {
    struct store_redis *store;
    struct list link; /* on turns.stops */
    store_ended_turns_fn fn;
    void *userdata;
};

static void stop_answer(struct turn_stop *stop, int result, const struct store_ended_turns *ended) {
    list_unlink(&stop->link);
    stop->fn(result, ended, stop->userdata);
    free(stop);
}

static void stop_on_reply(const struct redisReply *reply, void *userdata) {
    struct turn_stop *stop = userdata;
    struct store_redis *store = stop->store;
    struct store_ended_turns ended = {};
    int r = -ENOTCONN;

    list_unlink(&stop->link); /* the connection may be closed here, and turn_stops_reset() called */
    if (call_handle_common_reply(store, reply, PHASE_LIVE)) {
        r = ended_turns_parse(reply, &ended);
        if (r == -EBADMSG)
            call_bad_reply(store, "turned");
    }
    stop_answer(stop, r == -EBADMSG ? -ENOTCONN : r, r == 0 ? &ended : NULL);
    ended_turns_done(&ended);
}

int turn_stops_send(struct store *base, const char *pool, store_ended_turns_fn fn, void *userdata) {
    struct store_redis *store = store_redis_of(base);
    _cleanup_command_ struct redis_command command = {0};
    struct turn_stop *stop;
    int r;

    if (!heartbeat_is_ready(store))
        return -ENOTCONN;
    stop = calloc(1, sizeof(*stop));
    if (!stop)
        return -ENOMEM;
    *stop = (struct turn_stop) {.store = store, .fn = fn, .userdata = userdata};
    turns_begin_call(store, &command, "stop");
    command_add(&command, pool);
    r = call_send(store, &command, stop_on_reply, stop);
    if (r < 0)
        free(stop);
    else
        list_append(&store->turns.stops, &stop->link);
    return r;
}

void turn_stops_reset(struct store_redis *store) {
    list_foreach_safe (stop, &store->turns.stops, struct turn_stop, link)
        stop_answer(stop, -ENOTCONN, NULL);
}
