/* SPDX-License-Identifier: MIT */

/* A virtual host's session and connections: a second implementation of store/redis/{link,session}.c. A host measures time at the rate of
 * its own clock. */

#include <string.h>

#include "tests/model/model-internal.h"

usec_t vhost_lasts(const struct host *h, usec_t duration) {
    return (usec_t) ((double) duration / h->rate);
}

usec_t vhost_margin(const struct host *h) {
    return h->config.lease / 100 > 500 * USEC_PER_MSEC ? h->config.lease / 100 : 500 * USEC_PER_MSEC;
}

usec_t vhost_measures(const struct host *h, usec_t duration) {
    return (usec_t) ((double) duration * h->rate);
}

void vhost_put_session(struct redis_command *words, unsigned session) {
    char text[16] = "";

    if (session > 0)
        (void) snprintf(text, sizeof(text), "s%u", session);
    command_add(words, text);
}

void vhost_begin(struct host *h, struct redis_command *words) {
    vhost_put_session(words, h->session);
    command_add_u64(words, h->connection);
}

/* --- connections --- */

static void forget_calls(struct world *w, struct host *h) {
    h->heartbeat.under_way = h->heartbeat.again = h->heartbeat.answered = h->pushes.early_sent = false;
    h->pushes.n_early = 0;
    h->pushes.doubt = 0;
    h->sync.n = h->sync.at = 0;
    h->health.since = h->health.idle_since = 0;
    vclaim_forget_calls(w, h);
}

static void save_file(struct host *h) {
    h->file.exists = true;
    h->file.session = h->session;
    h->file.connection = h->connection;
    h->file.latest = h->clock.latest;
    h->file.since = h->clock.since;
}

static void connect(struct world *w, struct host *h) {
    h->network.wire++;
    h->network.wire_dead = h->network.lose_call = h->network.lose_answer = false;
    h->network.last_call = h->network.last_answer = h->network.last_push = 0;
    h->retry = 0;
    h->connection++;
    save_file(h);
    h->phase = HOST_HELLO;
    vhello_send(w, h);
}

void vhost_down(struct world *w, struct host *h, usec_t retry_in) {
    if (!h->up)
        return;
    h->network.wire++;
    h->phase = HOST_DOWN;
    h->retry = w->now + retry_in;
    forget_calls(w, h);
}

void vhost_resync(struct world *w, struct host *h) {
    vbatch_flush(w, h); /* before the hello, on this connection */
    forget_calls(w, h);
    h->phase = HOST_HELLO;
    h->retry = 0;
    vhello_send(w, h);
}

void vhost_declare(struct world *w, struct host *h) {
    if (h->up && h->phase == HOST_LIVE)
        vhello_send(w, h);
    else
        h->config.declare_again = true;
}

static void new_session(struct world *w, struct host *h) {
    if (w->n_sessions + 1 >= SESSIONS_MAX) {
        model_fail(w, "too many sessions for the model");
        return;
    }
    h->session = ++w->n_sessions;
    h->connection = 0;
    h->pushes.chain = h->clock.given = h->heartbeat.last_count = h->heartbeat.own = 0;
    h->heartbeat.n_marks = 0;
    h->file.in_use = false;
}

void vhost_session_lost(struct world *w, struct host *h) {
    unsigned old = h->session;

    vhost_down(w, h, 1);
    new_session(w, h);
    h->replaced = old;
    h->deadline = 0;
    vclaim_lose(w, h);
}

void vhost_start(struct world *w, struct host *h) {
    h->up = true;
    h->live_since = 0;
    h->config.expiry = h->config.lease;
    h->phase = HOST_DOWN;
    h->heartbeat.n_marks = 0;
    h->clock.epoch[0] = '\0';
    h->heartbeat.last_count = h->heartbeat.own = h->clock.given = h->clock.max_started = h->clock.drawn = 0;
    h->clock.lost = 0;
    h->clock.latest = h->file.exists ? h->file.latest : 0;
    h->clock.since = h->file.exists ? h->file.since : w->now;
    h->clock.heard = w->now;
    h->deadline = 0;
    memset(h->overrides.of_pool, 0, sizeof(h->overrides.of_pool));
    h->overrides.version = 0;
    forget_calls(w, h);
    if (h->file.exists) {
        h->replaced = 0;
        h->session = h->file.session;
        h->connection = h->file.connection;
        h->pushes.chain = 0;
        h->file.in_use = true;
    } else {
        new_session(w, h);
    }
    world_foreach_run (w, r)
        if (r->host == h->index && r->process.alive) {
            h->clock.max_started = r->token > h->clock.max_started ? r->token : h->clock.max_started;
        }
    vheartbeat_observe_drawn(w, h, h->clock.max_started);
    h->heartbeat.next = USEC_INFINITY;
    h->start_at = 0;
    h->retry = w->now + 1;
}

/* Guards and their processes go on. Half of the waiting claims are forgotten. For the other half, `berth
 * run` goes on waiting and comes back. */
