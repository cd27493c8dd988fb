/* SPDX-License-Identifier: MIT */

/* The list of malformed records in a snapshot. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"

enum { MALFORMED_KEY, MALFORMED_ID, MALFORMED_TEXT };

/* Returns the entry that equals the last one, or the last one: several calls find the same record. */
static struct snapshot_malformed *drop_twin(struct snapshot *s) {
    struct snapshot_malformed *last = &s->malformed[s->n_malformed - 1];

    for (size_t i = 0; i + 1 < s->n_malformed; i++)
        if (strcmp(s->malformed[i].key, last->key) == 0 && strcmp(s->malformed[i].id, last->id) == 0) {
            s->n_malformed--;
            return &s->malformed[i];
        }
    return last;
}

struct snapshot_malformed *inspect_malformed_add(struct snapshot *s, const char *key,
                                                 const struct redisReply *id,
                                                 const struct redisReply *record) {
    struct snapshot_malformed *grown;

    if (s->n_malformed >= SNAPSHOT_LIST_MAX)
        return NULL;
    grown = reallocarray(s->malformed, s->n_malformed + 1, sizeof(*grown));
    if (!grown)
        return NULL;
    s->malformed = grown;
    grown = &s->malformed[s->n_malformed++];
    (void) snprintf(grown->key, sizeof(grown->key), "%s", key);
    reply_escape(id, grown->id, sizeof(grown->id));
    reply_escape(record, grown->record, sizeof(grown->record));
    return drop_twin(s);
}

void inspect_malformed_read(struct snapshot *s, const struct redisReply *list) {
    const struct redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        char key[sizeof(s->malformed->key)];

        reply_escape(reply_at(item, MALFORMED_KEY), key, sizeof(key));
        (void) inspect_malformed_add(s, key, reply_at(item, MALFORMED_ID), reply_at(item, MALFORMED_TEXT));
    }
}
