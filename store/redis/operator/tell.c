/* SPDX-License-Identifier: MIT */
#include "store/redis/operator/tell.h"

#include <stdlib.h>

#include "store/redis/store-redis.h"

void tell_set(struct store *base, char *text) {
    struct tell *tell = &store_redis_of(base)->operator.tell;

    free(tell->text);
    tell->text = text;
    tell->is_sent = false;
}

void tell_done(struct store_redis *store) {
    free(store->operator.tell.text);
}

void tell_again(struct store_redis *store) {
    store->operator.tell.is_sent = false;
}

bool tell_is_due(const struct store_redis *store) {
    return store->operator.tell.text && !store->operator.tell.is_sent && !store->base.is_full;
}

void tell_add(struct store_redis *store, struct redis_command *command) {
    command_add(command, store->operator.tell.text);
    store->operator.tell.is_sent = true;
}
