/* SPDX-License-Identifier: MIT */

/* Time and the network. */

#include <stdarg.h>
#include <string.h>

#include "tests/model/model-internal.h"

#define LOOK_EVERY 16 /* calls between two looks into Redis' data */

static const char *const pool_names[2][POOLS_MAX] = {{"a", "b", "c", ""}, {"a", "t/x", "t/y", "t/*"}};

const char *model_pool(const struct world *w, unsigned pool) {
    return pool_names[w->setup.has_keys][pool];
}

unsigned model_find_pool(const struct world *w, const char *text) {
    for (unsigned p = 0; p < w->setup.n_pools; p++) {
        size_t n = strlen(model_pool(w, p));

        if (strncmp(text, model_pool(w, p), n) == 0 && (text[n] == '\0' || text[n] == ':'))
            return p;
    }
    return POOLS_MAX;
}

bool model_is_key(const struct world *w, unsigned pool) {
    return w->setup.has_keys && (pool == 1 || pool == 2);
}

uint64_t model_mix(uint64_t a, uint64_t b) { /* splitmix64 */
    uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

usec_t world_draw(struct world *w, usec_t most) {
    return 200 + model_mix(w->setup.seed, w->draws++) % most;
}

void world_trace(const struct world *w, const char *format, ...) {
    va_list ap;

    if (!w->trace)
        return;
    fprintf(w->trace, "%9.3f ", (double) w->now / 1e6);
    va_start(ap, format);
    (void) vfprintf(w->trace, format, ap);
    va_end(ap);
    fputc('\n', w->trace);
}

/* --- events --- */

static void event_free(struct model_event *e) {
    command_done(&e->words);
    if (e->reply)
        freeReplyObject(e->reply);
    free(e->text);
    free(e);
}

static struct model_event *event_add(struct world *w, enum event_kind kind, const struct host *h, usec_t at) {
    struct model_event *e = calloc(1, sizeof(*e));

    if (!e || w->events.n == EVENTS_MAX)
        abort();
    *e = (struct model_event){.kind = kind,
                              .at = at,
                              .order = w->events.order++,
                              .host = h->index,
                              .wire = h->network.wire,
                              .sent = w->now};
    w->events.all[w->events.n++] = e;
    return e;
}

static usec_t in_order(usec_t *last, usec_t at) {
    *last = at > *last ? at : *last + 1;
    return *last;
}

void world_break(struct world *w, struct host *h, usec_t after) {
    if (h->network.wire_dead)
        return;
    h->network.wire_dead = true;
    event_add(w, EVENT_BROKEN, h, w->now + after);
}

static struct model_event *add_call(struct world *w, struct host *h, usec_t at, enum redis_script script, const struct redis_command *words,
                                    enum host_phase during) {
    struct model_event *e = event_add(w, EVENT_CALL, h, in_order(&h->network.last_call, at));

    e->script = script;
    for (size_t i = 0; i < words->n; i++)
        command_add(&e->words, words->items[i]);
    e->during = during;
    e->session = h->session;
    return e;
}

void world_send(struct world *w, struct host *h, enum redis_script script, struct redis_command *words, enum host_phase during,
                const struct batch *batch) {
    usec_t at;
    struct model_event *e;

    vbatch_flush(w, h);
    at = w->now + world_draw(w, w->setup.heartbeat / 40);
    if (h->network.lose_call || h->network.cut_until > w->now) {
        world_trace(w, "h%u: %s is lost on its way", h->index, redis_script_name(script));
        h->network.lose_call = false;
        world_break(w, h, w->setup.heartbeat / 2);
        command_done(words);
        return;
    }
    if (h->network.wire_dead) {
        command_done(words);
        return;
    }
    if (h->network.stall_call > 0) {
        at += h->network.stall_call;
        if (h->network.stall_call > w->setup.heartbeat) { /* its berthd does not wait for it */
            event_add(w, EVENT_BROKEN, h, w->now + w->setup.heartbeat / 2);
            h->network.wire_dead = true;
        }
        h->network.stall_call = 0;
    }
    e = add_call(w, h, at, script, words, during);
    if (batch)
        e->batch = *batch;
    if (batch && h->network.twice) {
        add_call(w, h, at, script, words, during)->is_unawaited = true;
        h->network.twice = false;
    }
    command_done(words);
}

void world_push(struct world *w, unsigned session, const char *text) {
    for (unsigned i = 0; i < w->setup.n_hosts; i++) {
        struct host *h = &w->hosts[i];
        struct model_event *e;
        usec_t at = w->now + world_draw(w, w->setup.heartbeat / 40) + h->network.stall_push;

        if (h->session != session || !h->up || h->phase == HOST_DOWN || h->network.wire_dead ||
            h->network.cut_until > w->now)
            continue;
        if (h->network.lose_push) {
            h->network.lose_push = false;
            world_trace(w, "a push to h%u is lost: %s", i, text);
            return;
        }
        h->network.stall_push = 0;
        e = event_add(w, EVENT_PUSH, h, in_order(&h->network.last_push, at));
        e->text = strdup(text);
        if (!e->text)
            abort();
    }
}

/* --- calls --- */

static void trace_reply(FILE *out, const redisReply *r) {
    if (r->type == REDIS_REPLY_ARRAY) {
        fputc('{', out);
        for (size_t i = 0; i < r->elements; i++) {
            if (i > 0)
                fputc(' ', out);
            trace_reply(out, r->element[i]);
        }
        fputc('}', out);
    } else if (r->type == REDIS_REPLY_INTEGER) {
        fprintf(out, "%lld", r->integer);
    } else {
        fprintf(out, "%s", r->type == REDIS_REPLY_NIL ? "-" : *r->str ? r->str : "''");
    }
}

static void trace_call(const struct world *w, enum redis_script script, const struct redis_command *words, const redisReply *reply) {
    if (!w->trace || !reply)
        return;
    fprintf(w->trace, "%9.3f redis: %s", (double) w->now / 1e6, redis_script_name(script));
    for (size_t i = 0; i < words->n; i++)
        fprintf(w->trace, " %s", *words->items[i] ? words->items[i] : "''");
    fputs("\n                 = ", w->trace);
    trace_reply(w->trace, reply_at(reply, 0) ? reply_at(reply, 0) : reply);
    if (reply_at(reply_at(reply, 1), 0)) {
        fputs("\n             pushes ", w->trace);
        trace_reply(w->trace, reply_at(reply, 1));
    }
    fputc('\n', w->trace);
}

redisReply *world_call(struct world *w, enum redis_script script, const struct redis_command *words) {
    const redisReply *pushes;
    redisReply *reply;

    bridge_set_full(w->bridge, w->now < w->redis.full_until);
    bridge_set_replica(w->bridge, w->now < w->redis.replica_until);
    reply = bridge_call(w->bridge, script, w->setup.tight, world_redis_time(w), w->redis.replid, words);
    pushes = reply_at(reply, 1);
    trace_call(w, script, words, reply);
    if (!bridge_reply_names_call(w->bridge, script, reply))
        model_fail(w, "R6: a reply of %s does not name its call", redis_script_name(script));
    rules_apply(w, script, words, reply);
    for (size_t i = 0; reply_at(pushes, i + 1); i += 2) {
        const char *channel = strstr(reply_word(reply_at(pushes, i)), "to:");

        world_push(w, id_number(channel ? channel + 3 : ""), reply_word(reply_at(pushes, i + 1)));
    }
    if (++w->n_calls % LOOK_EVERY == 0 && !model_failed(w))
        check_data(w, false);
    return reply;
}

static void note_heartbeat(struct world *w, struct host *h, const redisReply *reply) {
    if (strcmp(reply_word(reply_at(reply_at(reply, 0), 0)), "ok") != 0)
        return;
    if (h->health.since == 0 || w->now > h->health.last_beat + w->setup.heartbeat + w->setup.heartbeat / 4)
        h->health.since = w->now;
    if (h->health.idle_since == 0 || w->now > h->health.last_beat + h->config.lease / 2)
        h->health.idle_since = w->now;
    h->health.last_beat = w->now;
    if (!w->redis.now.empty && w->redis.now.replid == w->redis.replid)
        check_heartbeat(w, h);
}

static void on_call(struct world *w, struct model_event *e) {
    struct host *h = &w->hosts[e->host];
    bool is_present = e->wire == h->network.wire && h->up;
    struct model_event *answer;
    redisReply *reply;
    usec_t at;

    if (h->network.cut_until > w->now)
        return;
    reply = world_call(w, e->script, &e->words);
    if (e->script == REDIS_SCRIPT_HEARTBEAT && is_present)
        note_heartbeat(w, h, reply);
    if (!is_present || h->network.wire_dead || e->is_unawaited) {
        freeReplyObject(reply);
        return;
    }
    if (h->network.lose_answer) {
        world_trace(w, "h%u: the answer is lost on its way", h->index);
        h->network.lose_answer = false;
        world_break(w, h, w->setup.heartbeat / 2);
        freeReplyObject(reply);
        return;
    }
    at = w->now + world_draw(w, w->setup.heartbeat / 40) + h->network.stall_answer;
    h->network.stall_answer = 0;
    answer = event_add(w, EVENT_ANSWER, h, in_order(&h->network.last_answer, at));
    answer->script = e->script;
    answer->reply = reply;
    answer->during = e->during;
    answer->batch = e->batch;
    answer->sent = e->sent;
}

/* Returns false if the event has to wait. */
static bool dispatch(struct world *w, struct model_event *e) {
    struct host *h = &w->hosts[e->host];

    if (e->kind == EVENT_CALL && w->redis.frozen_until > w->now) {
        e->at = w->redis.frozen_until;
        return false;
    }
    if (e->kind == EVENT_CALL) {
        on_call(w, e);
        return true;
    }
    if (!h->up || e->wire != h->network.wire || (h->network.cut_until > w->now && e->kind != EVENT_BROKEN))
        return true;
    if (h->frozen_until > w->now) {
        e->at = h->frozen_until;
        return false;
    }
    if (e->kind == EVENT_ANSWER)
        vhost_on_answer(w, e);
    else if (e->kind == EVENT_PUSH)
        vclaim_on_push(w, h, e->text);
    else
        vhost_down(w, h, w->setup.heartbeat / 8);
    return true;
}

void world_thaw(struct world *w) {
    for (size_t i = 0; i < w->events.n; i++) {
        struct model_event *e = w->events.all[i];

        if (e->at == (e->kind == EVENT_CALL ? w->redis.frozen_until : w->hosts[e->host].frozen_until))
            e->at = w->now; /* what comes later must not overtake it */
    }
    w->redis.frozen_until = 0;
    for (unsigned i = 0; i < w->setup.n_hosts; i++)
        w->hosts[i].frozen_until = 0;
}

/* --- time --- */

static size_t first_event(const struct world *w) {
    size_t first = 0;

    for (size_t i = 1; i < w->events.n; i++)
        if (w->events.all[i]->at < w->events.all[first]->at ||
            (w->events.all[i]->at == w->events.all[first]->at &&
             w->events.all[i]->order < w->events.all[first]->order))
            first = i;
    return first;
}

static struct host *first_timer(struct world *w, usec_t *ret_at) {
    struct host *first = NULL;

    *ret_at = USEC_INFINITY;
    for (unsigned i = 0; i < w->setup.n_hosts; i++) {
        struct host *h = &w->hosts[i];
        usec_t at = h->up ? vhost_next_timer(w, h) : h->start_at > 0 ? h->start_at : USEC_INFINITY;

        if (at < *ret_at) {
            first = h;
            *ret_at = at;
        }
    }
    return first;
}

void world_end_turn(struct world *w) {
    for (unsigned i = 0; i < w->setup.n_hosts; i++)
        vbatch_flush(w, &w->hosts[i]);
}

void world_advance(struct world *w, usec_t until) {
    while (!model_failed(w)) {
        size_t i = first_event(w);
        usec_t timer, end = vclaim_next_end(w),
                      event = w->events.n > 0 ? w->events.all[i]->at : USEC_INFINITY;
        struct host *h = first_timer(w, &timer);

        if (end > until && event > until && timer > until)
            break;
        if (end <= event && end <= timer) {
            w->now = end > w->now ? end : w->now;
            vclaim_pass_time(w);
        } else if (event < timer || (event == timer && model_mix(w->setup.seed, w->draws++) % 2 == 0)) {
            struct model_event *e = w->events.all[i];

            w->now = event > w->now ? event : w->now;
            if (!dispatch(w, e))
                continue;
            w->events.all[i] = w->events.all[--w->events.n];
            h = &w->hosts[e->host];
            event_free(e);
        } else {
            w->now = timer > w->now ? timer : w->now;
            if (h->up)
                vhost_on_timer(w, h);
            else
                vhost_start(w, h);
        }
        if (w->disaster.phase == DISASTER_DUE)
            world_disaster(w);
        for (unsigned k = 0; k < w->setup.n_hosts; k++)
            if (w->hosts[k].up && w->hosts[k].frozen_until <= w->now)
                vclaim_reap(w, &w->hosts[k]);
        world_end_turn(w);
    }
    if (w->now < until)
        w->now = until;
}

void world_done(struct world *w) {
    for (size_t i = 0; i < w->events.n; i++)
        event_free(w->events.all[i]);
    w->events.n = 0;
}
