/* SPDX-License-Identifier: MIT */

/* A virtual host's session with Redis: what daemon/store-redis-{link,session,sync,beat}.c do, written anew. Where a host measures
 * time it does so by its own clock's rate. */

#include <string.h>

#include "tests/harness/model-internal.h"

static const char *text_of_session(unsigned s, char buffer[static 16]) {
    buffer[0] = '\0';
    if (s > 0)
        (void) snprintf(buffer, 16, "s%u", s);
    return buffer;
}

usec_t vhost_lasts(const struct host *h, usec_t duration) {
    return (usec_t) ((double) duration / h->rate);
}

static usec_t vhost_measures(const struct host *h, usec_t duration) {
    return (usec_t) ((double) duration * h->rate);
}

void vhost_begin(struct host *h, struct words *words) {
    char session[16];

    words_add(words, text_of_session(h->session, session));
    words_add_u64(words, h->connection);
}

/* --- what is remembered --- */

void vhost_hear_clock(struct world *w, struct host *h, uint64_t number) {
    if (number <= h->clock)
        return;
    h->clock = number;
    h->clock_heard = w->now;
}

uint64_t vhost_aged_clock(const struct world *w, const struct host *h) {
    usec_t age = vhost_measures(h, w->now - h->clock_heard);

    if (w->mutation && w->mutation->no_ageing)
        return h->clock;
    return h->clock > 0 ? h->clock + age + age / 100 : 0;
}

static void hear_epoch(struct world *w, struct host *h, const char *epoch) {
    if (strcmp(h->epoch, epoch) == 0)
        return;
    (void) snprintf(h->epoch, sizeof(h->epoch), "%s", epoch);
    h->epoch_known = w->now;
    h->n_marks = 0;
    h->grace = false;
}

static void add_mark(struct world *w, struct host *h, uint64_t count) {
    if (h->n_marks > 0 && w->now < h->marks[h->n_marks - 1].received + w->lease / (MARKS_KEPT / 2))
        return;
    if (h->n_marks == MARKS_KEPT) {
        memmove(&h->marks[0], &h->marks[1], (MARKS_KEPT - 1) * sizeof(h->marks[0]));
        h->n_marks--;
    }
    h->marks[h->n_marks++] = (struct mark) {.count = count, .received = w->now};
}

static uint64_t dead_count(const struct world *w, const struct host *h) {
    usec_t lease = w->mutation && w->mutation->early_burial ? w->lease * 3 / 4 : w->lease;
    uint64_t count = 0;

    for (size_t i = 0; i < h->n_marks && h->marks[i].received + vhost_lasts(h, lease) <= w->now; i++)
        count = h->marks[i].count > count ? h->marks[i].count : count;
    return count;
}

static void hear_overrides(struct host *h, const redisReply *list) {
    const redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        unsigned pool = (unsigned) (*reply_word(reply_at(item, 0)) - 'a');
        uint64_t version = reply_number(reply_at(item, 1));

        if (pool >= POOLS_MAX)
            continue;
        if (version > h->overrides_version)
            h->overrides_version = version;
        if (version <= h->overrides[pool].version)
            continue;
        h->overrides[pool].version = version;
        for (size_t k = 0; k < 6; k++)
            (void) snprintf(h->overrides[pool].words[k], sizeof(h->overrides[pool].words[k]), "%.63s", reply_word(reply_at(item, 1 + k)));
    }
}

/* --- connections --- */

static void forget_calls(struct world *w, struct host *h) {
    h->beat_under_way = h->beat_again = h->beaten = h->early_sent = false;
    h->n_early = 0;
    h->doubt = 0;
    h->n_sync = h->sync_at = 0;
    h->healthy_since = 0;
    vclaim_forget_calls(w, h);
}

