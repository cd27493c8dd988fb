/* SPDX-License-Identifier: MIT */

/* The sync names held claims first, then waiting ones by ticket. It also names claims that were requested
 * and not answered, so that they keep their places. Other calls wait until Redis has all of them. */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

#define SYNC_PART 200 /* claims in one part of a sync (R15) */

static void sync_send(struct store_redis *store);

void sync_reset(struct store_redis *store) {
    free(store->sync.entries);
    store->sync = (struct sync) {};
}

/* Returns whether the claim's turn is given back and Redis has not replied. A sync without the claim would end the
 * turn. Redis may have given it back, so another host may have the turn and its permit. */
static bool is_given_back(const struct claim_entry *entry) {
    return entry->claim->state == CLAIM_STATE_RELEASING && entry->back_attempt > 0 && entry->claim->token > 0;
}

static bool is_held(const struct claim_entry *entry) {
    return (entry->claim->state == CLAIM_STATE_HELD || is_given_back(entry)) && !entry->lease_lost;
}

static int compare(const void *a, const void *b) {
    const struct claim_entry *x = *(struct claim_entry *const *) a, *y = *(struct claim_entry *const *) b;

    if (is_held(x) != is_held(y))
        return is_held(x) ? -1 : 1;
    if (x->claim->ticket != y->claim->ticket)
        return x->claim->ticket < y->claim->ticket ? -1 : 1;
    return 0;
}

static bool is_part_of_sync(const struct claim_entry *entry) {
    return entry->sent && !entry->lease_lost && !claim_entry_is_finished(entry) &&
           (entry->claim->state != CLAIM_STATE_RELEASING || is_given_back(entry));
}

void sync_start(struct store_redis *store) {
    struct sync *sync = &store->sync;
    size_t n = 0;

    sync_reset(store);
    claims_prepare_sync(store);
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        n++;
    sync->entries = calloc(n + 1, sizeof(struct claim_entry *));
    if (!sync->entries) {
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
        return;
    }
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        if (is_part_of_sync(entry))
            sync->entries[sync->n++] = entry;
    qsort(sync->entries, sync->n, sizeof(struct claim_entry *), compare);
    sync_send(store);
}

static void add_claim(struct redis_command *command, const struct claim_entry *entry) {
    const struct claim *claim = entry->claim;
    const char *kind = is_given_back(entry) ? "B"
                       : is_held(entry)     ? entry->needs_token ? "K" : "H"
                       : claim->ticket > 0  ? "W"
                                            : "A";
    char text[DEMANDS_TEXT_SIZE], head[CLAIM_HEAD_SIZE];

    command_add(command, claim->id);
    command_add(command, kind);
    command_add_u64(command, is_held(entry) ? claim->token : 0);
    command_add_u64(command, claim->ticket);
    command_add(command, claims_format_head(claim, head));
    command_add_u64(command, claim->since_realtime);
    command_add_u64(command, claim->pid);
    command_add(command, claim->id);
    command_add(command, claim->name);
    command_add(command, demands_format_refs(claim->demands, claim->n_demands, text));
}

static void apply_claim(struct store_redis *store, const struct synced_claim_reply *reply) {
    struct claim_entry *entry = claim_table_find(store, reply->id);

    if (!entry)
        return; /* withdrawn meanwhile */
    if (reply->state == '-') {
        claims_handle_unknown(entry);
        return;
    }
    claim_table_confirm(entry, true);
    if (entry->awaits_turn && entry->claim->state == CLAIM_STATE_ASKED && !reply->is_revoked)
        return; /* requested again once the link is live: only the reply to that names the attempt */
    if (reply->moved > 0)
        claims_handle_moved(entry, reply->given_usec, reply->moved);
    if (reply->state == 'H')
        claims_handle_held(entry, reply->ticket, reply->token, reply->since_realtime,
                           usec_sub(reply->token, reply->since_realtime));
    else
        claims_handle_waiting(entry, reply->state == 'P', reply->ticket, reply->position,
                              reply->since_realtime);
    if (reply->is_revoked)
        claims_handle_revoked(entry, 0);
}

static void log_overcommitted(struct store_redis *store, const struct redisReply *list) {
    struct overcommitted_reply pool;

    for (size_t i = 0; overcommitted_reply_at(list, i, &pool) == 0; i++)
        event_emit(store->env.events, &(struct event) {.type = EVENT_OVERCOMMITTED, .pools = pool.pool},
                   "%" PRIu64 " permits of pool %s are in use, its limit is %" PRIu64
                   ": the claims of running jobs are restored, nothing is granted until use is below the limit",
                   pool.used, pool.pool, pool.limit);
}

static void sync_finish(struct store_redis *store) {
    push_skip_to(store, store->sync.last_number);
    sync_reset(store);
    link_go_live(store);
    claims_finish_released(store);
    heartbeat_start(store);
    hello_declare_due(store);
}

static void sync_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    struct sync *sync = &store->sync;
    struct sync_reply part;
    struct synced_claim_reply claim;

    if (store->link.phase != PHASE_SYNC || !call_accept_reply(store, reply, PHASE_SYNC))
        return;
    if (sync_reply_parse(reply, &part) < 0) {
        call_bad_reply(store, "sync");
        return;
    }
    for (size_t i = 0; synced_claim_reply_at(part.claims, i, &claim) == 0; i++)
        apply_claim(store, &claim);
    log_overcommitted(store, part.overcommitted);
    clock_observe_drawn(store, part.drawn);
    if (!sync->is_answered) { /* the push of a grant between two parts counts as missing until it comes */
        sync->is_answered = true;
        sync->last_number = part.last_number;
    }
    if (store->link.phase != PHASE_SYNC)
        return;
    if (sync->at == sync->n && part.more > 0 && !heartbeat_take_extra(store))
        link_fail(store, REDIS_ERROR_RETRY, "Redis asks for more parts of a sync without end");
    else if (sync->at < sync->n || part.more > 0)
        sync_send(store);
    else
        sync_finish(store);
}

static void sync_send(struct store_redis *store) {
    _cleanup_command_ struct redis_command command = {0};
    struct sync *sync = &store->sync;
    bool is_last = sync->n - sync->at <= SYNC_PART;

    call_begin(store, &command, REDIS_SCRIPT_SYNC);
    command_add_u64(&command, clock_latest(store, clock_boottime()));
    command_add(&command, !sync->is_begun ? "1" : "0");
    command_add(&command, is_last ? "1" : "0");
    for (size_t i = 0; i < SYNC_PART && sync->at < sync->n; i++) {
        const struct claim_entry *entry = sync->entries[sync->at++];

        if (is_part_of_sync(entry))
            add_claim(&command, entry);
    }
    sync->is_begun = true;
    if (call_send(store, &command, sync_on_reply, store) == -ENOMEM)
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
}
