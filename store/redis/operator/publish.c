/* SPDX-License-Identifier: MIT */
#include "store/redis/operator/publish.h"

#include <stdlib.h>

#include "store/redis/store-redis.h"

void publish_set(struct store *base, char *text) {
    struct publish *publish = &store_redis_of(base)->operator.publish;

    free(publish->text);
    publish->text = text;
    publish->is_sent = false;
}

void publish_done(struct store_redis *store) {
    free(store->operator.publish.text);
}

void publish_again(struct store_redis *store) {
    store->operator.publish.is_sent = false;
}

bool publish_is_due(const struct store_redis *store) {
    return store->operator.publish.text && !store->operator.publish.is_sent && !store->base.is_full;
}

void publish_add(struct store_redis *store, struct redis_command *command) {
    command_add(command, store->operator.publish.text);
    store->operator.publish.is_sent = true;
}