void vhost_crash(struct world *w, struct host *h) {
    h->network.wire++;
    h->up = false;
    h->open.n = 0;
    h->phase = HOST_DOWN;
    h->retry = 0;
    h->frozen_until = 0;
    vturn_crash(w, h);
    world_foreach_run(w, r) {
        if (r->host != h->index || r->state == RUN_NONE || r->state == RUN_DONE)
            continue;
        r->calls = 0;
        r->named = r->renew = false;
        if (r->process.alive) {
            r->state = RUN_HELD;
            r->sent = r->notified = true;
            continue;
        }
        r->token = 0;
        if (r->state == RUN_HELD && r->notified) { /* it ended just now, as its guard has reported */
            r->state = RUN_DONE;
        } else if (r->state != RUN_RELEASING && r->ticket > 0 && r->id % 2 == 0) {
            r->state = RUN_ASKED;
            r->sent = true;
            r->notified = r->lost = false;
        } else {
            r->state = RUN_DONE;
        }
    }
}

/* --- time --- */

usec_t vhost_next_timer(const struct world *w, const struct host *h) {
    usec_t next = USEC_INFINITY;

    if (!h->up)
        return next;
    if (h->retry > 0 && h->retry < next)
        next = h->retry;
    if (h->phase == HOST_LIVE && vheartbeat_due(w, h) < next)
        next = vheartbeat_due(w, h);
    if (h->deadline > 0 && h->deadline < next)
        next = h->deadline;
    if (w->turns.is_on && vturn_next_timer(w, h) < next)
        next = vturn_next_timer(w, h);
    return next != USEC_INFINITY && next < h->frozen_until ? h->frozen_until : next;
}

void vhost_on_timer(struct world *w, struct host *h) {
    if (h->deadline > 0 && w->now >= h->deadline) {
        vhost_session_lost(w, h);
    } else if (h->retry > 0 && w->now >= h->retry && h->phase == HOST_HELLO) { /* it was refused */
        h->retry = 0;
        vhello_send(w, h);
    } else if (h->retry > 0 && w->now >= h->retry) {
        connect(w, h);
    } else if (h->phase == HOST_LIVE && w->now >= vheartbeat_due(w, h)) {
        vheartbeat_plan(w, h);
        if (!h->heartbeat.under_way)
            vheartbeat_send(w, h);
    } else if (w->turns.is_on) {
        vturn_on_timer(w, h);
    }
}

/* --- answers --- */

/* Returns whether this is an answer to the call; if not, does what the answer asks for instead. */
static bool answer_is_good(struct world *w, struct host *h, const struct model_event *e, const redisReply *reply) {
    const char *word = reply_word(reply_at(reply, 0));
    bool here = h->phase == e->during;

    if (strcmp(word, "epoch") == 0) {
        if (here)
            vhost_resync(w, h);
        return false;
    }
    if (strcmp(word, "gone") == 0) {
        if (here && h->deadline > 0 && w->now >= h->deadline)
            vhost_session_lost(w, h);
        else if (here) {
            h->clock.lost = h->deadline > 0 ? 1 : h->clock.lost;
            vhost_resync(w, h);
        }
        return false;
    }
    if (strcmp(word, "stale") == 0 && e->script == REDIS_SCRIPT_HELLO && here && h->phase == HOST_HELLO) {
        h->connection = reply_number(reply_at(reply, 1)) + 1;
        save_file(h);
        vhello_send(w, h);
        return false;
    }
    if (strcmp(word, "stale") == 0) {
        if (here)
            vhost_down(w, h, w->setup.heartbeat / 8);
        return false;
    }
    return true;
}

void vhost_on_answer(struct world *w, const struct model_event *e) {
    struct host *h = &w->hosts[e->host];
    const redisReply *reply = reply_at(e->reply, 0);
    const char *error = reply_error(e->reply);

    if (e->batch.n > 0)
        vbatch_on_sent_reply(w, &e->batch);
    else if (h->phase != e->during)
        return;
    if (error && e->batch.turn == TURN_ASK && redis_error_class(error) == REDIS_ERROR_FULL) {
        vturn_on_reply(w, h, &e->batch, NULL);
        return;
    }
    if (error && e->batch.n > 0 && !e->batch.release && redis_error_class(error) == REDIS_ERROR_FULL) {
        vbatch_refuse(w, &e->batch);
        return;
    }
    if (error && h->phase == e->during)
        vhost_down(w, h, w->setup.heartbeat / 8);
    if (error || !answer_is_good(w, h, e, reply))
        return;
    if (e->script == REDIS_SCRIPT_HELLO && e->during == HOST_HELLO)
        vhello_on_answer(w, h, reply);
    else if (e->script == REDIS_SCRIPT_HELLO)
        vhello_on_declared(w, h, reply);
    else if (e->script == REDIS_SCRIPT_SYNC)
        vhello_on_sync(w, h, reply);
    else if (e->script == REDIS_SCRIPT_HEARTBEAT)
        vheartbeat_on_reply(w, h, reply);
    else if (e->batch.turn != TURN_NONE)
        vturn_on_reply(w, h, &e->batch, reply);
    else if (e->batch.n > 0)
        vbatch_on_reply(w, h, &e->batch, reply);
    else if (e->script == REDIS_SCRIPT_VERIFY && reply_number(reply_at(reply, 3)) > 0)
        vhost_resync(w, h); /* Redis lost it, and came back as another one */
    else if (reply_number(reply_at(reply, 2)) > 0)
        vheartbeat_send(w, h);
}
