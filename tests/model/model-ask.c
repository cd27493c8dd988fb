/* SPDX-License-Identifier: MIT */

/* What a virtual host asks for its claims: a second implementation of store/redis/batch.c. What one turn asks for alike goes out as one
 * call; a turn is a step, an event or a timer. */

#include <string.h>

#include "tests/model/model-internal.h"

/* --- calls --- */

static void put_who(struct redis_command *words, const struct run *r) {
    char who[48];

    (void) snprintf(who, sizeof(who), "%" PRIu64 " 1 run name", r->head);
    command_add(words, who);
}

static unsigned first_pool(const struct run *r) {
    unsigned p = 0;

    while (p < POOLS_MAX - 1 && r->permits[p] == 0)
        p++;
    return p;
}

static void put_pool(struct redis_command *words, unsigned pool) {
    command_add(words, (char[]) {(char) ('a' + pool), '\0'});
}

static void put_claim(struct redis_command *words, const struct run *r) {
    char id[16];

    command_add(words, vclaim_id(r, id));
    put_who(words, r);
    command_add_u64(words, r->ticket);
    command_add(words, r->nowait ? "1" : "0");
    for (unsigned p = 0; p < POOLS_MAX; p++)
        if (r->permits[p] > 0) {
            put_pool(words, p);
            command_add_u64(words, r->permits[p]);
            command_add_u64(words, r->queue_limit);
        }
}

static void put_claims(struct redis_command *words, const struct world *w, const struct ask *ask) {
    char id[16];

    put_pool(words, first_pool(&w->runs[ask->runs[0]]));
    command_add_u64(words, w->runs[ask->runs[0]].queue_limit);
    for (unsigned i = 0; i < ask->n; i++) {
        command_add(words, vclaim_id(&w->runs[ask->runs[i]], id));
        put_who(words, &w->runs[ask->runs[i]]);
    }
}

void vask_say(struct world *w, struct host *h) {
    static const enum redis_script scripts[2][2] = {
        {REDIS_SCRIPT_CLAIM, REDIS_SCRIPT_CLAIMS},
        {REDIS_SCRIPT_RELEASE, REDIS_SCRIPT_RELEASES},
    };
    struct ask ask = h->open;
    struct redis_command words = {0};
    char id[16];

    if (ask.n == 0)
        return;
    h->open.n = 0;
    vhost_begin(h, &words);
    command_add(&words, h->epoch);
    for (unsigned i = 0; ask.release && i < ask.n; i++)
        command_add(&words, vclaim_id(&w->runs[ask.runs[i]], id));
    if (!ask.release && ask.n == 1)
        put_claim(&words, &w->runs[ask.runs[0]]);
    else if (!ask.release)
        put_claims(&words, w, &ask);
    for (unsigned i = 0; !ask.release && i < ask.n; i++)
        w->runs[ask.runs[i]].sent = true;
    world_send(w, h, scripts[ask.release][ask.n > 1], &words, HOST_LIVE, &ask);
}

/* --- collected --- */

static bool is_simple(const struct run *r) {
    unsigned sum = 0;

    for (unsigned p = 0; p < POOLS_MAX; p++)
        sum += r->permits[p];
    return r->ticket == 0 && !r->nowait && sum == 1;
}

static bool joins(const struct world *w, const struct ask *ask, const struct run *r, bool release) {
    const struct run *first = &w->runs[ask->runs[0]];

    if (ask->n == ASK_MAX || ask->release != release)
        return false;
    return release || (is_simple(r) && is_simple(first) && first_pool(r) == first_pool(first) && r->queue_limit == first->queue_limit);
}

static void add(struct world *w, struct run *r, bool release) {
    struct host *h = &w->hosts[r->host];

    if (h->open.n > 0 && !joins(w, &h->open, r, release))
        vask_say(w, h);
    h->open.release = release;
    h->open.runs[h->open.n++] = r->id;
    r->calls++;
}

void vask_claim(struct world *w, struct run *r) {
    add(w, r, false);
}

void vask_release(struct world *w, struct run *r) {
    add(w, r, true);
}

/* --- answers --- */

void vask_on_sent_answer(struct world *w, const struct ask *ask) {
    for (unsigned i = 0; i < ask->n; i++)
        if (w->runs[ask->runs[i]].calls > 0)
            w->runs[ask->runs[i]].calls--;
}

static void refuse(struct run *r) {
    if (r->state == RUN_ASKED)
        r->state = RUN_DONE;
}

void vask_refuse(struct world *w, const struct ask *ask) {
    for (unsigned i = 0; i < ask->n; i++)
        refuse(&w->runs[ask->runs[i]]);
}

static void hear_line(struct world *w, struct host *h, struct run *r, bool release, const redisReply *line) {
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
    vbeat_hear_drawn(w, h, token > ticket ? token : ticket);
    if (strcmp(reply_word(reply_at(line, 3)), "H") == 0) {
        vclaim_hear_number(h, reply_number(reply_at(line, 6)), token);
        vclaim_hear_held(w, h, r, ticket, token);
    } else {
        vclaim_hear_waiting(r, ticket);
    }
}

void vask_on_answer(struct world *w, struct host *h, const struct ask *ask, const redisReply *reply) {
    bool more = false;

    for (unsigned i = 0; i < ask->n; i++) {
        const redisReply *line = ask->n > 1 ? reply_at(reply, i) : reply;

        hear_line(w, h, &w->runs[ask->runs[i]], ask->release, line);
        more = more || reply_number(reply_at(line, 2)) > 0;
    }
    if (more)
        vbeat_say(w, h);
}