static void say_hello(struct world *w, struct host *h) {
    struct words words = {0};
    char session[16], name[16];
    unsigned declared = 0;

    vhost_begin(h, &words);
    words_add(&words, text_of_session(h->replaced, session));
    (void) snprintf(name, sizeof(name), "h%u", h->index);
    words_add(&words, name);
    words_add(&words, name); /* its machine */
    words_add(&words, "1");
    words_add_u64(&words, w->lease);
    words_add_u64(&words, vhost_aged_clock(w, h));
    words_add(&words, *h->epoch ? h->epoch : "0");
    words_add_u64(&words, dead_count(w, h));
    for (unsigned p = 0; p < w->n_pools; p++)
        declared += h->limits[p] > 0;
    words_add_u64(&words, declared);
    for (unsigned p = 0; p < w->n_pools; p++) {
        if (h->limits[p] == 0)
            continue;
        words_add(&words, (char[]) {(char) ('a' + p), '\0'});
        words_add_u64(&words, h->limits[p]);
    }
    for (unsigned p = 0; p < w->n_pools; p++) {
        if (h->overrides[p].version == 0)
            continue;
        words_add(&words, (char[]) {(char) ('a' + p), '\0'});
        for (size_t k = 0; k < 6; k++)
            words_add(&words, h->overrides[p].words[k]);
    }
    h->declare_again = false;
    h->hello_sent = w->now;
    world_send(w, h, REDIS_SCRIPT_HELLO, &words, h->phase, 0);
}

static void save_file(struct host *h) {
    h->has_file = true;
    h->file_session = h->session;
    h->file_connection = h->connection;
}

static void connect(struct world *w, struct host *h) {
    h->wire++;
    h->wire_dead = h->lose_call = h->lose_answer = false;
    h->last_call = h->last_answer = h->last_push = 0;
    h->retry = 0;
    h->connection++;
    save_file(h);
    h->phase = HOST_HELLO;
    say_hello(w, h);
}

void vhost_down(struct world *w, struct host *h, usec_t retry_in) {
    if (!h->up)
        return;
    h->wire++;
    h->phase = HOST_DOWN;
    h->retry = w->now + retry_in;
    forget_calls(w, h);
}

void vhost_resync(struct world *w, struct host *h) {
    forget_calls(w, h);
    h->phase = HOST_HELLO;
    say_hello(w, h);
}

void vhost_declare(struct world *w, struct host *h) {
    if (h->up && h->phase == HOST_LIVE)
        say_hello(w, h);
    else
        h->declare_again = true;
}

static void new_session(struct world *w, struct host *h) {
    if (w->n_sessions + 1 >= SESSIONS_MAX) {
        model_fail(w, "too many sessions for the model");
        return;
    }
    h->session = ++w->n_sessions;
    h->connection = 0;
    h->chain = 0;
    h->from_file = false;
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
    h->phase = HOST_DOWN;
    h->n_marks = 0;
    h->epoch[0] = '\0';
    h->clock = h->max_started = 0;
    h->deadline = 0;
    memset(h->overrides, 0, sizeof(h->overrides));
    h->overrides_version = 0;
    forget_calls(w, h);
    if (h->has_file) {
        h->replaced = 0;
        h->session = h->file_session;
        h->connection = h->file_connection;
        h->chain = 0;
        h->from_file = true;
    } else {
        new_session(w, h);
    }
    world_foreach_run(w, r) if (r->host == h->index && r->alive) {
        h->max_started = r->token > h->max_started ? r->token : h->max_started;
    }
    h->next_beat = USEC_INFINITY;
    h->start_at = 0;
    h->retry = w->now + 1;
}

/* Guards and their processes go on; what only waited is forgotten half of the time (`berth run` waits on and comes back). */
void vhost_crash(struct world *w, struct host *h) {
    h->wire++;
    h->up = false;
    h->phase = HOST_DOWN;
    h->retry = 0;
    h->frozen_until = 0;
    world_foreach_run(w, r) {
        if (r->host != h->index || r->state == RUN_NONE || r->state == RUN_DONE)
            continue;
        r->calls = 0;
        r->named = r->renew = false;
        if (r->alive) {
            r->state = RUN_HELD;
            r->sent = r->told = true;
            continue;
        }
        r->token = 0;
        if (r->state == RUN_HELD && r->told) { /* it ended just now: its guard's report says so */
            r->state = RUN_DONE;
        } else if (r->state != RUN_RELEASING && r->ticket > 0 && r->id % 2 == 0) {
            r->state = RUN_ASKED;
            r->sent = true;
            r->told = r->lost = false;
        } else {
            r->state = RUN_DONE;
        }
    }
}

/* --- hello --- */

static void sync_send(struct world *w, struct host *h);

