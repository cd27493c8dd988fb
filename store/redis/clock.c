/* SPDX-License-Identifier: MIT */

/* What this host remembers of the namespace's clock (R7, R10). It outlives a loss of Redis's data: the host then tells a number that no
 * number drawn before the loss can exceed, whatever Redis's own clock shows. */

#include "store/redis/store-redis.h"

/* Hosts' clocks differ in rate by 1 % at most (R8). */
static uint64_t aged(uint64_t number, usec_t since, usec_t now) {
    usec_t age = usec_sub(now, since);

    return number > 0 ? number + age + age / 100 : 0;
}

uint64_t clock_latest(const struct store_redis *r, usec_t now) {
    return aged(r->clock.latest, r->clock.since, now);
}

static void remember(struct store_redis *r, uint64_t number, usec_t since, usec_t now) {
    r->clock.latest = number;
    r->clock.since = since;
    r->clock.heard = now;
}

void clock_hear_drawn(struct store_redis *r, uint64_t number) {
    usec_t now = clock_boottime(), since = r->last.count > 0 ? r->last.sent : now;

    if (number > r->clock.drawn)
        r->clock.drawn = number;
    if (aged(number, since, now) > clock_latest(r, now))
        remember(r, number, since, now);
}

void clock_hear_latest(struct store_redis *r, uint64_t number, usec_t sent) {
    usec_t now = clock_boottime();

    if (r->clock.heard <= sent || aged(number, sent, now) > clock_latest(r, now))
        remember(r, number, sent, now);
}
