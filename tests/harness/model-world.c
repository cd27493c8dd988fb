/* SPDX-License-Identifier: MIT */

/* Time, the network, and what befalls hosts and Redis. */

#include <stdarg.h>
#include <string.h>

#include "tests/harness/model-internal.h"

#define LOOK_EVERY 16 /* calls between two looks into Redis' data */

uint64_t model_mix(uint64_t a, uint64_t b) { /* splitmix64 */
    uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static usec_t draw(struct world *w, usec_t most) {
    return 200 + model_mix(w->seed, w->draws++) % most;
}

_printf_(2, 3) static void trace(const struct world *w, const char *format, ...) {
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
    words_done(&e->words);
    if (e->reply)
        freeReplyObject(e->reply);
    free(e->text);
    free(e);
}

static struct model_event *event_add(struct world *w, enum event_kind kind, const struct host *h, usec_t at) {
    struct model_event *e = calloc(1, sizeof(*e));

    if (!e || w->n_events == EVENTS_MAX)
        abort();
    *e = (struct model_event) {.kind = kind, .at = at, .order = w->order++, .host = h->index, .wire = h->wire, .sent = w->now};
    w->events[w->n_events++] = e;
    return e;
}

static usec_t in_order(usec_t *last, usec_t at) {
    *last = at > *last ? at : *last + 1;
    return *last;
}

void world_break(struct world *w, struct host *h, usec_t after) {
    if (h->wire_dead)
        return;
    h->wire_dead = true;
    event_add(w, EVENT_BROKEN, h, w->now + after);
}

void world_send(struct world *w, struct host *h, enum redis_script script, struct words *words, enum host_phase during, unsigned run) {
    usec_t at = w->now + draw(w, w->heartbeat / 40);
    struct model_event *e;

    if (h->lose_call || h->cut_until > w->now) {
        trace(w, "h%u: %s is lost on its way", h->index, redis_script_name(script));
        h->lose_call = false;
        world_break(w, h, w->heartbeat / 2);
        words_done(words);
        return;
    }
    if (h->wire_dead) {
        words_done(words);
        return;
    }
    if (h->stall_call > 0) {
        at += h->stall_call;
        if (h->stall_call > w->heartbeat) { /* its berthd does not wait for it */
            e = event_add(w, EVENT_BROKEN, h, w->now + w->heartbeat / 2);
            h->wire_dead = true;
        }
        h->stall_call = 0;
    }
    e = event_add(w, EVENT_CALL, h, in_order(&h->last_call, at));
    e->script = script;
    e->words = *words;
    e->during = during;
    e->run = run;
    e->session = h->session;
}

void world_push(struct world *w, unsigned session, const char *text) {
    for (unsigned i = 0; i < w->n_hosts; i++) {
        struct host *h = &w->hosts[i];
        struct model_event *e;
        usec_t at = w->now + draw(w, w->heartbeat / 40) + h->stall_push;

        if (h->session != session || !h->up || h->phase == HOST_DOWN || h->wire_dead || h->cut_until > w->now)
            continue;
        if (h->lose_push) {
            h->lose_push = false;
            trace(w, "a push to h%u is lost: %s", i, text);
            return;
        }
        h->stall_push = 0;
        e = event_add(w, EVENT_PUSH, h, in_order(&h->last_push, at));
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

static void trace_call(const struct world *w, enum redis_script script, const struct words *words, const redisReply *reply) {
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

redisReply *world_call(struct world *w, enum redis_script script, const struct words *words) {
    redisReply *reply = bridge_call(w->bridge, script, w->tight, world_redis_time(w), w->replid, words);
    const redisReply *pushes = reply_at(reply, 1);

    trace_call(w, script, words, reply);
    rules_apply(w, script, words, reply);
    for (size_t i = 0; reply_at(pushes, i + 1); i += 2) {
        const char *channel = strstr(reply_word(reply_at(pushes, i)), "to:");

        world_push(w, id_number(channel ? channel + 3 : ""), reply_word(reply_at(pushes, i + 1)));
    }
    if (++w->n_calls % LOOK_EVERY == 0 && !model_failed(w))
        check_data(w, false);
    return reply;
}

static void note_beat(struct world *w, struct host *h, const redisReply *reply) {
    if (strcmp(reply_word(reply_at(reply_at(reply, 0), 0)), "ok") != 0)
        return;
    if (h->healthy_since == 0 || w->now > h->last_beat + w->heartbeat + w->heartbeat / 4)
        h->healthy_since = w->now;
    h->last_beat = w->now;
    if (!w->m.empty && w->m.replid == w->replid)
        check_beat(w, h);
}

static void on_call(struct world *w, struct model_event *e) {
    struct host *h = &w->hosts[e->host];
    bool is_present = e->wire == h->wire && h->up;
    struct model_event *answer;
    redisReply *reply;
    usec_t at;

    if (h->cut_until > w->now)
        return;
    reply = world_call(w, e->script, &e->words);
    if (e->script == REDIS_SCRIPT_BEAT && is_present)
        note_beat(w, h, reply);
    if (!is_present || h->wire_dead) {
        freeReplyObject(reply);
        return;
    }
    if (h->lose_answer) {
        trace(w, "h%u: the answer is lost on its way", h->index);
        h->lose_answer = false;
        world_break(w, h, w->heartbeat / 2);
        freeReplyObject(reply);
        return;
    }
    at = w->now + draw(w, w->heartbeat / 40) + h->stall_answer;
    h->stall_answer = 0;
    answer = event_add(w, EVENT_ANSWER, h, in_order(&h->last_answer, at));
    answer->script = e->script;
    answer->reply = reply;
    answer->during = e->during;
    answer->run = e->run;
    answer->sent = e->sent;
}

/* False: not yet. */
static bool dispatch(struct world *w, struct model_event *e) {
    struct host *h = &w->hosts[e->host];

    if (e->kind == EVENT_CALL && w->redis_frozen_until > w->now) {
        e->at = w->redis_frozen_until;
        return false;
    }
    if (e->kind == EVENT_CALL) {
        on_call(w, e);
        return true;
    }
    if (!h->up || e->wire != h->wire || (h->cut_until > w->now && e->kind != EVENT_BROKEN))
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
        vhost_down(w, h, w->heartbeat / 8);
    return true;
}

/* --- time --- */

static size_t first_event(const struct world *w) {
    size_t first = 0;

    for (size_t i = 1; i < w->n_events; i++)
        if (w->events[i]->at < w->events[first]->at ||
            (w->events[i]->at == w->events[first]->at && w->events[i]->order < w->events[first]->order))
            first = i;
    return first;
}

static struct host *first_timer(struct world *w, usec_t *ret_at) {
    struct host *first = NULL;

    *ret_at = USEC_INFINITY;
    for (unsigned i = 0; i < w->n_hosts; i++) {
        struct host *h = &w->hosts[i];
        usec_t at = h->up ? vhost_next_timer(h) : h->start_at > 0 ? h->start_at : USEC_INFINITY;

        if (at < *ret_at) {
            first = h;
            *ret_at = at;
        }
    }
    return first;
}

void world_advance(struct world *w, usec_t until) {
    while (!model_failed(w)) {
        size_t i = first_event(w);
        usec_t timer, end = vclaim_next_end(w), event = w->n_events > 0 ? w->events[i]->at : USEC_INFINITY;
        struct host *h = first_timer(w, &timer);

        if (end > until && event > until && timer > until)
            break;
        if (end <= event && end <= timer) {
            w->now = end > w->now ? end : w->now;
            vclaim_pass_time(w);
        } else if (event < timer || (event == timer && model_mix(w->seed, w->draws++) % 2 == 0)) {
            struct model_event *e = w->events[i];

            w->now = event > w->now ? event : w->now;
            if (!dispatch(w, e))
                continue;
            w->events[i] = w->events[--w->n_events];
            h = &w->hosts[e->host];
            event_free(e);
        } else {
            w->now = timer > w->now ? timer : w->now;
            if (h->up)
                vhost_on_timer(w, h);
            else
                vhost_start(w, h);
        }
        for (unsigned k = 0; k < w->n_hosts; k++)
            if (w->hosts[k].up && w->hosts[k].frozen_until <= w->now)
                vclaim_reap(w, &w->hosts[k]);
    }
    if (w->now < until)
        w->now = until;
}

/* --- what befalls --- */

static const char *const step_names[STEPS] = {
    [STEP_CLAIM] = "claim", [STEP_WITHDRAW] = "withdraw", [STEP_CRASH] = "crash", [STEP_REBOOT] = "reboot",
    [STEP_LOSE_FILE] = "crash and lose the session's file", [STEP_FREEZE] = "freeze", [STEP_CUT] = "cut",
    [STEP_LOSE_CALL] = "lose a call", [STEP_LOSE_ANSWER] = "lose an answer", [STEP_STALL_CALL] = "stall a call",
    [STEP_STALL_ANSWER] = "stall an answer", [STEP_LOSE_PUSH] = "lose a push", [STEP_STALL_PUSH] = "stall a push",
    [STEP_RECONNECT] = "reconnect", [STEP_BYE] = "bye", [STEP_WIPE] = "Redis restarts empty", [STEP_FLUSH] = "FLUSHALL",
    [STEP_RESTART] = "Redis restarts with its data", [STEP_SAVE] = "snapshot", [STEP_RESTORE] = "Redis comes back with the snapshot",
    [STEP_REDIS_FROZEN] = "freeze Redis", [STEP_CLOCK] = "step Redis' clock", [STEP_LIMIT] = "declare a limit",
    [STEP_OVERRIDE] = "override", [STEP_CLEAR] = "clear an override", [STEP_PAUSE] = "pause", [STEP_RESUME] = "resume",
    [STEP_REVOKE] = "revoke", [STEP_GRACE] = "end grace",
};

const char *step_name(enum step_kind kind) {
    return step_names[kind];
}

static void step_claim(struct world *w, struct host *h, const struct step *s) {
    struct run *r = &w->runs[w->n_runs];
    uint32_t sum = 0;

    if (!h->up || h->frozen_until > w->now || w->n_runs == RUNS_MAX)
        return;
    *r = (struct run) {.host = h->index, .id = w->n_runs, .head = s->b, .nowait = s->c & 1, .keep = s->c & 2, .duration = s->d};
    for (unsigned p = 0; p < w->n_pools; p++) {
        r->permits[p] = (uint32_t) (s->a >> (8 * p)) & 0xff;
        if (r->permits[p] > w->limits[p])
            r->permits[p] = w->limits[p];
        sum += r->permits[p];
    }
    if (sum == 0)
        r->permits[0] = 1;
    w->n_runs++;
    trace(w, "h%u: c%u asks for %u %u %u", h->index, r->id, r->permits[0], r->permits[1], r->permits[2]);
    vclaim_ask(w, r);
}

static void step_withdraw(struct world *w, struct host *h, const struct step *s) {
    unsigned n = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        unsigned k = 0;

        world_foreach_run(w, r) {
            if (r->host != h->index || !h->up || r->state < RUN_ASKED || r->state > RUN_HELD)
                continue;
            if (pass == 1 && k++ == s->a % n) {
                r->alive = false;
                vclaim_release(w, r);
                return;
            }
            n += pass == 0;
        }
        if (n == 0)
            return;
    }
}

static void step_bye(struct world *w, struct host *h) {
    struct words words = {0};

    if (!h->up || h->phase == HOST_DOWN)
        return;
    vhost_begin(h, &words);
    world_foreach_run(w, r) {
        if (r->host != h->index)
            continue;
        r->alive = false;
        r->state = RUN_DONE;
    }
    world_send(w, h, REDIS_SCRIPT_BYE, &words, h->phase, 0);
    vhost_crash(w, h);
    h->has_file = false;
    h->replaced = h->session;
}

static void break_all(struct world *w) {
    for (unsigned i = 0; i < w->n_hosts; i++)
        if (w->hosts[i].up && w->hosts[i].phase != HOST_DOWN)
            world_break(w, &w->hosts[i], draw(w, w->heartbeat / 4));
}

static void step_redis(struct world *w, const struct step *s) {
    switch (s->kind) {
    case STEP_WIPE:
    case STEP_FLUSH:
        bridge_wipe(w->bridge);
        rules_begin(w);
        break;
    case STEP_RESTORE:
        if (!w->has_saved)
            return;
        bridge_restore(w->bridge);
        w->m = w->saved;
        break;
    case STEP_SAVE:
        bridge_save(w->bridge);
        w->saved = w->m;
        w->has_saved = true;
        return;
    default:
        break;
    }
    if (s->kind == STEP_FLUSH)
        return;
    w->replid++;
    if (s->a % 2 == 0) /* a replica promoted and demoted again can keep connections */
        break_all(w);
}

static void step_override(struct world *w, struct host *h, const struct step *s) {
    static const char *const kinds[] = {[0] = "set", [STEP_CLEAR - STEP_OVERRIDE] = "clear",
                                        [STEP_PAUSE - STEP_OVERRIDE] = "pause", [STEP_RESUME - STEP_OVERRIDE] = "resume"};
    unsigned p = (unsigned) (s->a % w->n_pools);
    uint64_t id = s->c % (STEPS_MAX + 1);
    struct words words = {0};
    char by[24];

    if (!h->up || h->phase != HOST_LIVE || h->frozen_until > w->now)
        return;
    if (w->admin_versions[id] == 0) /* else it is said again */
        w->admin_versions[id] = h->overrides[p].version + 1;
    vhost_begin(h, &words);
    words_add(&words, h->epoch);
    words_add(&words, (char[]) {(char) ('a' + p), '\0'});
    words_add_u64(&words, w->admin_versions[id] - 1);
    (void) snprintf(by, sizeof(by), "by%" PRIu64, id > 0 ? id : 1000 + w->n_admin++);
    if (id == 0)
        w->admin_versions[0] = 0;
    words_add(&words, by);
    words_add(&words, kinds[s->kind - STEP_OVERRIDE]);
    words_add_u64(&words, s->b);
    words_add_u64(&words, s->d);
    words_add(&words, "why");
    world_send(w, h, REDIS_SCRIPT_OVERRIDE, &words, HOST_LIVE, 0);
}

static void step_revoke(struct world *w, struct host *h, const struct step *s) {
    struct words words = {0};
    char id[24];

    if (!h->up || h->phase != HOST_LIVE || w->n_runs == 0 || h->frozen_until > w->now)
        return;
    (void) snprintf(id, sizeof(id), "c%u", (unsigned) (s->a % w->n_runs));
    vhost_begin(h, &words);
    words_add(&words, h->epoch);
    words_add(&words, id);
    words_add(&words, "enough");
    world_send(w, h, REDIS_SCRIPT_REVOKE, &words, HOST_LIVE, 0);
}

/* Whoever ends grace by hand knows that nothing runs that Redis does not know, and nothing may still begin. */
static bool may_end_grace(const struct world *w) {
    if (w->m.empty || w->m.replid != w->replid)
        return false;
    for (unsigned i = 0; i < w->n_hosts; i++)
        if (w->hosts[i].up && (w->hosts[i].phase != HOST_LIVE || strcmp(w->hosts[i].epoch, w->m.epoch) != 0))
            return false;
    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
        if (r->alive && !r->over_lease && (w->m.claims[r->id].state != 'H' || !w->hosts[r->host].up))
            return false;
    return true;
}

static void step_grace(struct world *w, struct host *h) {
    struct words words = {0};

    if (h->up && h->phase == HOST_LIVE && may_end_grace(w)) {
        vhost_begin(h, &words);
        words_add(&words, h->epoch);
        freeReplyObject(world_call(w, REDIS_SCRIPT_GRACE, &words));
    }
    words_done(&words);
}

static void step_end_berthd(struct world *w, struct host *h, const struct step *s) {
    unsigned session = h->session;

    if (!h->up)
        return;
    if (s->kind == STEP_BYE) {
        step_bye(w, h);
    } else {
        if (s->kind == STEP_REBOOT)
            world_foreach_run(w, r) if (r->host == h->index) r->alive = false;
        vhost_crash(w, h);
        if (s->kind != STEP_CRASH)
            h->has_file = false;
        h->replaced = s->kind == STEP_REBOOT ? session : 0;
    }
    h->start_at = w->now + 1 + s->a;
}

void world_step(struct world *w, const struct step *s) {
    struct host *h = &w->hosts[s->host % w->n_hosts];
    unsigned p = (unsigned) (s->a % w->n_pools);

    trace(w, "-- %s h%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, step_name(s->kind), h->index, s->a, s->b, s->c, s->d);
    switch (s->kind) {
    case STEP_CLAIM:
        step_claim(w, h, s);
        break;
    case STEP_WITHDRAW:
        step_withdraw(w, h, s);
        break;
    case STEP_CRASH:
    case STEP_REBOOT:
    case STEP_LOSE_FILE:
    case STEP_BYE:
        step_end_berthd(w, h, s);
        break;
    case STEP_FREEZE:
        h->frozen_until = w->now + s->a;
        break;
    case STEP_CUT:
        h->cut_until = w->now + s->a;
        world_break(w, h, w->heartbeat / 2);
        break;
    case STEP_LOSE_CALL:
        h->lose_call = true;
        break;
    case STEP_LOSE_ANSWER:
        h->lose_answer = true;
        break;
    case STEP_STALL_CALL:
        h->stall_call = s->a;
        break;
    case STEP_STALL_ANSWER:
        h->stall_answer = s->a;
        break;
    case STEP_LOSE_PUSH:
        h->lose_push = true;
        break;
    case STEP_STALL_PUSH:
        h->stall_push = s->a;
        break;
    case STEP_RECONNECT:
        vhost_down(w, h, 1);
        break;
    case STEP_WIPE:
    case STEP_FLUSH:
    case STEP_RESTART:
    case STEP_SAVE:
    case STEP_RESTORE:
        step_redis(w, s);
        break;
    case STEP_REDIS_FROZEN:
        w->redis_frozen_until = w->now + s->a;
        break;
    case STEP_CLOCK:
        w->redis_skew += (int64_t) s->a * (s->b % 2 == 0 ? 1 : -1);
        break;
    case STEP_LIMIT:
        h->limits[p] = (uint32_t) s->b;
        vhost_declare(w, h);
        break;
    case STEP_OVERRIDE:
    case STEP_CLEAR:
    case STEP_PAUSE:
    case STEP_RESUME:
        step_override(w, h, s);
        break;
    case STEP_REVOKE:
        step_revoke(w, h, s);
        break;
    case STEP_GRACE:
        step_grace(w, h);
        break;
    case STEPS:
        break;
    }
}

void world_heal(struct world *w) {
    trace(w, "-- all faults end");
    w->redis_frozen_until = 0;
    world_foreach_run(w, r) { /* no need to watch them run */
        if (r->duration > w->lease / 20)
            r->duration = w->lease / 20;
        if (r->alive && r->ends > w->now + w->lease / 20)
            r->ends = w->now + w->lease / 20;
    }
    for (unsigned i = 0; i < w->n_hosts; i++) {
        struct host *h = &w->hosts[i];

        h->cut_until = h->frozen_until = 0;
        h->lose_call = h->lose_answer = h->lose_push = false;
        h->stall_call = h->stall_answer = h->stall_push = 0;
        memcpy(h->limits, w->limits, sizeof(h->limits));
        if (h->up)
            vhost_declare(w, h);
        else
            h->start_at = w->now + 1;
    }
}

void world_done(struct world *w) {
    for (size_t i = 0; i < w->n_events; i++)
        event_free(w->events[i]);
    w->n_events = 0;
}