static void on_hello(struct world *w, struct host *h, const redisReply *reply) {
    bool known = reply_number(reply_at(reply, 5)) == 1, grace = reply_number(reply_at(reply, 3)) == 1;

    hear_epoch(w, h, reply_word(reply_at(reply, 1)));
    vhost_hear_clock(w, h, reply_number(reply_at(reply, 6)));
    add_mark(w, h, reply_number(reply_at(reply, 4)));
    hear_overrides(h, reply_at(reply, 7));
    if (h->from_file && !known && !grace) {
        vhost_session_lost(w, h);
        return;
    }
    h->from_file = false;
    h->replaced = 0;
    h->grace = grace;
    h->phase = HOST_SYNC;
    vclaim_gather(w, h);
    sync_send(w, h);
}

static void on_declared(struct world *w, struct host *h, const redisReply *reply) {
    if (strcmp(reply_word(reply_at(reply, 1)), h->epoch) != 0) {
        vhost_resync(w, h);
        return;
    }
    hear_overrides(h, reply_at(reply, 7));
}

/* --- sync --- */

static void sync_send(struct world *w, struct host *h) {
    struct words words = {0};
    bool last = h->n_sync - h->sync_at <= w->sync_part;

    vhost_begin(h, &words);
    words_add(&words, h->epoch);
    words_add_u64(&words, vhost_aged_clock(w, h));
    words_add(&words, !h->sync_begun ? "1" : "0");
    words_add(&words, last ? "1" : "0");
    for (size_t i = 0; i < w->sync_part && h->sync_at < h->n_sync; i++) {
        const struct run *r = &w->runs[h->sync[h->sync_at++]];

        if (vclaim_is_told(r))
            vclaim_put(&words, r);
    }
    h->sync_begun = true;
    world_send(w, h, REDIS_SCRIPT_SYNC, &words, HOST_SYNC, 0);
}

static void on_sync(struct world *w, struct host *h, const redisReply *reply) {
    const redisReply *claims = reply_at(reply, 6);

    for (size_t i = 0; reply_at(claims, i); i++)
        vclaim_hear_item(w, h, reply_at(claims, i));
    vhost_hear_clock(w, h, reply_number(reply_at(reply, 5)));
    if (!h->sync_heard) {
        h->sync_heard = true;
        h->sync_chain = reply_number(reply_at(reply, 4));
    }
    if (h->sync_at < h->n_sync || reply_number(reply_at(reply, 2)) > 0) {
        sync_send(w, h);
        return;
    }
    vclaim_hear_number(h, h->chain, h->sync_chain);
    h->phase = HOST_LIVE;
    if (h->live_since == 0)
        h->live_since = w->now;
    world_foreach_run(w, r) if (r->host == h->index && r->state == RUN_RELEASING && !r->named) r->state = RUN_DONE;
    h->next_beat = w->now + vhost_lasts(h, w->heartbeat);
    vhost_beat(w, h);
    if (h->declare_again)
        say_hello(w, h);
}

/* --- heartbeats --- */

void vhost_beat(struct world *w, struct host *h) {
    struct words words = {0};

    if (h->phase != HOST_LIVE)
        return;
    if (h->beat_under_way) {
        h->beat_again = true;
        return;
    }
    vhost_begin(h, &words);
    words_add(&words, h->epoch);
    words_add_u64(&words, dead_count(w, h));
    words_add_u64(&words, vhost_measures(h, w->now - h->epoch_known));
    words_add_u64(&words, h->overrides_version);
    h->beat_sent = w->now;
    h->beat_again = false;
    h->early_sent = h->n_early > 0;
    h->beat_under_way = true;
    world_send(w, h, REDIS_SCRIPT_BEAT, &words, HOST_LIVE, 0);
}

static void say_look(struct world *w, struct host *h) {
    struct words words = {0};

    if (w->now < h->looked + w->lease)
        return;
    h->looked = w->now;
    vhost_begin(h, &words);
    words_add(&words, h->epoch);
    vclaim_put_named(w, h, &words);
    world_send(w, h, REDIS_SCRIPT_LOOK, &words, HOST_LIVE, 0);
}

