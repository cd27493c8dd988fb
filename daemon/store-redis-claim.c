/* SPDX-License-Identifier: MIT */

/* Claims: asked for, granted, given back. */

#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "daemon/store-redis.h"

static struct list *bucket_of(struct store_redis *r, const char *id) {
    unsigned value = 0;

    for (size_t i = 0; i < 5 && id[i]; i++) /* random digits: as good as a hash */
        value = value * 16 + (unsigned) (id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
    return &r->buckets[value % BUCKETS];
}

struct entry *claim_find(struct store_redis *r, const char *id) {
    list_foreach(e, bucket_of(r, id), struct entry, bucket)
        if (strcmp(e->claim->id, id) == 0)
            return e;
    return NULL;
}

void claim_set_named(struct entry *e, bool named) {
    e->redis->n_named += (size_t) named - (size_t) e->named;
    e->named = named;
}

static void entry_free(struct entry *e) {
    claim_set_named(e, false);
    look_forget(e);
    list_unlink(&e->link);
    list_unlink(&e->bucket);
    list_unlink(&e->finish);
    e->claim->store_data = NULL;
    free(e);
}

static struct entry *entry_new(struct store_redis *r, struct claim *c, enum claim_state state) {
    struct entry *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->redis = r;
    e->claim = c;
    list_append(&r->entries, &e->link);
    list_append(bucket_of(r, c->id), &e->bucket);
    list_init(&e->finish);
    c->store_data = e;
    c->state = state;
    return e;
}

/* --- the end of a claim --- */

void claim_finish(struct entry *e) {
    if (list_is_linked(&e->finish))
        return;
    claim_set_named(e, false);
    list_append(&e->redis->finished, &e->finish);
    (void) sd_event_source_set_enabled(e->redis->finish, SD_EVENT_ONESHOT);
}

static int claim_on_finish(sd_event_source *source, void *userdata) {
    struct store_redis *r = userdata;
    struct list due = LIST_INIT(due);
    struct entry *e;

    (void) source;
    if (r->stopping)
        return 0;
    while ((e = list_first(&r->finished, struct entry, finish))) { /* what is added by a listener waits for the next turn */
        list_unlink(&e->finish);
        list_append(&due, &e->finish);
    }
    while ((e = list_first(&due, struct entry, finish))) {
        struct claim *c = e->claim;
        bool refused = e->busy && c->state != CLAIM_STATE_RELEASING;

        entry_free(e);
        c->state = CLAIM_STATE_NONE;
        if (refused)
            r->store.listener.on_refused(c, STORE_REFUSAL_BUSY, c->demands[0].pool, r->store.listener.userdata);
        else
            r->store.listener.on_released(c, r->store.listener.userdata);
    }
    return 0;
}

/* --- what Redis says --- */

static void tell_granted(struct entry *e) {
    struct store_redis *r = e->redis;

    if (e->told)
        return;
    if (r->store.deadline == 0 || clock_boottime() >= r->store.deadline) {
        r->untold = true;
        return;
    }
    e->told = true;
    r->store.listener.on_granted(e->claim, r->store.listener.userdata);
}

void claim_hear_held(struct entry *e, uint64_t ticket, uint64_t token, usec_t queued) {
    struct claim *c = e->claim;

    if (c->state == CLAIM_STATE_RELEASING || e->lost)
        return;
    if (c->since_realtime == 0)
        c->since_realtime = queued;
    c->token = token;
    if (ticket > 0)
        c->ticket = ticket;
    if (c->state == CLAIM_STATE_HELD) {
        if (e->renew)
            e->redis->store.listener.on_granted(c, e->redis->store.listener.userdata);
        e->renew = false;
        return;
    }
    e->renew = false;
    c->state = CLAIM_STATE_HELD;
    c->position = 0;
    tell_granted(e);
}

void claim_tell_granted(struct store_redis *r) {
    if (!r->untold)
        return;
    r->untold = false;
    list_foreach_safe(e, &r->entries, struct entry, link)
        if (e->claim->state == CLAIM_STATE_HELD && !e->told && !e->lost && !list_is_linked(&e->finish))
            tell_granted(e);
}

static void refuse_nowait(struct entry *e) {
    e->busy = true;
    claim_finish(e);
}

/* Nothing was started with it, and it may be somebody else's by now: Redis says whether it still is held. */
void claim_doubt_untold(struct store_redis *r) {
    list_foreach_safe(e, &r->entries, struct entry, link) {
        if (e->claim->state != CLAIM_STATE_HELD || e->told || e->lost || list_is_linked(&e->finish))
            continue;
        if (e->claim->nowait) {
            refuse_nowait(e);
            continue;
        }
        e->claim->state = CLAIM_STATE_WAITING;
        e->claim->token = 0;
    }
}

void claim_hear_waiting(struct entry *e, bool parked, uint64_t ticket, uint32_t position, usec_t since) {
    struct claim *c = e->claim;
    enum claim_state state = parked ? CLAIM_STATE_PARKED : CLAIM_STATE_WAITING;

    if (c->state != CLAIM_STATE_ASKED && c->state != CLAIM_STATE_WAITING && c->state != CLAIM_STATE_PARKED)
        return; /* its grant was pushed meanwhile, or it is on its way back */
    if (position > 0)
        c->position = position;
    if (since > 0)
        c->since_realtime = since;
    if (c->state == state && c->ticket == ticket)
        return; /* nothing new */
    c->state = state;
    c->ticket = ticket;
    e->redis->store.listener.on_waiting(c, e->redis->store.listener.userdata);
}

void claim_hear_revoked(struct entry *e) {
    if (e->revoked || e->lost || e->claim->state == CLAIM_STATE_RELEASING)
        return;
    e->revoked = true;
    e->redis->store.listener.on_lost(e->claim, STORE_LOSS_REVOKED, e->redis->store.listener.userdata);
}

/* --- asking --- */

static void claim_refuse(struct entry *e, enum store_refusal refusal, const char *pool) {
    struct store_redis *r = e->redis;
    struct claim *c = e->claim;

    if (c->state != CLAIM_STATE_ASKED)
        return; /* withdrawn: the answer to its release says the rest */
    entry_free(e);
    c->state = CLAIM_STATE_NONE;
    r->store.listener.on_refused(c, refusal, pool, r->store.listener.userdata);
}

static void claim_hear_answer(struct entry *e, const struct reply_line *line) {
    const char *state = line_word(line, 3);
    uint64_t ticket, token, last, since, position;

    if (line_u64(line, 4, &ticket) < 0 || line_u64(line, 5, &token) < 0 || line_u64(line, 6, &last) < 0 ||
        line_u64(line, 7, &position) < 0 || position > UINT32_MAX || line_u64(line, 8, &since) < 0) {
        link_bad_reply(e->redis, "claim");
        return;
    }
    claim_set_named(e, true);
    beat_hear_clock(e->redis, token > ticket ? token : ticket);
    if (strcmp(state, "H") == 0) {
        push_hear_number(e->redis, last, token);
        claim_hear_held(e, ticket, token, since);
    } else {
        claim_hear_waiting(e, strcmp(state, "P") == 0, ticket, (uint32_t) position, since);
    }
}

static void claim_on_answer(const struct redisReply *reply, void *userdata) {
    struct entry *e = userdata;
    struct store_redis *r = e->redis;
    const char *error = reply_error(reply);
    struct reply_line line;
    uint64_t more;

    e->calls--;
    FAILPOINT("claim-answered");
    if (error && redis_error_class(error) == REDIS_ERROR_FULL) {
        claim_refuse(e, STORE_REFUSAL_NO_MEMORY, e->claim->demands[0].pool);
        return;
    }
    if (!link_judge(r, reply, PHASE_LIVE))
        return;
    if (reply_line(reply, &line) < 0 || line_u64(&line, 2, &more) < 0) {
        link_bad_reply(r, "claim");
        return;
    }
    if (strcmp(line_word(&line, 0), "refused") == 0)
        claim_refuse(e, strcmp(line_word(&line, 3), "busy") == 0 ? STORE_REFUSAL_BUSY : STORE_REFUSAL_QUEUE_FULL, line_word(&line, 4));
    else
        claim_hear_answer(e, &line);
    if (more > 0)
        beat_send(r);
}

static uint32_t queue_limit(const struct store_redis *r, const char *pool) {
    for (size_t i = 0; i < r->n_declared; i++)
        if (strcmp(r->declared[i].pool.name, pool) == 0)
            return r->declared[i].pool.queue_limit;
    return 0;
}

static void claim_send(struct entry *e) {
    struct store_redis *r = e->redis;
    const struct claim *c = e->claim;
    _cleanup_words_ struct words w = {0};
    char who[48 + ID_TEXT_SIZE + NAME_MAX_LENGTH]; /* two numbers, the run, and its name */

    FAILPOINT("claim-sending");
    link_begin(r, &w, REDIS_SCRIPT_CLAIM);
    words_add(&w, r->epoch);
    words_add(&w, c->id);
    (void) snprintf(who, sizeof(who), "%" PRIu64 " %" PRIu64 " %s %s", c->head_start_usec, (uint64_t) c->pid, c->run, c->name);
    words_add(&w, who);
    words_add_u64(&w, c->ticket);
    words_add(&w, c->nowait ? "1" : "0");
    for (size_t i = 0; i < c->n_demands; i++) {
        words_add(&w, c->demands[i].pool);
        words_add_u64(&w, c->demands[i].permits);
        words_add_u64(&w, queue_limit(r, c->demands[i].pool));
    }
    if (link_call(r, &w, claim_on_answer, e) < 0)
        return; /* stays asked: it goes out when we are live again */
    e->calls++;
    FAILPOINT("claim-sent");
    e->sent = true;
}

void claim_refuse_nowait(struct store_redis *r) {
    list_foreach(e, &r->entries, struct entry, link)
        if (e->claim->nowait && e->claim->state == CLAIM_STATE_ASKED)
            refuse_nowait(e);
}

int redis_claim(struct store *s, struct claim *c) {
    struct store_redis *r = store_redis_of(s);
    struct entry *e = entry_new(r, c, CLAIM_STATE_ASKED);

    if (!e)
        return -ENOMEM;
    c->token = 0;
    if (r->phase == PHASE_LIVE && r->beaten)
        claim_send(e);
    else if (c->nowait && (r->store.state == STORE_STATE_AWAY))
        refuse_nowait(e);
    return 0;
}

int redis_adopt(struct store *s, struct claim *c) {
    struct store_redis *r = store_redis_of(s);
    struct entry *e = entry_new(r, c, c->token > 0 ? CLAIM_STATE_HELD : CLAIM_STATE_ASKED);

    if (!e)
        return -ENOMEM;
    beat_hear_clock(r, c->token); /* its run may be over before Redis can be told, which may have forgotten the token (R7) */
    e->sent = true;
    e->told = c->token > 0;
    return 0;
}

/* --- giving back --- */

/* Up to which number of the clock it was held, and under which token: also one of a grant that was not heard of before it was withdrawn.
 * False: this is no answer to a release of this claim. */
static bool hear_release(struct claim *c, const struct reply_line *line) {
    uint64_t clock, token;

    if (line_u64(line, 3, &clock) < 0)
        return true; /* Redis did not have it any more */
    if (line_u64(line, 4, &token) < 0 || clock < token || (token > 0 && c->token > 0 && token != c->token))
        return false;
    c->released = clock;
    if (token > 0)
        c->token = token;
    return true;
}

static void claim_on_released(const struct redisReply *reply, void *userdata) {
    struct entry *e = userdata;
    struct store_redis *r = e->redis;
    struct reply_line line;
    uint64_t more;

    e->calls--;
    if (!link_judge(r, reply, PHASE_LIVE))
        return;
    FAILPOINT("release-answered");
    if (reply_line(reply, &line) < 0 || line_u64(&line, 2, &more) < 0 || !hear_release(e->claim, &line)) {
        link_bad_reply(r, "release");
        return;
    }
    claim_finish(e);
    if (more > 0)
        beat_send(r);
}

static void release_send(struct entry *e) {
    struct store_redis *r = e->redis;
    _cleanup_words_ struct words w = {0};

    FAILPOINT("release-sending");
    link_begin(r, &w, REDIS_SCRIPT_RELEASE);
    words_add(&w, r->epoch);
    words_add(&w, e->claim->id);
    if (link_call(r, &w, claim_on_released, e) == 0)
        e->calls++;
}

void redis_release(struct store *s, struct claim *c) {
    struct store_redis *r = store_redis_of(s);
    struct entry *e = c->store_data;

    if (!e || c->state == CLAIM_STATE_RELEASING)
        return;
    c->state = CLAIM_STATE_RELEASING;
    if (list_is_linked(&e->finish))
        return;
    if (e->lost || !e->sent) {
        claim_finish(e);
        session_lost_stopped(r);
    } else if (r->phase == PHASE_LIVE && r->beaten)
        release_send(e);
}

void claim_flush(struct store_redis *r) {
    list_foreach_safe(e, &r->entries, struct entry, link) {
        if (list_is_linked(&e->finish) || e->calls > 0)
            continue;
        if (e->claim->state == CLAIM_STATE_RELEASING)
            release_send(e);
        else if (e->claim->state == CLAIM_STATE_ASKED && !e->sent)
            claim_send(e);
    }
}

void claim_reset(struct store_redis *r) {
    r->look_under_way = false;
    list_foreach(e, &r->entries, struct entry, link) e->calls = 0;
}

/* --- made and freed --- */

int claim_init(struct store_redis *r) {
    int k;

    list_init(&r->entries);
    list_init(&r->finished);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&r->buckets[i]);
    k = sd_event_add_defer(r->event, &r->finish, claim_on_finish, r);
    return k < 0 ? k : sd_event_source_set_enabled(r->finish, SD_EVENT_OFF);
}

void claim_done(struct store_redis *r) {
    list_foreach_safe(e, &r->entries, struct entry, link) entry_free(e);
    sd_event_source_disable_unref(r->finish);
}
