/* SPDX-License-Identifier: MIT */

#include "store/redis/store-redis.h"

/* Hosts' clocks differ in rate by 1 % at most (R8). */
static uint64_t aged(uint64_t number, usec_t since, usec_t now) {
    usec_t age = usec_sub(now, since);

    return number > 0 ? number + age + age / 100 : 0;
}

uint64_t clock_latest(const struct store_redis *store, usec_t now) {
    return aged(store->clock.latest, store->clock.since, now);
}

static void set_latest(struct namespace_clock *clock, uint64_t number, usec_t since, usec_t now) {
    clock->latest = number;
    clock->since = since;
    clock->observed_at = now;
}

void clock_restore(struct store_redis *store, uint64_t latest, usec_t since) {
    set_latest(&store->clock, latest, since, clock_boottime());
}

void clock_observe_drawn(struct store_redis *store, uint64_t number) {
    const struct heartbeat_sample *newest = &store->samples.newest;
    usec_t now = clock_boottime(), since = newest->count > 0 ? newest->sent : now;

    if (number > store->clock.drawn)
        store->clock.drawn = number;
    if (aged(number, since, now) > clock_latest(store, now))
        set_latest(&store->clock, number, since, now);
}

void clock_observe_latest(struct store_redis *store, uint64_t number, usec_t sent) {
    usec_t now = clock_boottime();

    if (store->clock.observed_at <= sent || aged(number, sent, now) > clock_latest(store, now))
        set_latest(&store->clock, number, sent, now);
}

void clock_forget(struct store_redis *store) {
    store->clock = (struct namespace_clock) {0};
}
