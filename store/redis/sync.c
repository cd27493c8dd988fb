/* SPDX-License-Identifier: MIT */

/* The whole truth of this session, told in parts (R11): held claims first, then waiting ones by ticket. What was asked for and
 * never answered is named, too, so that its place is not lost. Other calls wait until Redis has all of it. */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

static void sync_send(struct store_redis *r);

void sync_reset(struct store_redis *r) {
    free(r->sync);
    r->sync = NULL;
    r->n_sync = r->sync_at = 0;
    r->sync_begun = r->sync_heard = false;
}

static bool is_held(const struct entry *e) {
    return e->claim->state == CLAIM_STATE_HELD && !e->lost;
}

static int compare(const void *a, const void *b) {
    const struct entry *x = *(struct entry *const *) a, *y = *(struct entry *const *) b;

    if (is_held(x) != is_held(y))
        return is_held(x) ? -1 : 1;
    if (x->claim->ticket != y->claim->ticket)
        return x->claim->ticket < y->claim->ticket ? -1 : 1;
    return 0;
}

static bool is_told_in_sync(const struct entry *e) {
    return e->sent && !e->lost && !list_is_linked(&e->finish) && e->claim->state != CLAIM_STATE_RELEASING;
}

void sync_start(struct store_redis *r) {
    size_t n = 0;

    sync_reset(r);
    claim_doubt_untold(r);
    list_foreach(e, &r->entries, struct entry, link) {
        claim_set_named(e, false);
        n++;
    }
    r->sync = calloc(n + 1, sizeof(struct entry *));
    if (!r->sync) {
        link_down(r, REDIS_ERROR_RETRY, strerror(ENOMEM));
        return;
    }
    list_foreach(e, &r->entries, struct entry, link)
        if (is_told_in_sync(e))
            r->sync[r->n_sync++] = e;
    qsort(r->sync, r->n_sync, sizeof(struct entry *), compare);
    sync_send(r);
}

static void put_entry(struct redis_command *w, const struct entry *e) {
    const struct claim *c = e->claim;
    const char *kind = is_held(e) ? e->renew ? "K" : "H" : c->ticket > 0 ? "W" : "A";
    struct demands demands = {.n = c->n_demands};
    char text[DEMANDS_TEXT_SIZE];

    memcpy(demands.items, c->demands, c->n_demands * sizeof(*c->demands));
    command_add(w, c->id);
    command_add(w, kind);
    command_add_u64(w, is_held(e) ? c->token : 0);
    command_add_u64(w, c->ticket);
    command_add_u64(w, c->head_start_usec);
    command_add_u64(w, c->since_realtime);
    command_add_u64(w, c->pid);
    command_add(w, c->run);
    command_add(w, c->name);
    command_add(w, demands_format(&demands, text));
}

static int hear_claim(struct store_redis *r, const struct redisReply *item) {
    const char *id = reply_text(reply_at(item, 0)), *state = reply_text(reply_at(item, 1));
    const char *reason = reply_text(reply_at(item, 6));
    struct entry *e = id ? claim_find(r, id) : NULL;
    uint64_t ticket, token, since;
    uint32_t position;

    if (!id || !state || !reason || reply_u64(reply_at(item, 2), &ticket) < 0 || reply_u64(reply_at(item, 3), &token) < 0 ||
        reply_u32(reply_at(item, 4), &position) < 0 || reply_u64(reply_at(item, 5), &since) < 0)
        return -EBADMSG;
    if (!e)
        return 0; /* withdrawn meanwhile */
    if (strcmp(state, "-") == 0) {
        e->sent = false; /* it never arrived: ask again */
        if (e->claim->state == CLAIM_STATE_RELEASING)
            claim_finish(e);
        return 0;
    }
    claim_set_named(e, true);
    if (strcmp(state, "H") == 0)
        claim_hear_held(e, ticket, token, since);
    else
        claim_hear_waiting(e, strcmp(state, "P") == 0, ticket, position, since);
    if (*reason)
        claim_hear_revoked(e);
    return 0;
}

