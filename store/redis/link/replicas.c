/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "store/redis/store-redis.h"

#define WAIT_MAX (2 * USEC_PER_SEC)

void replicas_reset(struct store_redis *store) {
    store->replicas.awaited_since = 0;
}

bool replicas_are_awaited(const struct store_redis *store) {
    return store->replicas.awaited_since > 0;
}

/* A live link reconnects: its master may have lost its replicas because it was replaced. A refused call costs Redis much
 * less than new connections, so thousands of hosts may repeat it often. */
bool replicas_wait(struct store_redis *store, const char *error, const char *why) {
    struct redis_link *link = &store->link;
    usec_t now = clock_boottime(), pause;

    if (strncmp(error, "NOREPLICAS ", strlen("NOREPLICAS ")) != 0 || !link->commands || link->phase == PHASE_LIVE ||
        store->stop.is_under_way)
        return false;
    if (!replicas_are_awaited(store))
        store->replicas.awaited_since = now;
    if (usec_sub(now, store->replicas.awaited_since) >= WAIT_MAX)
        return false;
    if (store->base.state == STORE_STATE_AWAY)
        link_note_away(store, why);
    pause = backoff_draw(&link->backoff, backoff_next_brief(&link->backoff));
    if (link->phase == PHASE_CONNECTING)
        link_retry(store, pause);
    else
        link_repeat_hello_after(store, pause);
    return true;
}
