/* SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <stdio.h>

#include "store/redis/store-redis.h"

/* --- replies and pushes --- */

/* Returns whether the deadline leaves enough time. Other grants are delivered after the next heartbeat. */
static bool leaves_time(const struct store_redis *store, const struct claim *claim) {
    return store->base.deadline > 0 && usec_add(clock_boottime(), claim->needs_usec) < store->base.deadline;
}

static void deliver_grant(struct claim_entry *entry) {
    struct store_redis *store = entry->store;

    if (entry->notified)
        return;
    if (entry->awaits_turn || !leaves_time(store, entry->claim)) {
        store->claims.undelivered_grants = true;
        return;
    }
    entry->notified = true;
    store->base.listener.on_granted(entry->claim, store->base.listener.userdata);
}

static bool is_undelivered(const struct claim_entry *entry) {
    return entry->claim->state == CLAIM_STATE_HELD && !entry->notified && !entry->lease_lost &&
           !claim_entry_is_finished(entry);
}

void claims_deliver_grants(struct store_redis *store) {
    if (!store->claims.undelivered_grants)
        return;
    store->claims.undelivered_grants = false;
    list_foreach_safe(entry, &store->table.entries, struct claim_entry, link)
        if (is_undelivered(entry))
            deliver_grant(entry);
}

void claims_handle_held(struct claim_entry *entry, uint64_t ticket, uint64_t token, usec_t queued,
                        usec_t lead) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;
    bool needs_token = entry->needs_token;

    if (claim->state == CLAIM_STATE_RELEASING || entry->lease_lost)
        return;
    if (claim->since_realtime == 0)
        claim->since_realtime = queued;
    claim->token = token;
    claim->lead_usec = lead;
    if (ticket > 0)
        claim->ticket = ticket;
    entry->needs_token = false;
    if (claim->state == CLAIM_STATE_HELD) {
        if (needs_token)
            listener->on_granted(claim, listener->userdata);
        return;
    }
    claim->state = CLAIM_STATE_HELD;
    claim->position = 0;
    deliver_grant(entry);
    if (!entry->notified && !entry->store->heartbeat.is_under_way) /* at most one heartbeat for all such grants */
        heartbeat_send(entry->store);
}

void claims_handle_waiting(struct claim_entry *entry, bool parked, uint64_t ticket, uint32_t position,
                           usec_t since) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;
    enum claim_state state = parked ? CLAIM_STATE_PARKED : CLAIM_STATE_WAITING;

    if (entry->awaits_turn || (claim->state != CLAIM_STATE_ASKED && claim->state != CLAIM_STATE_WAITING &&
                               claim->state != CLAIM_STATE_PARKED))
        return; /* granted by a push meanwhile, or being released */
    if (position > 0)
        claim->position = position;
    if (since > 0)
        claim->since_realtime = since;
    if (claim->state == state && claim->ticket == ticket)
        return; /* nothing new */
    claim->state = state;
    claim->ticket = ticket;
    listener->on_waiting(claim, listener->userdata);
}

void claims_handle_revoked(struct claim_entry *entry, uint64_t number) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;

    if (number > 0)
        claim->released = claim->state != CLAIM_STATE_HELD ? number : 0;
    if (entry->revoke_notified || entry->lease_lost || claim->state == CLAIM_STATE_RELEASING)
        return;
    entry->revoke_notified = true;
    listener->on_lost(claim, STORE_LOSS_REVOKED, listener->userdata);
}

const char *claims_format_head(const struct claim *claim, char buffer[static CLAIM_HEAD_SIZE]) {
    int n = snprintf(buffer, CLAIM_HEAD_SIZE, "%" PRIu64, claim->head_start_usec);

    if (claim->moved > 0)
        (void) snprintf(buffer + n, CLAIM_HEAD_SIZE - (size_t) n, "+%" PRIu64 "@%" PRIu64, claim->given_usec, claim->moved);
    return buffer;
}

