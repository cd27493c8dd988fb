/* SPDX-License-Identifier: MIT */

/* How a virtual host opens a session and syncs: a second implementation of store/redis/{hello,sync}.c. */

#include <string.h>

#include "tests/model/model-internal.h"

void vhello_send(struct world *w, struct host *h) {
    struct redis_command words = {0};
    char name[16], machine[16], fresh[16];
    unsigned declared = 0;

    vhost_begin(h, &words);
    vhost_put_session(&words, h->replaced);
    (void) snprintf(name, sizeof(name), "n%u", h->config.name);
    (void) snprintf(machine, sizeof(machine), "h%u", h->index);
    command_add(&words, name);
    command_add(&words, machine);
    command_add(&words, "1");
    command_add_u64(&words, h->config.lease);
    command_add_u64(&words, h->clock.drawn);
    command_add_u64(&words, vheartbeat_latest(w, h));
    command_add(&words, *h->clock.epoch ? h->clock.epoch : "0");
    command_add_u64(&words,
                    h->heartbeat.own_sent + vhost_lasts(h, h->config.lease) > w->now ? h->heartbeat.own : 0);
    command_add_u64(&words, vheartbeat_expired_count(w, h));
    command_add_u64(&words, h->clock.lost);
    (void) snprintf(fresh, sizeof(fresh), "e%u", ++w->epochs.n_proposed);
    command_add(&words, fresh);
    for (unsigned p = 0; p < w->setup.n_pools; p++)
        declared += h->config.limits[p] > 0 || h->config.host_scoped[p];
    command_add_u64(&words, declared);
    for (unsigned p = 0; p < w->setup.n_pools; p++) {
        if (h->config.limits[p] == 0 && !h->config.host_scoped[p])
            continue;
        command_add(&words, model_pool(w, p));
        if (h->config.host_scoped[p])
            command_add(&words, "host");
        else
            command_add_u64(&words, h->config.limits[p]);
    }
    for (unsigned p = 0; p < w->setup.n_pools; p++) {
        if (h->overrides.of_pool[p].version == 0)
            continue;
        command_add(&words, model_pool(w, p));
        for (size_t k = 0; k < 6; k++)
            command_add(&words, h->overrides.of_pool[p].words[k]);
    }
    h->config.declare_again = false;
    h->hello_sent = w->now;
    world_send(w, h, REDIS_SCRIPT_HELLO, &words, h->phase, NULL);
}

/* --- hello --- */

static void sync_send(struct world *w, struct host *h);

/* Another host of this name lives, or a host with another lease. This host sends hello again later, and
 * meanwhile checks whether the other host is dead. */
static void handle_refusal(struct world *w, struct host *h, const redisReply *reply) {
    usec_t theirs = reply_number(reply_at(reply, 4));

    vheartbeat_observe_epoch(w, h, reply_word(reply_at(reply, 1)));
    h->config.expiry =
        theirs > h->config.lease && !(w->mutation && w->mutation->own_expiry) ? theirs : h->config.lease;
    vheartbeat_observe_latest(w, h, reply_number(reply_at(reply, 5)), h->hello_sent);
    vheartbeat_add_sample(w, h, reply_number(reply_at(reply, 3)), h->hello_sent);
    h->retry = w->now + vhost_lasts(h, w->setup.heartbeat);
}

void vhello_on_answer(struct world *w, struct host *h, const redisReply *reply) {
    bool known = reply_number(reply_at(reply, 5)) == 1, grace = reply_number(reply_at(reply, 3)) == 1;

    if (strcmp(reply_word(reply_at(reply, 0)), "ok") != 0) {
        handle_refusal(w, h, reply);
        return;
    }
    h->config.expiry = h->config.lease;
    vheartbeat_observe_epoch(w, h, reply_word(reply_at(reply, 1)));
    vheartbeat_observe_latest(w, h, reply_number(reply_at(reply, 6)), h->hello_sent);
    vheartbeat_add_sample(w, h, reply_number(reply_at(reply, 4)), h->hello_sent);
    h->heartbeat.own = h->heartbeat.last_count;
    h->heartbeat.own_sent = h->heartbeat.last_sent;
    vheartbeat_apply_overrides(w, h, reply_at(reply, 7));
    if (h->file.in_use && !known && !grace) {
        vhost_session_lost(w, h);
        return;
    }
    h->file.in_use = false;
    h->replaced = 0;
    h->clock.grace = grace;
    h->phase = HOST_SYNC;
    vclaim_collect(w, h);
    sync_send(w, h);
}

void vhello_on_declared(struct world *w, struct host *h, const redisReply *reply) {
    if (strcmp(reply_word(reply_at(reply, 1)), h->clock.epoch) != 0)
        vhost_resync(w, h);
    else if (strcmp(reply_word(reply_at(reply, 0)), "ok") == 0)
        vheartbeat_apply_overrides(w, h, reply_at(reply, 7));
}

/* --- sync --- */

static void sync_send(struct world *w, struct host *h) {
    struct redis_command words = {0};
    bool last = h->sync.n - h->sync.at <= w->setup.sync_part;

    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    command_add_u64(&words, vheartbeat_latest(w, h));
    command_add(&words, !h->sync.begun ? "1" : "0");
    command_add(&words, last ? "1" : "0");
    for (size_t i = 0; i < w->setup.sync_part && h->sync.at < h->sync.n; i++) {
        const struct run *r = &w->runs[h->sync.runs[h->sync.at++]];

        if (vclaim_is_notified(r))
            vclaim_put(w, &words, r);
    }
    h->sync.begun = true;
    world_send(w, h, REDIS_SCRIPT_SYNC, &words, HOST_SYNC, NULL);
}

void vhello_on_sync(struct world *w, struct host *h, const redisReply *reply) {
    const redisReply *claims = reply_at(reply, 6);

    for (size_t i = 0; reply_at(claims, i); i++)
        vclaim_apply_item(w, h, reply_at(claims, i));
    vheartbeat_observe_drawn(w, h, reply_number(reply_at(reply, 5)));
    if (!h->sync.heard) {
        h->sync.heard = true;
        h->sync.chain = reply_number(reply_at(reply, 4));
    }
    if (h->sync.at < h->sync.n || reply_number(reply_at(reply, 2)) > 0) {
        sync_send(w, h);
        return;
    }
    vclaim_apply_number(h, h->pushes.chain, h->sync.chain);
    h->phase = HOST_LIVE;
    if (h->live_since == 0)
        h->live_since = w->now;
    world_foreach_run(w, r) if (r->host == h->index && r->state == RUN_RELEASING && !r->named) r->state = RUN_DONE;
    h->heartbeat.next = w->now + vhost_lasts(h, w->setup.heartbeat);
    h->heartbeat.is_slow = false;
    if (w->turns.is_on)
        vturn_on_live(w, h);
    vheartbeat_send(w, h);
    if (h->config.declare_again)
        vhello_send(w, h);
}
