/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "store/redis/store-redis.h"

void epoch_init(struct store_redis *store) {
    memcpy(store->epoch.id, "0", sizeof("0"));
}

bool epoch_is(const struct store_redis *store, const char *id) {
    return strcmp(store->epoch.id, id) == 0;
}

void epoch_observe(struct store_redis *store, const char *id) {
    if (epoch_is(store, id))
        return;
    if (!epoch_is(store, "0"))
        admin_leave_grace(store);
    (void) snprintf(store->epoch.id, sizeof(store->epoch.id), "%s", id);
    store->epoch.known_since = clock_boottime();
    store->epoch.in_grace = false;
    store->epoch.data_loss = DATA_LOSS_NONE;
    samples_reset(store);
    push_reset_epoch(store);
}

void epoch_set_grace(struct store_redis *store, bool in_grace) {
    if (in_grace && !store->epoch.in_grace)
        event_emit(store->env.events,
                   &(struct event) {.type = EVENT_GRACE_BEGUN, .clock = store->base.known},
                   "the namespace has a new epoch: nothing is granted for a lease, while hosts report their claims");
    else if (!in_grace && store->epoch.in_grace)
        event_emit(store->env.events, &(struct event) {.type = EVENT_GRACE_ENDED},
                   "the grace period has ended: permits are granted again");
    store->epoch.in_grace = in_grace;
}

void epoch_note_data_loss(struct store_redis *store, enum data_loss loss) {
    store->epoch.data_loss = loss;
}
