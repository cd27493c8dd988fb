/* SPDX-License-Identifier: MIT */

/* hello: the session is opened or continued, limits are declared, and what hosts disagree about is told. */

#include <string.h>

#include "daemon/store-redis.h"

static void put_hello(struct store_redis *r, struct words *w) {
    usec_t now = clock_boottime();

    link_begin(r, w, REDIS_SCRIPT_HELLO);
    words_add(w, r->replaced);
    words_add(w, r->host);
    words_add(w, r->machine);
    words_add(w, r->version);
    words_add_u64(w, r->lease_usec);
    words_add_u64(w, beat_aged_clock(r, now));
    words_add(w, r->epoch);
    words_add_u64(w, beat_dead_count(r, now));
    words_add_u64(w, r->n_declared);
    for (size_t i = 0; i < r->n_declared; i++) {
        words_add(w, r->declared[i].pool.name);
        if (r->declared[i].pool.elsewhere)
            words_add(w, "host");
        else
            words_add_u64(w, r->declared[i].pool.limit);
    }
    for (size_t i = 0; i < r->n_overrides; i++) {
        const struct known_override *o = &r->overrides[i];

        words_add(w, o->pool);
        words_add_u64(w, o->version);
        words_add(w, o->limit);
        words_add(w, o->until);
        words_add(w, o->by);
        words_add(w, o->restore);
        words_add(w, o->reason);
    }
}

static void tell_one_differing(struct store_redis *r, struct declared *d, uint64_t lowest, uint64_t highest, uint64_t elsewhere) {
    const struct event e = {.type = EVENT_LIMITS_DIFFER, .pools = d->pool.name};

    if (lowest != highest && (lowest != d->lowest || highest != d->highest) && !d->pool.elsewhere)
        event_emit(r->events, &e, "hosts declare limits of %" PRIu64 " to %" PRIu64 " for pool %s, this one %" PRIu32
                                  ": the lowest is in force", lowest, highest, d->pool.name, d->pool.limit);
    if (elsewhere > 0 && elsewhere != d->elsewhere)
        event_emit(r->events, &e, "%" PRIu64 " hosts count pool %s each by itself (scope host), others share it (scope cluster); "
                                  "this one has scope %s", elsewhere, d->pool.name, d->pool.elsewhere ? "host" : "cluster");
    d->lowest = lowest;
    d->highest = highest;
    d->elsewhere = elsewhere;
}

static void tell_differing(struct store_redis *r, const struct redisReply *list) {
    for (size_t i = 0; i < r->n_declared; i++) {
        struct declared *d = &r->declared[i];
        uint64_t lowest = 0, highest = 0, elsewhere = 0;
        const struct redisReply *item;

        for (size_t k = 0; (item = reply_at(list, k)); k++)
            if (reply_is(reply_at(item, 0), d->pool.name) &&
                (reply_u64(reply_at(item, 1), &lowest) < 0 || reply_u64(reply_at(item, 2), &highest) < 0 ||
                 reply_u64(reply_at(item, 3), &elsewhere) < 0))
                lowest = highest = elsewhere = 0;
        tell_one_differing(r, d, lowest, highest, elsewhere);
    }
}

static void tell_changed(struct store_redis *r, const struct redisReply *list) {
    const struct redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        const char *pool = reply_text(reply_at(item, 0));
        uint64_t before, now;

        if (pool && reply_u64(reply_at(item, 1), &before) == 0 && reply_u64(reply_at(item, 2), &now) == 0)
            event_emit(r->events, &(struct event) {.type = EVENT_LIMIT_CHANGED, .pools = pool},
                       "the limit of pool %s is %" PRIu64 ", it was %" PRIu64, pool, now, before);
    }
}

/* Another one of this name lives, or one with another lease: said once, then asked again as often as a heartbeat would come. The
 * beat clock is watched meanwhile: if that one is dead, this host may say so (R4). */