void claims_handle_moved(struct claim_entry *entry, usec_t given, uint64_t number) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;

    if (number <= claim->moved || claim_entry_is_finished(entry))
        return;
    claim->given_usec = given;
    claim->moved = number;
    listener->on_moved(claim, listener->userdata);
}

void claims_handle_refused(struct claim_entry *entry, enum store_refusal refusal, const char *pool) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;

    if (claim->state != CLAIM_STATE_ASKED)
        return; /* withdrawn: the reply to its release ends it */
    claim_table_remove(entry);
    claim->state = CLAIM_STATE_NONE;
    listener->on_refused(claim, refusal, pool, listener->userdata);
}

/* The token may be that of a grant that was withdrawn before this host received it. */
int claims_handle_released(struct claim_entry *entry, const struct release_reply *reply) {
    struct claim *claim = entry->claim;

    if (reply->token > 0 && claim->token > 0 && reply->token != claim->token)
        return -EBADMSG;
    if (reply->was_there)
        claim->released = reply->clock;
    if (reply->token > 0)
        claim->token = reply->token;
    claim_table_finish(entry);
    return 0;
}

void claims_handle_full(struct claim_entry *entry) {
    struct store_redis *store = entry->store;

    full_begin(store); /* also if the claim is withdrawn: others may wait behind it */
    if (entry->claim->state != CLAIM_STATE_ASKED)
        return; /* the reply to its release ends it */
    entry->sent = false;
    if (entry->claim->nowait)
        claim_table_refuse(entry);
    else
        full_log_waiting(store);
}

void claims_handle_unknown(struct claim_entry *entry) {
    entry->sent = false; /* requested again once the link is live */
    if (entry->claim->state == CLAIM_STATE_RELEASING)
        claim_table_finish(entry);
}

/* --- requests --- */

void claims_begin_call(struct claim_entry *entry) {
    entry->calls++;
}

void claims_end_call(struct claim_entry *entry) {
    entry->calls--;
}

void claims_mark_sent(struct claim_entry *entry) {
    entry->sent = true;
}

void claims_refuse_nowait(struct store_redis *store) {
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        if (entry->claim->nowait && entry->claim->state == CLAIM_STATE_ASKED)
            claim_table_refuse(entry);
}

int claims_request(struct store *base, struct claim *claim) {
    struct store_redis *store = store_redis_of(base);
    struct claim_entry *entry = claim_table_add(store, claim, CLAIM_STATE_ASKED);

    if (!entry)
        return -ENOMEM;
    claim->token = 0;
    entry->awaits_turn = claim->turn;
    if (base->is_full && claim->nowait)
        claim_table_refuse(entry);
    else if (base->is_full)
        return 0; /* behind those that wait for memory */
    else if (heartbeat_is_ready(store))
        batch_add_claim(entry);
    else if (claim->nowait && base->state == STORE_STATE_AWAY)
        claim_table_refuse(entry);
    return 0;
}

int claims_adopt(struct store *base, struct claim *claim) {
    struct store_redis *store = store_redis_of(base);
    struct claim_entry *entry =
        claim_table_add(store, claim, claim->token > 0 ? CLAIM_STATE_HELD : CLAIM_STATE_ASKED);

    if (!entry)
        return -ENOMEM;
    clock_observe_drawn(store, claim->moved);
    clock_observe_drawn(store, claim->token); /* the run may end before Redis is back, which may have lost it (R7) */
    entry->sent = true;
    entry->notified = claim->token > 0;
    return 0;
}

static void send_end(struct claim_entry *entry) {
    if (entry->claim->turn)
        turns_send_end(entry);
    else
        batch_add_release(entry);
}

void claims_release(struct store *base, struct claim *claim) {
    struct store_redis *store = store_redis_of(base);
    struct claim_entry *entry = claim->store_data;

    if (!entry || claim->state == CLAIM_STATE_RELEASING)
        return;
    claim->state = CLAIM_STATE_RELEASING;
    if (claim_entry_is_finished(entry))
        return;
    if (entry->lease_lost || (!entry->sent && entry->calls == 0)) {
        claim_table_finish(entry);
        session_check_stops(store);
    } else if (heartbeat_is_ready(store)) {
        send_end(entry);
    }
}