static void on_beat(struct world *w, struct host *h, const redisReply *reply) {
    uint64_t last = reply_number(reply_at(reply, 5)), more = reply_number(reply_at(reply, 2));
    usec_t from = w->mutation && w->mutation->deadline_from_answer ? w->now : h->beat_sent, deadline;
    bool missed;

    h->beat_under_way = false;
    hear_overrides(h, reply_at(reply, 8));
    if (h->deadline > 0 && w->now >= h->deadline) {
        vhost_session_lost(w, h);
        return;
    }
    add_mark(w, h, reply_number(reply_at(reply, 4)));
    vhost_hear_clock(w, h, reply_number(reply_at(reply, 7)));
    missed = (h->early_sent && h->n_early > 0) || (h->doubt > 0 && h->chain < h->doubt) ||
             reply_number(reply_at(reply, 6)) != vclaim_count(w, h);
    if (w->mutation && w->mutation->no_chain)
        missed = reply_number(reply_at(reply, 6)) != vclaim_count(w, h);
    h->doubt = last > h->chain ? last : 0;
    deadline = from + vhost_lasts(h, w->lease - w->margin);
    if (deadline > h->deadline) {
        h->deadline = deadline;
        vclaim_extend(w, h);
    }
    h->grace = reply_number(reply_at(reply, 3)) == 1;
    if (!h->beaten) {
        h->beaten = true;
        vclaim_flush(w, h);
    }
    vclaim_start_told(w, h);
    if (h->phase == HOST_LIVE && missed)
        vhost_resync(w, h);
    else if (h->phase == HOST_LIVE && (more > 0 || h->beat_again))
        vhost_beat(w, h);
    else if (h->phase == HOST_LIVE)
        say_look(w, h);
}

/* --- time --- */

usec_t vhost_next_timer(const struct host *h) {
    usec_t next = USEC_INFINITY;

    if (!h->up)
        return next;
    if (h->retry > 0 && h->retry < next)
        next = h->retry;
    if (h->phase == HOST_LIVE && h->next_beat < next)
        next = h->next_beat;
    if (h->deadline > 0 && h->deadline < next)
        next = h->deadline;
    return next != USEC_INFINITY && next < h->frozen_until ? h->frozen_until : next;
}

void vhost_on_timer(struct world *w, struct host *h) {
    if (h->deadline > 0 && w->now >= h->deadline) {
        vhost_session_lost(w, h);
    } else if (h->retry > 0 && w->now >= h->retry) {
        connect(w, h);
    } else if (h->phase == HOST_LIVE && w->now >= h->next_beat) {
        h->next_beat = w->now + vhost_lasts(h, w->heartbeat);
        if (!h->beat_under_way)
            vhost_beat(w, h);
    }
}

/* --- answers --- */

/* Whether it is an answer to what was asked; what it calls for otherwise is done. */
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
        else if (here)
            vhost_resync(w, h);
        return false;
    }
    if (strcmp(word, "stale") == 0 && e->script == REDIS_SCRIPT_HELLO && here && h->phase == HOST_HELLO) {
        h->connection = reply_number(reply_at(reply, 1)) + 1;
        save_file(h);
        say_hello(w, h);
        return false;
    }
    if (strcmp(word, "stale") == 0) {
        if (here)
            vhost_down(w, h, w->heartbeat / 8);
        return false;
    }
    return true;
}

void vhost_on_answer(struct world *w, const struct model_event *e) {
    struct host *h = &w->hosts[e->host];
    const redisReply *reply = reply_at(e->reply, 0);

    if (e->script == REDIS_SCRIPT_CLAIM || e->script == REDIS_SCRIPT_RELEASE) {
        if (w->runs[e->run].calls > 0)
            w->runs[e->run].calls--;
    }
    if (e->script != REDIS_SCRIPT_CLAIM && e->script != REDIS_SCRIPT_RELEASE && h->phase != e->during)
        return;
    if (!answer_is_good(w, h, e, reply))
        return;
    if (e->script == REDIS_SCRIPT_HELLO && e->during == HOST_HELLO)
        on_hello(w, h, reply);
    else if (e->script == REDIS_SCRIPT_HELLO)
        on_declared(w, h, reply);
    else if (e->script == REDIS_SCRIPT_SYNC)
        on_sync(w, h, reply);
    else if (e->script == REDIS_SCRIPT_BEAT)
        on_beat(w, h, reply);
    else if (e->script == REDIS_SCRIPT_CLAIM || e->script == REDIS_SCRIPT_RELEASE)
        vclaim_on_answer(w, h, e, reply);
    else if (e->script == REDIS_SCRIPT_LOOK && reply_number(reply_at(reply, 3)) > 0)
        vhost_resync(w, h); /* Redis lost it, and came back as another one */
    else if (reply_number(reply_at(reply, 2)) > 0)
        vhost_beat(w, h);
}