static void meet_refusal(struct store_redis *r, const struct redisReply *reply, usec_t sent) {
    bool lease = reply_is(reply_at(reply, 0), "lease-differs");
    const char *epoch = reply_text(reply_at(reply, 1)), *word = lease ? "lease-differs" : "name-taken";
    uint64_t count, theirs;

    if (!epoch || reply_u64(reply_at(reply, 3), &count) < 0 || reply_u64(reply_at(reply, 4), &theirs) < 0) {
        link_bad_reply(r, "hello");
        return;
    }
    beat_hear_epoch(r, epoch);
    r->burial_usec = theirs > r->lease_usec ? theirs : r->lease_usec;
    beat_add_mark(r, count, sent);
    if (strcmp(r->refused, word) != 0) {
        (void) snprintf(r->refused, sizeof(r->refused), "%s", word);
        if (lease)
            event_emit(r->events, &(struct event) {.type = EVENT_LEASE_DIFFERS},
                       "the namespace lives by a lease of %" PRIu64 " ms, this host's config names %" PRIu64 " ms: all must name the same",
                       theirs / USEC_PER_MSEC, r->lease_usec / USEC_PER_MSEC);
        else
            event_emit(r->events, &(struct event) {.type = EVENT_HOST_NAME_TAKEN},
                       "another machine is in the namespace as host %s: give this one a name of its own", r->host);
    }
    link_retry(r, r->heartbeat_usec);
    link_away(r);
}

static void hello_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const char *epoch = reply_text(reply_at(reply, 1));
    uint64_t number, grace, count, known, clock;
    usec_t sent = r->beat_sent;

    if (r->phase != PHASE_HELLO)
        return;
    if (reply_is(reply_at(reply, 0), "stale") && reply_u64(reply_at(reply, 1), &number) == 0) {
        r->connection = number + 1; /* the file was older than the truth */
        session_save(r);
        hello_say(r);
        return;
    }
    if (reply_is(reply_at(reply, 0), "schema")) {
        link_down(r, REDIS_ERROR_FATAL, "the namespace was written by a newer berth: update this host");
        return;
    }
    if (reply_is(reply_at(reply, 0), "lease-differs") || reply_is(reply_at(reply, 0), "name-taken")) {
        meet_refusal(r, reply, sent);
        return;
    }
    if (!link_judge(r, reply, PHASE_HELLO))
        return;
    if (!epoch || strlen(epoch) >= sizeof(r->epoch) || reply_u64(reply_at(reply, 3), &grace) < 0 ||
        reply_u64(reply_at(reply, 4), &count) < 0 || reply_u64(reply_at(reply, 5), &known) < 0 ||
        reply_u64(reply_at(reply, 6), &clock) < 0 || beat_hear_overrides(r, reply_at(reply, 7)) < 0 ||
        beat_hear_ended(r, reply_at(reply, 10), reply_at(reply, 11)) < 0) {
        link_bad_reply(r, "hello");
        return;
    }
    r->refused[0] = '\0';
    r->burial_usec = r->lease_usec;
    beat_hear_epoch(r, epoch);
    beat_hear_clock(r, clock);
    beat_add_mark(r, count, sent);
    tell_differing(r, reply_at(reply, 8));
    tell_changed(r, reply_at(reply, 9));
    if (!known && !grace && session_was_lost(r)) { /* it was buried while berthd was away */
        session_lost(r, "berthd was away for longer than the lease");
        return;
    }
    r->from_file = false;
    r->replaced[0] = '\0';
    beat_hear_grace(r, grace > 0);
    r->phase = PHASE_SYNC;
    sync_start(r);
}

void hello_say(struct store_redis *r) {
    _cleanup_words_ struct words w = {0};

    put_hello(r, &w);
    r->declare_again = false;
    r->beat_sent = clock_boottime();
    if (link_call(r, &w, hello_on_reply, r) == -ENOMEM)
        link_retry(r, r->heartbeat_usec);
}

static void hello_on_declared(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const char *epoch = reply_text(reply_at(reply, 1));

    if (!link_judge(r, reply, PHASE_LIVE))
        return;
    if (!epoch || strcmp(epoch, r->epoch) != 0) {
        if (r->phase == PHASE_LIVE)
            link_resync(r);
        return;
    }
    (void) beat_hear_overrides(r, reply_at(reply, 7));
    (void) beat_hear_ended(r, reply_at(reply, 10), reply_at(reply, 11));
    tell_differing(r, reply_at(reply, 8));
    tell_changed(r, reply_at(reply, 9));
}

void hello_declare(struct store_redis *r) {
    _cleanup_words_ struct words w = {0};

    put_hello(r, &w);
    r->declare_again = false;
    if (link_call(r, &w, hello_on_declared, r) == -ENOMEM)
        r->declare_again = true;
}
