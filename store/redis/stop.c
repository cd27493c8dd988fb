/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

/* Closes both connections, and calls `done` with `result`. */
static void stop_finish(struct store_redis *store, int result) {
    store_reply_fn done = store->stop.done;

    store->stop.done = NULL;
    link_close(store);
    admin_fail(store);
    inspect_fail(store);
    if (done)
        done(result, store->stop.userdata);
}

void stop_fail(struct store_redis *store, const char *why) {
    if (store->stop.done)
        journal_log(store_redis_journal(store), LOG_NOTICE, "Redis does not know that this host stops, so its session lasts until the lease is over: %s",
                    redis_error_text(why));
    stop_finish(store, -ENOTCONN);
}

static void stop_on_bye(const struct redisReply *reply, void *userdata);

static int send_bye(struct store_redis *store) {
    _cleanup_command_ struct redis_command command = {0};

    call_begin_session(store, &command, REDIS_SCRIPT_BYE);
    return call_send(store, &command, stop_on_bye, store);
}

static void stop_on_bye(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    struct bye_reply bye;

    if (bye_reply_parse(reply, &bye) == 0) {
        limits_apply_undeclared(store, bye.undeclared, false);
        if (bye.more > 0 && heartbeat_take_extra(store) && send_bye(store) == 0)
            return;
    } else if (!reply_is(reply_at(reply, 0), "stale")) { /* that session is another berthd's */
        stop_fail(store, reply && reply_error(reply) ? reply_error(reply) : "no valid answer");
        return;
    }
    session_forget(store);
    stop_finish(store, 0);
}

void stop_start(struct store_redis *store, store_reply_fn done, void *userdata) {
    store->stop = (struct store_stop) {.is_under_way = true, .done = done, .userdata = userdata};
    heartbeat_reset(store);
    if (store->link.phase < PHASE_HELLO || send_bye(store) != 0)
        link_retry(store, 0); /* calls `done` a turn later */
}