static int hear_overcommitted(struct store_redis *r, const struct redisReply *list) {
    const struct redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        const char *pool = reply_text(reply_at(item, 0));
        uint64_t used, limit;

        if (!pool || reply_u64(reply_at(item, 1), &used) < 0 || reply_u64(reply_at(item, 2), &limit) < 0)
            return -EBADMSG;
        event_emit(r->events, &(struct event) {.type = EVENT_OVERCOMMITTED, .pools = pool},
                   "%" PRIu64 " permits of pool %s are in use, its limit is %" PRIu64
                   ": what runs was restored, nothing is granted until use is below the limit", used, pool, limit);
    }
    return 0;
}

static void tell_connected(struct store_redis *r) {
    _cleanup_free_ char *limits = hello_format_limits(r);

    event_emit(r->events, &(struct event) {.type = EVENT_REDIS_CONNECTED, .limits = limits, .clock = r->cut},
               "Redis answers and knows what this host holds");
    r->connected_told = true;
}

static void sync_finish(struct store_redis *r) {
    sync_reset(r);
    r->phase = PHASE_LIVE;
    r->live_since = clock_boottime();
    r->lost_told = false;
    r->last_error[0] = '\0';
    if (!r->connected_told)
        tell_connected(r);
    /* What was given back meanwhile and was not named is gone. */
    list_foreach(e, &r->entries, struct entry, link)
        if (e->claim->state == CLAIM_STATE_RELEASING && !e->named && !list_is_linked(&e->finish))
            claim_finish(e);
    beat_start(r);
    if (r->declare_again)
        hello_declare(r);
}

static void sync_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const struct redisReply *claims = reply_at(reply, 6);
    uint64_t more, grace, last, clock;
    size_t n;

    if (r->phase != PHASE_SYNC || !link_judge(r, reply, PHASE_SYNC))
        return;
    if (reply_u64(reply_at(reply, 2), &more) < 0 || reply_u64(reply_at(reply, 3), &grace) < 0 ||
        reply_u64(reply_at(reply, 4), &last) < 0 || reply_u64(reply_at(reply, 5), &clock) < 0 || reply_count(claims, &n) < 0) {
        link_bad_reply(r, "sync");
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (hear_claim(r, reply_at(claims, i)) < 0) {
            link_bad_reply(r, "sync");
            return;
        }
    if (hear_overcommitted(r, reply_at(reply, 7)) < 0) {
        link_bad_reply(r, "sync");
        return;
    }
    clock_hear_drawn(r, clock);
    if (!r->sync_heard) { /* what is granted between two parts may be missing in the first: its push must be awaited */
        r->sync_heard = true;
        r->sync_chain = last;
    }
    if (r->phase != PHASE_SYNC)
        return;
    if (r->sync_at == r->n_sync && more > 0 && !beat_may_go_on(r)) {
        link_down(r, REDIS_ERROR_RETRY, "Redis wants a sync to go on without end");
        return;
    }
    if (r->sync_at < r->n_sync || more > 0) {
        sync_send(r);
        return;
    }
    push_hear_number(r, r->chain, r->sync_chain);
    sync_finish(r);
}

static void sync_send(struct store_redis *r) {
    _cleanup_command_ struct redis_command w = {0};
    usec_t now = clock_boottime();
    bool last = r->n_sync - r->sync_at <= SYNC_PART;

    link_begin(r, &w, REDIS_SCRIPT_SYNC);
    command_add(&w, r->epoch);
    command_add_u64(&w, clock_latest(r, now));
    command_add(&w, !r->sync_begun ? "1" : "0");
    command_add(&w, last ? "1" : "0");
    for (size_t i = 0; i < SYNC_PART && r->sync_at < r->n_sync; i++) {
        const struct entry *e = r->sync[r->sync_at++];

        if (is_told_in_sync(e))
            put_entry(&w, e);
    }
    r->sync_begun = true;
    if (link_call(r, &w, sync_on_reply, r) == -ENOMEM)
        link_down(r, REDIS_ERROR_RETRY, strerror(ENOMEM));
}
