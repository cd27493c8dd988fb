/* SPDX-License-Identifier: MIT */
#include "store/memory/delivery.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/memory/pool-snapshot.h"

#define DELIVERIES_MAX 128 /* in one turn of the loop (R15) */

void delivery_notify(struct delivery *d, struct pool_claim *entry) {
    if (!list_is_linked(&entry->changed))
        list_append(&d->outbox, &entry->changed);
    defer_set(&d->turn);
}

void delivery_collect(struct delivery *d) {
    list_foreach_safe(entry, &d->pools->changed, struct pool_claim, changed) {
        list_unlink(&entry->changed);
        delivery_notify(d, entry);
    }
}

void delivery_end_claim(struct pool_claim *entry) {
    entry->claim->store_data = NULL;
    entry->claim->state = CLAIM_STATE_NONE;
    pool_claim_free(entry);
}

void delivery_publish(struct pool_claim *entry, enum claim_state state) {
    struct claim *claim = entry->claim;

    claim->state = state;
    claim->ticket = entry->ticket;
    claim->token = entry->token;
    claim->position = entry->position;
    claim->since_realtime = entry->queued_realtime;
}

static void deliver_state(struct delivery *d, struct pool_claim *entry) {
    struct store_listener *l = &d->store->listener;

    switch (entry->state) {
    case POOL_CLAIM_STATE_NONE:
        return; /* revoked while it waited, and the owner was notified */
    case POOL_CLAIM_STATE_WAITING:
    case POOL_CLAIM_STATE_PARKED:
        delivery_publish(entry,
                         entry->state == POOL_CLAIM_STATE_PARKED ? CLAIM_STATE_PARKED : CLAIM_STATE_WAITING);
        l->on_waiting(entry->claim, l->userdata);
        return;
    case POOL_CLAIM_STATE_HELD:
        delivery_publish(entry, CLAIM_STATE_HELD);
        l->on_granted(entry->claim, l->userdata);
        return;
    }
}

static void deliver_refusal(struct delivery *d, struct pool_claim *entry) {
    struct store_listener *l = &d->store->listener;
    enum store_refusal refusal =
        entry->refusal == POOL_E_BUSY ? STORE_REFUSAL_BUSY : STORE_REFUSAL_QUEUE_FULL;
    struct claim *claim = entry->claim;
    const char *pool = claim->demands[entry->refused_demand].pool;

    delivery_end_claim(entry);
    l->on_refused(claim, refusal, pool, l->userdata);
}

static void deliver_claim(struct delivery *d, struct pool_claim *entry) {
    struct store_listener *l = &d->store->listener;
    struct claim *claim = entry->claim;

    list_unlink(&entry->changed);
    switch (entry->notice) {
    case POOL_NOTICE_STATE:
    case POOL_NOTICE_REVOKE_SENT:
        deliver_state(d, entry);
        return;
    case POOL_NOTICE_REVOKED:
        entry->notice = POOL_NOTICE_REVOKE_SENT;
        l->on_lost(claim, STORE_LOSS_REVOKED, l->userdata);
        return;
    case POOL_NOTICE_REFUSED:
        deliver_refusal(d, entry);
        return;
    case POOL_NOTICE_RELEASED:
        delivery_end_claim(entry);
        l->on_released(claim, l->userdata);
        return;
    }
}

/* Only the handler of store_stop(), whose reply is embedded, may free the store. */
static void deliver_reply(struct delivery *d, struct delivery_reply *reply) {
    struct delivery_reply copy = *reply;
    struct snapshot *snapshot = NULL;

    list_unlink(&reply->link);
    if (reply != &d->stop_reply)
        free(reply);
    if (copy.fn) {
        copy.fn(copy.result, copy.userdata);
        return;
    }
    if (copy.result == 0)
        copy.result = pools_snapshot(d->pools, d->host, clock_boottime(), clock_realtime(), &snapshot);
    copy.inspect_fn(copy.result, snapshot, copy.userdata);
}

void delivery_claims(struct delivery *d) {
    struct pool_claim *entry;

    for (int i = 0; i < DELIVERIES_MAX && (entry = list_first(&d->outbox, struct pool_claim, changed)); i++)
        deliver_claim(d, entry);
}

static void delivery_on_turn(void *userdata) {
    struct delivery *d = userdata;
    struct delivery_reply *reply;

    if (d->state_due) {
        d->state_due = false;
        d->store->listener.on_state(d->store, d->store->state, d->store->listener.userdata);
    }
    delivery_claims(d);
    /* A handler may free the store when its last reply, that of store_stop(), is delivered. */
    for (int i = 0; i < DELIVERIES_MAX && (reply = list_first(&d->replies, struct delivery_reply, link));
         i++) {
        bool is_last = reply == &d->stop_reply;

        deliver_reply(d, reply);
        if (is_last)
            return;
    }
    if (!list_is_empty(&d->outbox) || !list_is_empty(&d->replies))
        defer_set(&d->turn);
}

struct delivery_reply *delivery_add_reply(struct delivery *d, store_reply_fn fn, store_inspect_fn inspect_fn,
                                          void *userdata) {
    struct delivery_reply *reply = calloc(1, sizeof(*reply));

    if (!reply)
        return NULL;
    reply->fn = fn;
    reply->inspect_fn = inspect_fn;
    reply->userdata = userdata;
    list_append(&d->replies, &reply->link);
    defer_set(&d->turn);
    return reply;
}

void delivery_set_state(struct delivery *d, enum store_state state) {
    d->store->state = state;
    d->state_due = true;
    defer_set(&d->turn);
}

void delivery_stop(struct delivery *d, store_reply_fn done, void *userdata) {
    d->state_due = false;
    d->store->state = STORE_STATE_AWAY;
    if (list_is_linked(&d->stop_reply.link))
        return;
    d->stop_reply.fn = done;
    d->stop_reply.userdata = userdata;
    list_append(&d->replies, &d->stop_reply.link);
    defer_set(&d->turn);
}

int delivery_init(struct delivery *d, sd_event *event, struct store *store, struct pools *pools,
                  const char *host) {
    d->store = store;
    d->pools = pools;
    snprintf(d->host, sizeof(d->host), "%s", host);
    list_init(&d->outbox);
    list_init(&d->replies);
    list_init(&d->stop_reply.link);
    return defer_init(&d->turn, event, SD_EVENT_PRIORITY_NORMAL, delivery_on_turn, d);
}

void delivery_done(struct delivery *d) {
    struct delivery_reply *reply;

    while ((reply = list_first(&d->replies, struct delivery_reply, link))) {
        reply->result = -ENOTCONN;
        deliver_reply(d, reply);
    }
    defer_done(&d->turn);
}
