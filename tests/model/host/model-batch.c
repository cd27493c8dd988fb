/* SPDX-License-Identifier: MIT */

/* A virtual host's calls for its claims: a second implementation of store/redis/batch.c. Requests of the
 * same kind in one turn go out as one call. A turn is a step, an event or a timer. */

#include <string.h>

#include "tests/model/model-internal.h"

/* --- calls --- */

static void put_details(struct redis_command *words, const struct run *r) {
    char head[HEAD_SIZE], details[HEAD_SIZE + 48];

    (void) snprintf(details, sizeof(details), "%s 1 run name", head_format(r->head, r->given, r->moved, head));
    command_add(words, details);
}

static unsigned first_pool(const struct run *r) {
    unsigned p = 0;

    while (p < POOLS_MAX - 1 && r->permits[p] == 0)
        p++;
    return p;
}

static void put_claim(struct redis_command *words, const struct world *w, const struct run *r) {
    char id[16];

    command_add(words, vclaim_id(r, id));
    put_details(words, r);
    command_add_u64(words, r->ticket);
    command_add(words, r->nowait ? "1" : "0");
    for (unsigned p = 0; p < POOLS_MAX; p++)
        if (r->permits[p] > 0) {
            command_add(words, model_pool(w, p));
            command_add_u64(words, r->permits[p]);
            command_add_u64(words, r->queue_limit);
        }
}

static void put_claims(struct redis_command *words, const struct world *w, const struct batch *batch) {
    char id[16];

    command_add(words, model_pool(w, first_pool(&w->runs[batch->runs[0]])));
    command_add_u64(words, w->runs[batch->runs[0]].queue_limit);
    for (unsigned i = 0; i < batch->n; i++) {
        command_add(words, vclaim_id(&w->runs[batch->runs[i]], id));
        put_details(words, &w->runs[batch->runs[i]]);
    }
}

void vbatch_flush(struct world *w, struct host *h) {
    static const enum redis_script scripts[2][2] = {
        {REDIS_SCRIPT_CLAIM, REDIS_SCRIPT_CLAIMS},
        {REDIS_SCRIPT_RELEASE, REDIS_SCRIPT_RELEASES},
    };
    struct batch batch = h->open;
    struct redis_command words = {0};
    char id[16];

    if (batch.n == 0)
        return;
    h->open.n = 0;
    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    for (unsigned i = 0; batch.release && i < batch.n; i++)
        command_add(&words, vclaim_id(&w->runs[batch.runs[i]], id));
    if (!batch.release && batch.n == 1)
        put_claim(&words, w, &w->runs[batch.runs[0]]);
    else if (!batch.release)
        put_claims(&words, w, &batch);
    for (unsigned i = 0; !batch.release && i < batch.n; i++)
        w->runs[batch.runs[i]].sent = true;
    world_send(w, h, scripts[batch.release][batch.n > 1], &words, HOST_LIVE, &batch);
}

/* --- collected --- */

static bool is_simple(const struct run *r) {
    unsigned sum = 0;

    for (unsigned p = 0; p < POOLS_MAX; p++)
        sum += r->permits[p];
    return r->ticket == 0 && !r->nowait && sum == 1;
}

static bool joins(const struct world *w, const struct batch *batch, const struct run *r, bool release) {
    const struct run *first = &w->runs[batch->runs[0]];

    if (batch->n == ASK_MAX || batch->release != release)
        return false;
    return release || (is_simple(r) && is_simple(first) && first_pool(r) == first_pool(first) && r->queue_limit == first->queue_limit);
}

static void add(struct world *w, struct run *r, bool release) {
    struct host *h = &w->hosts[r->host];

    if (h->open.n > 0 && !joins(w, &h->open, r, release))
        vbatch_flush(w, h);
    h->open.release = release;
    h->open.runs[h->open.n++] = r->id;
    r->calls++;
}

void vbatch_claim(struct world *w, struct run *r) {
    if (r->turn.is)
        vturn_ask(w, r);
    else
        add(w, r, false);
}

void vbatch_release(struct world *w, struct run *r) {
    if (r->turn.is)
        vturn_end(w, r);
    else
        add(w, r, true);
}

/* --- answers --- */

void vbatch_on_sent_reply(struct world *w, const struct batch *batch) {
    for (unsigned i = 0; i < batch->n; i++)
        if (w->runs[batch->runs[i]].calls > 0)
            w->runs[batch->runs[i]].calls--;
}

static void refuse(struct run *r) {
    if (r->state == RUN_ASKED)
        r->state = RUN_DONE;
}

void vbatch_refuse(struct world *w, const struct batch *batch) {
    for (unsigned i = 0; i < batch->n; i++)
        refuse(&w->runs[batch->runs[i]]);
}

static void apply_line(struct world *w, struct host *h, struct run *r, bool release, const redisReply *line) {
    uint64_t ticket = reply_number(reply_at(line, 4)), token = reply_number(reply_at(line, 5));

    if (release) {
        if (r->state == RUN_RELEASING)
            r->state = RUN_DONE;
        return;
    }
    if (strcmp(reply_word(reply_at(line, 0)), "refused") == 0) {
        refuse(r);
        return;
    }
    r->named = true;
    vheartbeat_observe_drawn(w, h, token > ticket ? token : ticket);
    if (strcmp(reply_word(reply_at(line, 3)), "H") == 0) {
        vclaim_apply_number(h, reply_number(reply_at(line, 6)), token);
        vclaim_apply_held(w, h, r, ticket, token);
    } else {
        vclaim_apply_waiting(r, ticket);
    }
}

void vbatch_on_reply(struct world *w, struct host *h, const struct batch *batch, const redisReply *reply) {
    bool more = false;

    for (unsigned i = 0; i < batch->n; i++) {
        const redisReply *line = batch->n > 1 ? reply_at(reply, i) : reply;

        apply_line(w, h, &w->runs[batch->runs[i]], batch->release, line);
        more = more || reply_number(reply_at(line, 2)) > 0;
    }
    if (more)
        vheartbeat_send(w, h);
}
