/* SPDX-License-Identifier: MIT */

/* What a virtual host remembers of Redis, and its heartbeats: a second implementation of store/redis/{heartbeat,verify}.c. */

#include <string.h>

#include "tests/model/model-internal.h"

/* --- what is remembered --- */

/* Returns a number aged by this host's clock and 1 % more; in the mutation, not aged. */
static uint64_t aged(const struct world *w, const struct host *h, uint64_t number, usec_t since) {
    usec_t age = vhost_measures(h, w->now - since);

    return number > 0 && !(w->mutation && w->mutation->no_ageing) ? number + age + age / 100 : number;
}

uint64_t vheartbeat_latest(const struct world *w, const struct host *h) {
    return aged(w, h, h->clock.latest, h->clock.since);
}

static void remember(struct world *w, struct host *h, uint64_t number, usec_t since) {
    h->clock.latest = number;
    h->clock.since = since;
    h->clock.heard = w->now;
}

/* The number was drawn after the host sent the last answered heartbeat. The mutation takes the present
 * instead. */
void vheartbeat_observe_drawn(struct world *w, struct host *h, uint64_t number) {
    usec_t since = h->heartbeat.last_count > 0 && !(w->mutation && w->mutation->age_from_hearing)
                       ? h->heartbeat.last_sent
                       : w->now;

    if (number > h->clock.drawn)
        h->clock.drawn = number;
    if (aged(w, h, number, since) > vheartbeat_latest(w, h))
        remember(w, h, number, since);
}

void vheartbeat_observe_latest(struct world *w, struct host *h, uint64_t number, usec_t sent) {
    if (w->mutation && w->mutation->age_from_hearing)
        sent = w->now;
    if (h->clock.heard <= sent || aged(w, h, number, sent) > vheartbeat_latest(w, h))
        remember(w, h, number, sent);
}

void vheartbeat_observe_epoch(struct world *w, struct host *h, const char *epoch) {
    if (strcmp(h->clock.epoch, epoch) == 0)
        return;
    (void) snprintf(h->clock.epoch, sizeof(h->clock.epoch), "%s", epoch);
    h->clock.epoch_known = w->now;
    h->heartbeat.n_marks = 0;
    h->heartbeat.last_count = h->heartbeat.own = h->clock.given = 0;
    h->clock.lost = 0;
    h->clock.grace = false;
    h->heartbeat.ends_grace = false;
}

void vheartbeat_add_sample(struct world *w, struct host *h, uint64_t count, usec_t sent) {
    h->heartbeat.last_count = count;
    h->heartbeat.last_sent = sent;
    if (h->heartbeat.n_marks > 0 &&
        w->now < h->heartbeat.marks[h->heartbeat.n_marks - 1].received + h->config.expiry / (MARKS_KEPT / 2))
        return;
    if (h->heartbeat.n_marks == MARKS_KEPT) {
        memmove(&h->heartbeat.marks[0], &h->heartbeat.marks[1],
                (MARKS_KEPT - 1) * sizeof(h->heartbeat.marks[0]));
        h->heartbeat.n_marks--;
    }
    h->heartbeat.marks[h->heartbeat.n_marks++] = (struct mark){.count = count, .received = w->now};
}

uint64_t vheartbeat_expired_count(const struct world *w, const struct host *h) {
    usec_t lease = w->mutation && w->mutation->early_expiry ? h->config.expiry * 3 / 4 : h->config.expiry;
    uint64_t count = 0;

    if (h->heartbeat.last_sent + vhost_lasts(h, lease) <= w->now)
        return 0;
    for (size_t i = 0;
         i < h->heartbeat.n_marks && h->heartbeat.marks[i].received + vhost_lasts(h, lease) <= w->now; i++)
        count = h->heartbeat.marks[i].count > count ? h->heartbeat.marks[i].count : count;
    return count;
}

void vheartbeat_apply_overrides(const struct world *w, struct host *h, const redisReply *list) {
    const redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        unsigned pool = model_find_pool(w, reply_word(reply_at(item, 0)));
        uint64_t version = reply_number(reply_at(item, 1));

        if (pool >= POOLS_MAX)
            continue;
        if (version > h->overrides.version)
            h->overrides.version = version;
        if (version <= h->overrides.of_pool[pool].version)
            continue;
        h->overrides.of_pool[pool].version = version;
        for (size_t k = 0; k < 6; k++)
            (void) snprintf(h->overrides.of_pool[pool].words[k], sizeof(h->overrides.of_pool[pool].words[k]),
                            "%.63s", reply_word(reply_at(item, 1 + k)));
    }
}

/* --- heartbeats --- */

static bool is_idle(const struct world *w, const struct host *h) {
    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
        if (r->host == h->index && r->state != RUN_NONE && r->state != RUN_DONE)
            return false;
    return h->heartbeat.answered && !h->clock.grace && !w->turns.is_on;
}

/* Hosts pause for 0.9 to 1.1 thirds of the lease. The longest pause is the hardest case. */
static usec_t idle_pause(const struct world *w, const struct host *h) {
    usec_t pause = h->config.lease / 3 + h->config.lease / 30;

    return w->mutation && w->mutation->idle_skips ? 3 * pause : pause;
}

