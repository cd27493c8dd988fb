/* SPDX-License-Identifier: MIT */

/* What is asked of Redis for claims, and its answers. What one turn of the event loop asks for alike goes out as one call: claims of one
 * permit of the same pool, or releases. A batch is open until something else is said, or the turn ends, so all is said in order. */

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/failpoint.h"
#include "store/redis/store-redis.h"

#define BATCH_MAX 32 /* as many as may wait for a script behind the first; more save little */

struct batch {               /* one call for claims, or for releases */
    struct store_redis *redis;
    struct list link;        /* on redis->batches; the open one is the last */
    bool release;
    size_t n;
    struct entry *entries[BATCH_MAX]; /* they stay until they are answered, or the connection is down */
};

static struct batch *batch_free(struct batch *b) {
    if (b)
        list_unlink(&b->link);
    free(b);
    return NULL;
}
DEFINE_CLEANUP(struct batch, batch_free)

/* --- answers --- */

/* The line for one entry of an answer. Only the answer to several is a list of them. */
static int batch_line(const struct batch *b, const struct redisReply *reply, size_t i, struct reply_line *line, uint64_t *more) {
    size_t n;

    if (b->n > 1 && (reply_count(reply, &n) < 0 || n != b->n))
        return -EBADMSG;
    if (reply_line_read(b->n > 1 ? reply_at(reply, i) : reply, line) < 0)
        return -EBADMSG;
    return reply_line_u64(line, 2, more);
}

static void claim_refuse(struct entry *e, enum store_refusal refusal, const char *pool) {
    struct store_redis *r = e->redis;
    struct claim *c = e->claim;

    if (c->state != CLAIM_STATE_ASKED)
        return; /* withdrawn: the answer to its release says the rest */
    claim_free(e);
    c->state = CLAIM_STATE_NONE;
    r->store.listener.on_refused(c, refusal, pool, r->store.listener.userdata);
}

static int hear_placed(struct entry *e, const struct reply_line *line) {
    const char *state = reply_line_field(line, 3);
    uint64_t ticket, token, last, since, position;

    if (reply_line_u64(line, 4, &ticket) < 0 || reply_line_u64(line, 5, &token) < 0 || reply_line_u64(line, 6, &last) < 0 ||
        reply_line_u64(line, 7, &position) < 0 || position > UINT32_MAX || reply_line_u64(line, 8, &since) < 0)
        return -EBADMSG;
    claim_set_named(e, true);
    clock_hear_drawn(e->redis, token > ticket ? token : ticket);
    if (strcmp(state, "H") == 0) {
        push_hear_number(e->redis, last, token);
        claim_hear_held(e, ticket, token, since);
    } else {
        claim_hear_waiting(e, strcmp(state, "P") == 0, ticket, (uint32_t) position, since);
    }
    return 0;
}

static int hear_claim(struct entry *e, const struct reply_line *line) {
    if (strcmp(reply_line_field(line, 0), "refused") != 0)
        return hear_placed(e, line);
    claim_refuse(e, strcmp(reply_line_field(line, 3), "busy") == 0 ? STORE_REFUSAL_BUSY : STORE_REFUSAL_QUEUE_FULL, reply_line_field(line, 4));
    return 0;
}

/* Up to which number of the clock it was held, and under which token: also one of a grant that was not heard of before it was
 * withdrawn. */
static int hear_release(struct entry *e, const struct reply_line *line) {
    struct claim *c = e->claim;
    uint64_t clock, token;

    if (reply_line_u64(line, 3, &clock) == 0) { /* else Redis did not have it any more */
        if (reply_line_u64(line, 4, &token) < 0 || clock < token || (token > 0 && c->token > 0 && token != c->token))
            return -EBADMSG;
        c->released = clock;
        if (token > 0)
            c->token = token;
    }
    claim_finish(e);
    return 0;
}

static void ask_on_answer(const struct redisReply *reply, void *userdata) {
    _cleanup_(batch_freep) struct batch *b = userdata;
    struct store_redis *r = b->redis;
    const char *error = reply_error(reply);
    bool any_more = false;

    list_unlink(&b->link); /* ours alone: a listener may have the others forgotten */
    for (size_t i = 0; i < b->n; i++)
        b->entries[i]->calls--;
    FAILPOINT(b->release ? "release-answered" : "claim-answered");
    if (!b->release && error && redis_error_class(error) == REDIS_ERROR_FULL) {
        for (size_t i = 0; i < b->n; i++)
            claim_hear_full(b->entries[i]);
        return;
    }
    if (!link_judge(r, reply, PHASE_LIVE))
        return;
    if (!b->release)
        claim_hear_room(r);
    for (size_t i = 0; i < b->n; i++) {
        struct reply_line line;
        uint64_t more;
        int k = batch_line(b, reply, i, &line, &more);

        if (k >= 0)
            k = b->release ? hear_release(b->entries[i], &line) : hear_claim(b->entries[i], &line);
        if (k < 0) {
            link_bad_reply(r, b->release ? "release" : "claim");
            return;
        }
        any_more = any_more || more > 0;
    }
    if (any_more)
        beat_send_untimely(r);
}

