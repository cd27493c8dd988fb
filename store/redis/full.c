/* SPDX-License-Identifier: MIT */

#include <syslog.h>

#include "store/redis/store-redis.h"

#define PAUSE_MIN (100 * USEC_PER_MSEC)
#define LOG_EVERY (60 * USEC_PER_SEC)

void full_begin(struct store_redis *store) {
    struct full *full = &store->full;

    if (!store->base.is_full)
        full->pause_usec = PAUSE_MIN;
    store->base.is_full = true;
    timer_set(&full->timer, usec_add(clock_boottime(), full->pause_usec));
}

void full_log_waiting(struct store_redis *store) {
    usec_t now = clock_boottime();

    if (store->full.logged > 0 && now < usec_add(store->full.logged, LOG_EVERY))
        return;
    store->full.logged = now;
    journal_log(store_redis_journal(store), LOG_WARNING,
                "the memory of Redis is full: waiting claims are requested again until it has room");
}

void full_end(struct store_redis *store) {
    if (!store->base.is_full)
        return;
    store->base.is_full = false;
    claims_send_pending(store);
}

void full_reset(struct store_redis *store) {
    store->base.is_full = false; /* claims are requested again once the link is live */
}

/* Requests the first claim alone: later ones must not overtake it. */
static void full_on_timer(void *userdata) {
    struct store_redis *store = userdata;
    usec_t pause = store->full.pause_usec * 2;

    if (!heartbeat_is_ready(store)) {
        full_reset(store);
        return;
    }
    store->full.pause_usec = pause < store->env.heartbeat_usec ? pause : store->env.heartbeat_usec;
    if (!claims_retry_first(store))
        store->base.is_full = false; /* no claim waits for memory any more */
}

int full_init(struct store_redis *store) {
    return timer_init(&store->full.timer, store->env.event, SD_EVENT_PRIORITY_NORMAL, full_on_timer, store);
}

void full_done(struct store_redis *store) {
    timer_done(&store->full.timer);
}