static bool is_unsent(const struct claim_entry *entry) {
    return entry->claim->state == CLAIM_STATE_ASKED && (!entry->sent || entry->awaits_turn) && entry->calls == 0 &&
           !claim_entry_is_finished(entry);
}

void claims_send_pending(struct store_redis *store) {
    list_foreach_safe(entry, &store->table.entries, struct claim_entry, link) {
        if (is_unsent(entry))
            batch_add_claim(entry);
        else if (entry->claim->state == CLAIM_STATE_RELEASING && entry->calls == 0 &&
                 !claim_entry_is_finished(entry))
            send_end(entry);
        else
            turns_send_commit(entry);
    }
}

bool claims_retry_first(struct store_redis *store) {
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        if (is_unsent(entry)) {
            batch_add_claim(entry);
            return true;
        }
    return false;
}

/* --- sync and lost sessions --- */

/* Nothing was started: the claim waits at its old place. If no reply has named its turn, the host requests it again. */
static void forget_grant(struct claim_entry *entry) {
    struct claim *claim = entry->claim;

    claim->state = entry->awaits_turn ? CLAIM_STATE_ASKED : CLAIM_STATE_WAITING;
    claim->ticket = entry->awaits_turn ? 0 : claim->ticket;
    claim->token = 0;
}

/* Treats a grant of which no owner was notified as waiting: its permits may be another claim's since. */
static void requeue_undelivered(struct claim_entry *entry) {
    if (entry->claim->nowait) {
        claim_table_refuse(entry);
        return;
    }
    forget_grant(entry);
}

void claims_prepare_sync(struct store_redis *store) {
    list_foreach_safe(entry, &store->table.entries, struct claim_entry, link) {
        claim_table_confirm(entry, false);
        if (is_undelivered(entry))
            requeue_undelivered(entry);
    }
}

void claims_finish_released(struct store_redis *store) {
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        if (entry->claim->state == CLAIM_STATE_RELEASING && !entry->confirmed &&
            !claim_entry_is_finished(entry))
            claim_table_finish(entry);
}

static void lose_held(struct claim_entry *entry) {
    const struct store_listener *listener = &entry->store->base.listener;
    struct claim *claim = entry->claim;

    if (!entry->notified) {
        forget_grant(entry);
    } else if (claim->keep) {
        entry->needs_token = true;
    } else {
        entry->lease_lost = true;
        listener->on_lost(claim, STORE_LOSS_SESSION, listener->userdata);
    }
}

void claims_lose(struct store_redis *store) {
    list_foreach_safe(entry, &store->table.entries, struct claim_entry, link) {
        claim_table_confirm(entry, false);
        if (claim_entry_is_finished(entry) || entry->lease_lost)
            continue;
        turns_lose(entry);
        switch (entry->claim->state) {
        case CLAIM_STATE_RELEASING:
            claim_table_finish(entry);
            break;
        case CLAIM_STATE_HELD:
            lose_held(entry);
            break;
        case CLAIM_STATE_ASKED:
            entry->sent = false;
            break;
        case CLAIM_STATE_WAITING:
        case CLAIM_STATE_PARKED:
        case CLAIM_STATE_NONE:
            break;
        }
    }
}

bool claims_any_held(const struct store_redis *store) {
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        if (entry->claim->state == CLAIM_STATE_HELD)
            return true;
    return false;
}

bool claims_any_leased(const struct store_redis *store) {
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        if (entry->claim->state == CLAIM_STATE_HELD && !entry->claim->keep)
            return true;
    return false;
}

bool claims_any_stopping(const struct store_redis *store) {
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        if (entry->lease_lost && !claim_entry_is_finished(entry))
            return true;
    return false;
}

void claims_reset(struct store_redis *store) {
    batch_reset(store);
    full_reset(store);
    verify_reset(store);
    turns_reset(store);
    list_foreach(entry, &store->table.entries, struct claim_entry, link)
        entry->calls = 0;
}