/* --- calls --- */

static uint32_t queue_limit(const struct store_redis *r, const char *pool) {
    for (size_t i = 0; i < r->n_declared; i++)
        if (strcmp(r->declared[i].pool.name, pool) == 0)
            return r->declared[i].pool.queue_limit;
    return 0;
}

/* A claim by itself, of whatever it wants. */
static void put_claim(struct redis_command *w, const struct entry *e, const char *who) {
    const struct claim *c = e->claim;

    command_add(w, c->id);
    command_add(w, who);
    command_add_u64(w, c->ticket);
    command_add(w, c->nowait ? "1" : "0");
    for (size_t i = 0; i < c->n_demands; i++) {
        command_add(w, c->demands[i].pool);
        command_add_u64(w, c->demands[i].permits);
        command_add_u64(w, queue_limit(e->redis, c->demands[i].pool));
    }
}

static void put_claims(struct redis_command *w, const struct batch *b) {
    const char *pool = b->entries[0]->claim->demands[0].pool;

    if (b->n > 1) {
        command_add(w, pool);
        command_add_u64(w, queue_limit(b->redis, pool));
    }
    for (size_t i = 0; i < b->n; i++) {
        const struct claim *c = b->entries[i]->claim;
        char who[48 + ID_TEXT_SIZE + NAME_MAX_LENGTH]; /* two numbers, the run, and its name */

        (void) snprintf(who, sizeof(who), "%" PRIu64 " %" PRIu64 " %s %s", c->head_start_usec, (uint64_t) c->pid, c->run, c->name);
        if (b->n == 1) {
            put_claim(w, b->entries[i], who);
        } else {
            command_add(w, c->id);
            command_add(w, who);
        }
    }
}

static int batch_send(struct batch *b) {
    static const enum redis_script scripts[2][2] = {{REDIS_SCRIPT_CLAIM, REDIS_SCRIPT_CLAIMS}, {REDIS_SCRIPT_RELEASE, REDIS_SCRIPT_RELEASES}};
    _cleanup_command_ struct redis_command w = {0};

    link_begin(b->redis, &w, scripts[b->release][b->n > 1]);
    command_add(&w, b->redis->epoch);
    for (size_t i = 0; b->release && i < b->n; i++)
        command_add(&w, b->entries[i]->claim->id);
    if (!b->release)
        put_claims(&w, b);
    return link_call(b->redis, &w, ask_on_answer, b);
}

void ask_say(struct store_redis *r) {
    struct batch *b = r->open;

    if (!b)
        return;
    r->open = NULL;
    FAILPOINT(b->release ? "release-sending" : "claim-sending");
    if (batch_send(b) < 0) { /* claims stay asked: they go out when we are live again */
        for (size_t i = 0; i < b->n; i++)
            b->entries[i]->calls--;
        batch_free(b);
        return;
    }
    if (b->release)
        return;
    FAILPOINT("claim-sent");
    for (size_t i = 0; i < b->n; i++)
        b->entries[i]->sent = true;
}

/* --- batches --- */

/* What can be asked for together with others like it. */
static bool is_simple(const struct claim *c) {
    return c->ticket == 0 && !c->nowait && c->n_demands == 1 && c->demands[0].permits == 1;
}

static bool joins(const struct batch *b, const struct claim *c, bool release) {
    const struct claim *first = b->entries[0]->claim;

    if (b->n == BATCH_MAX || b->release != release)
        return false;
    return release || (is_simple(c) && is_simple(first) && strcmp(c->demands[0].pool, first->demands[0].pool) == 0);
}

static void batch_add(struct entry *e, bool release) {
    struct store_redis *r = e->redis;

    if (r->open && !joins(r->open, e->claim, release))
        ask_say(r);
    if (!r->open) {
        r->open = calloc(1, sizeof(*r->open));
        if (!r->open) {
            link_no_memory(r);
            return;
        }
        r->open->redis = r;
        r->open->release = release;
        list_append(&r->batches, &r->open->link);
        redis_connection_flush(r->commands);
    }
    r->open->entries[r->open->n++] = e;
    e->calls++;
}

void ask_claim(struct entry *e) {
    batch_add(e, false);
}

void ask_release(struct entry *e) {
    batch_add(e, true);
}

void ask_reset(struct store_redis *r) {
    list_foreach_safe(b, &r->batches, struct batch, link) batch_free(b);
    r->open = NULL;
}
