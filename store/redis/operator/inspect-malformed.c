/* SPDX-License-Identifier: MIT */

/* The list of malformed records in a snapshot. */

#include <stdlib.h>

#include "store/redis/store-redis.h"

/* Positions in the replies of inspect.lua. */
enum { MALFORMED_KEY, MALFORMED_ID, MALFORMED_RECORD };

void inspect_malformed_add(struct snapshot *s, const char *key, const struct redisReply *id,
                           const struct redisReply *record) {
    struct snapshot_malformed *grown;

    if (s->n_malformed >= SNAPSHOT_LIST_MAX)
        return;
    grown = reallocarray(s->malformed, s->n_malformed + 1, sizeof(*grown));
    if (!grown)
        return;
    s->malformed = grown;
    grown = &s->malformed[s->n_malformed++];
    (void) snprintf(grown->key, sizeof(grown->key), "%s", key);
    reply_escape(id, grown->id, sizeof(grown->id));
    reply_escape(record, grown->record, sizeof(grown->record));
}

void inspect_malformed_read(struct snapshot *s, const struct redisReply *list) {
    const struct redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        char key[sizeof(s->malformed->key)];

        reply_escape(reply_at(item, MALFORMED_KEY), key, sizeof(key));
        inspect_malformed_add(s, key, reply_at(item, MALFORMED_ID), reply_at(item, MALFORMED_RECORD));
    }
}
