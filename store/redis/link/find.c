/* SPDX-License-Identifier: MIT */
#include "store/redis/store-redis.h"

#include <string.h>

/* A master that hangs accepts connections and does not answer. Asking again finds its successor before the dial's
 * deadline. */
#define AGAIN (500 * USEC_PER_MSEC)

bool find_uses_sentinels(const struct store_redis *store) {
    return store->link.settings.sentinels.hosts != NULL;
}

bool find_awaits_failover(const struct store_redis *store) {
    return find_uses_sentinels(store) && store->link.phase == PHASE_CONNECTING && !store->link.commands;
}

static void find_on_found(const struct moved *master, void *userdata) {
    struct store_redis *store = userdata;
    struct finder *finder = &store->finder;
    bool is_same = finder->is_dialing && finder->master.port == master->port &&
                   strcmp(finder->master.host, master->host) == 0;

    finder->down_after = finder->sentinels.poll.down_after;
    timer_set(&finder->again, usec_add(clock_boottime(), AGAIN));
    if (is_same)
        return;
    finder->master = *master;
    finder->is_dialing = true;
    redis_dial_redirect(&store->link.dial, master);
    redis_dial_start(&store->link.dial);
}

static void find_on_none(enum redis_error error, const char *text, void *userdata) {
    struct store_redis *store = userdata;

    if (store->finder.is_dialing) /* that attempt may still succeed */
        timer_set(&store->finder.again, usec_add(clock_boottime(), AGAIN));
    else
        link_on_not_found(error, text, store);
}

static void find_on_again(void *userdata) {
    struct store_redis *store = userdata;

    sentinels_ask(&store->finder.sentinels);
}

void find_start(struct store_redis *store) {
    find_settle(store);
    if (find_uses_sentinels(store))
        sentinels_ask(&store->finder.sentinels);
    else
        redis_dial_start(&store->link.dial);
}

void find_settle(struct store_redis *store) {
    store->finder.is_dialing = false;
    timer_off(&store->finder.again);
    sentinels_stop(&store->finder.sentinels);
}

void find_stop(struct store_redis *store) {
    find_settle(store);
    redis_dial_stop(&store->link.dial);
}

void find_release(struct store_redis *store) {
    sentinels_close(&store->finder.sentinels);
}

int find_init(struct store_redis *store) {
    int r = timer_init(&store->finder.again, store->link.dial.event, SD_EVENT_PRIORITY_NORMAL, find_on_again,
                       store);

    if (r < 0)
        return r;
    return sentinels_init(&store->finder.sentinels, &store->link.dial,
                          &(struct sentinels_handler){find_on_found, find_on_none, store});
}

void find_done(struct store_redis *store) {
    timer_done(&store->finder.again);
    sentinels_done(&store->finder.sentinels);
}