void vheartbeat_plan(struct world *w, struct host *h) {
    h->heartbeat.is_slow = is_idle(w, h);
    h->heartbeat.next = w->now + vhost_lasts(h, h->heartbeat.is_slow ? idle_pause(w, h) : w->setup.heartbeat);
}

/* A claim ends the pause of an idle host. */
usec_t vheartbeat_due(const struct world *w, const struct host *h) {
    usec_t due = h->heartbeat.sent + vhost_lasts(h, w->setup.heartbeat);

    if (!h->heartbeat.is_slow || is_idle(w, h) || h->heartbeat.next < due)
        return h->heartbeat.next;
    return due > w->now ? due : w->now;
}

void vheartbeat_send(struct world *w, struct host *h) {
    struct redis_command words = {0};

    if (h->phase != HOST_LIVE)
        return;
    if (h->heartbeat.under_way) {
        h->heartbeat.again = true;
        return;
    }
    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    command_add_u64(&words, vheartbeat_expired_count(w, h));
    command_add_u64(&words, h->heartbeat.own);
    command_add_u64(&words, h->overrides.version);
    command_add_u64(&words, h->clock.given);
    if (h->clock.grace || h->heartbeat.n++ % 16 == 0) {
        command_add_u64(&words, h->heartbeat.ends_grace ? 1000 * w->setup.lease
                                                        : vhost_measures(h, w->now - h->clock.epoch_known));
        command_add_u64(&words, h->clock.grace ? vheartbeat_latest(w, h) : 0);
    }
    h->heartbeat.ends_grace = false;
    h->heartbeat.drawn = h->clock.drawn;
    h->heartbeat.sent = w->now;
    h->heartbeat.again = false;
    h->pushes.early_sent = h->pushes.n_early > 0;
    h->heartbeat.under_way = true;
    world_send(w, h, REDIS_SCRIPT_HEARTBEAT, &words, HOST_LIVE, NULL);
}

static void send_verify(struct world *w, struct host *h) {
    struct redis_command words = {0};

    if (w->now < h->heartbeat.looked + h->config.lease)
        return;
    h->heartbeat.looked = w->now;
    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    vclaim_put_named(w, h, &words);
    world_send(w, h, REDIS_SCRIPT_VERIFY, &words, HOST_LIVE, NULL);
}

void vheartbeat_on_reply(struct world *w, struct host *h, const redisReply *reply) {
    uint64_t last = reply_number(reply_at(reply, 5)), more = reply_number(reply_at(reply, 2));
    usec_t from = w->mutation && w->mutation->deadline_from_answer ? w->now : h->heartbeat.sent, deadline;
    bool missed;

    h->heartbeat.under_way = false;
    vheartbeat_apply_overrides(w, h, reply_at(reply, 9));
    if (h->deadline > 0 && w->now >= h->deadline) {
        vhost_session_lost(w, h);
        return;
    }
    if (reply_number(reply_at(reply, 4)) <= h->heartbeat.own ||
        reply_number(reply_at(reply, 7)) < h->heartbeat.drawn) {
        h->clock.lost = 1;
        vhost_resync(w, h);
        return;
    }
    vheartbeat_observe_drawn(w, h, reply_number(reply_at(reply, 7)));
    if (reply_at(reply, 9)) /* else it is the short answer */
        vheartbeat_observe_latest(w, h, reply_number(reply_at(reply, 8)), h->heartbeat.sent);
    vheartbeat_add_sample(w, h, reply_number(reply_at(reply, 4)), h->heartbeat.sent);
    h->heartbeat.own = h->heartbeat.last_count;
    h->heartbeat.own_sent = h->heartbeat.last_sent;
    h->file.latest = h->clock.latest;
    h->file.since = h->clock.since;
    missed = (h->pushes.early_sent && h->pushes.n_early > 0) ||
             (h->pushes.doubt > 0 && h->pushes.chain < h->pushes.doubt) ||
             reply_number(reply_at(reply, 6)) != vclaim_count(w, h);
    if (w->mutation && w->mutation->no_chain)
        missed = reply_number(reply_at(reply, 6)) != vclaim_count(w, h);
    h->pushes.doubt = last > h->pushes.chain ? last : 0;
    deadline = from + vhost_lasts(h, h->config.lease - vhost_margin(h));
    if (deadline > h->deadline) {
        h->deadline = deadline;
        vclaim_extend(w, h);
    }
    h->clock.grace = reply_number(reply_at(reply, 3)) == 1;
    if (!h->heartbeat.answered) {
        h->heartbeat.answered = true;
        vclaim_flush(w, h);
    }
    vclaim_start_notified(w, h);
    if (h->phase == HOST_LIVE && missed)
        vhost_resync(w, h);
    else if (h->phase == HOST_LIVE && (more > 0 || h->heartbeat.again))
        vheartbeat_send(w, h);
    else if (h->phase == HOST_LIVE)
        send_verify(w, h);
}
