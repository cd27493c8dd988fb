/* SPDX-License-Identifier: MIT */

#include "store/redis/store-redis.h"

#define REDIRECTS_MAX 5
#define WAIT_MIN (50 * USEC_PER_MSEC)
#define WAIT_MAX (1 * USEC_PER_SEC)
#define FAILOVER_MARGIN (10 * USEC_PER_SEC) /* more than 1.5 node timeouts of 5 s */

void slot_reset(struct store_redis *store) {
    store->slot.waiting_since = 0;
}

usec_t slot_failover_margin(const struct store_redis *store) {
    usec_t margin = store->link.settings.failover_margin_usec;
    bool has_failovers = store->handshake.server.is_cluster || find_uses_sentinels(store);

    return margin != USEC_INFINITY ? margin : has_failovers ? FAILOVER_MARGIN : 0;
}

bool slot_redirect(struct store_redis *store, const char *error) {
    struct moved moved;

    if (store->stop.is_under_way || moved_parse(error, &moved) < 0 || ++store->slot.n_redirects > REDIRECTS_MAX)
        return false;
    redis_dial_redirect(&store->link.dial, &moved);
    link_restart(store);
    return true;
}

bool slot_goes_in_circles(const struct store_redis *store) {
    return store->slot.n_redirects > REDIRECTS_MAX;
}

bool slot_is_away(const struct store_redis *store) {
    return store->slot.waiting_since > 0 && store->base.state == STORE_STATE_AWAY;
}

void slot_wait(struct store_redis *store, const char *why) {
    usec_t now = clock_boottime(), pause = link_next_pause(store);

    if (store->slot.waiting_since == 0)
        store->slot.waiting_since = now;
    link_repeat_hello_after(store, pause < WAIT_MIN ? WAIT_MIN : pause < WAIT_MAX ? pause : WAIT_MAX);
    if (usec_sub(now, store->slot.waiting_since) <= store->link.settings.timeout_usec || slot_is_away(store))
        return;
    link_log_lost(store, why, false);
    link_note_away(store, why);
    link_enter_away(store);
}
