/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

static struct list *bucket_of(struct store_redis *store, const char *id) {
    unsigned value = 0;

    for (size_t i = 0; i < 5 && id[i]; i++) /* random digits: as good as a hash */
        value = value * 16 + (unsigned) (id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
    return &store->table.buckets[value % CLAIM_TABLE_BUCKETS];
}

struct claim_entry *claim_table_find(struct store_redis *store, const char *id) {
    list_foreach(entry, bucket_of(store, id), struct claim_entry, bucket)
        if (strcmp(entry->claim->id, id) == 0)
            return entry;
    return NULL;
}

void claim_table_confirm(struct claim_entry *entry, bool confirmed) {
    entry->store->table.n_confirmed += (size_t) confirmed - (size_t) entry->confirmed;
    entry->confirmed = confirmed;
}

void claim_table_remove(struct claim_entry *entry) {
    claim_table_confirm(entry, false);
    verify_forget(entry);
    list_unlink(&entry->link);
    list_unlink(&entry->bucket);
    list_unlink(&entry->finish);
    entry->claim->store_data = NULL;
    free(entry);
}

struct claim_entry *claim_table_add(struct store_redis *store, struct claim *claim, enum claim_state state) {
    struct claim_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->store = store;
    entry->claim = claim;
    list_append(&store->table.entries, &entry->link);
    list_append(bucket_of(store, claim->id), &entry->bucket);
    list_init(&entry->finish);
    claim->store_data = entry;
    claim->state = state;
    heartbeat_wake(store);
    return entry;
}

/* --- the end of a claim --- */

void claim_table_finish(struct claim_entry *entry) {
    struct claim_table *table = &entry->store->table;

    if (claim_entry_is_finished(entry))
        return;
    claim_table_confirm(entry, false);
    list_append(&table->finished, &entry->finish);
    defer_set(&table->finish);
}

static void deliver_end(struct store_redis *store, struct claim_entry *entry) {
    const struct store_listener *listener = &store->base.listener;
    struct claim *claim = entry->claim;
    bool refused = entry->refuse_busy && claim->state != CLAIM_STATE_RELEASING;

    claim_table_remove(entry);
    claim->state = CLAIM_STATE_NONE;
    if (refused)
        listener->on_refused(claim, store->base.is_full ? STORE_REFUSAL_NO_MEMORY : STORE_REFUSAL_BUSY,
                             claim->demands[0].pool, listener->userdata);
    else
        listener->on_released(claim, listener->userdata);
}

static void claim_table_on_finish(void *userdata) {
    struct store_redis *store = userdata;
    struct list due = LIST_INIT(due);
    struct claim_entry *entry;

    if (store->stop.is_under_way)
        return;
    /* Entries that a listener adds wait for the next turn. */
    while ((entry = list_first(&store->table.finished, struct claim_entry, finish))) {
        list_unlink(&entry->finish);
        list_append(&due, &entry->finish);
    }
    while ((entry = list_first(&due, struct claim_entry, finish)))
        deliver_end(store, entry);
}

void claim_table_refuse(struct claim_entry *entry) {
    entry->refuse_busy = true;
    claim_table_finish(entry);
}

/* --- made and freed --- */

int claim_table_init(struct store_redis *store) {
    struct claim_table *table = &store->table;

    list_init(&table->entries);
    list_init(&table->finished);
    for (size_t i = 0; i < CLAIM_TABLE_BUCKETS; i++)
        list_init(&table->buckets[i]);
    return defer_init(&table->finish, store->env.event, SD_EVENT_PRIORITY_NORMAL, claim_table_on_finish, store);
}

void claim_table_done(struct store_redis *store) {
    list_foreach_safe(entry, &store->table.entries, struct claim_entry, link)
        claim_table_remove(entry);
    defer_done(&store->table.finish);
}
