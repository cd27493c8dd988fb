/* SPDX-License-Identifier: MIT */

/* Claims, and what becomes of them. store-redis-ask.c asks Redis. */

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

#define FULL_PAUSE_MIN (100 * USEC_PER_MSEC)
#define FULL_TOLD_EVERY (60 * USEC_PER_SEC)

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

void claim_free(struct entry *e) {
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
        bool refused = e->refused && c->state != CLAIM_STATE_RELEASING;

        claim_free(e);
        c->state = CLAIM_STATE_NONE;
        if (refused)
            r->store.listener.on_refused(c, r->store.is_full ? STORE_REFUSAL_NO_MEMORY : STORE_REFUSAL_BUSY, c->demands[0].pool, r->store.listener.userdata);
        else
            r->store.listener.on_released(c, r->store.listener.userdata);
    }
    return 0;
}

/* --- what Redis says --- */

/* A grant that leaves too little time for its use is told when a heartbeat was answered. */
static bool leaves_time(const struct store_redis *r, const struct claim *c) {
    return r->store.deadline > 0 && usec_add(clock_boottime(), c->needs_usec) < r->store.deadline;
}

static void tell_granted(struct entry *e) {
    struct store_redis *r = e->redis;

    if (e->told)
        return;
    if (!leaves_time(r, e->claim)) {
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
    if (!e->told && !e->redis->beat_under_way) /* one for each grant, not for each answer */
        beat_send(e->redis);
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
    e->refused = true;
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

/* --- a full Redis --- */

void claim_hear_full(struct entry *e) {
    struct store_redis *r = e->redis;
    usec_t now = clock_boottime();

    if (e->claim->state != CLAIM_STATE_ASKED)
        return; /* withdrawn: the answer to its release says the rest */
    e->sent = false;
    if (!r->store.is_full)
        r->full_pause = FULL_PAUSE_MIN;
    r->store.is_full = true;
    (void) sd_event_source_set_time(r->full, usec_add(now, r->full_pause));
    (void) sd_event_source_set_enabled(r->full, SD_EVENT_ONESHOT);
    if (e->claim->nowait) {
        refuse_nowait(e);
    } else if (r->full_told == 0 || now >= usec_add(r->full_told, FULL_TOLD_EVERY)) {
        r->full_told = now;
        journal_log(redis_journal(r), LOG_WARNING, "the memory of Redis is full: claims that wait are asked again until it is not");
    }
}

void claim_hear_room(struct store_redis *r) {
    if (!r->store.is_full)
        return;
    r->store.is_full = false;
    claim_flush(r);
}

/* The first alone: whoever came after it is not to be asked before it. */
static int claim_on_full(sd_event_source *source, uint64_t usec, void *userdata) {
    struct store_redis *r = userdata;

    (void) source, (void) usec;
    if (r->phase != PHASE_LIVE || !r->beaten)
        return 0; /* asked when it is live */
    r->full_pause = r->full_pause * 2 < r->heartbeat_usec ? r->full_pause * 2 : r->heartbeat_usec;
    list_foreach(e, &r->entries, struct entry, link)
        if (e->claim->state == CLAIM_STATE_ASKED && !e->sent && e->calls == 0 && !list_is_linked(&e->finish)) {
            ask_claim(e);
            return 0;
        }
    r->store.is_full = false; /* nobody waits for it any more */
    return 0;
}

/* --- asking --- */

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
    if (r->store.is_full && c->nowait)
        refuse_nowait(e);
    else if (r->store.is_full)
        return 0; /* behind those that wait for memory */
    else if (r->phase == PHASE_LIVE && r->beaten)
        ask_claim(e);
    else if (c->nowait && (r->store.state == STORE_STATE_AWAY))
        refuse_nowait(e);
    return 0;
}

int redis_adopt(struct store *s, struct claim *c) {
    struct store_redis *r = store_redis_of(s);
    struct entry *e = entry_new(r, c, c->token > 0 ? CLAIM_STATE_HELD : CLAIM_STATE_ASKED);

    if (!e)
        return -ENOMEM;
    clock_hear_drawn(r, c->token); /* its run may be over before Redis can be told, which may have forgotten the token (R7) */
    e->sent = true;
    e->told = c->token > 0;
    return 0;
}

/* --- giving back --- */

void redis_release(struct store *s, struct claim *c) {
    struct store_redis *r = store_redis_of(s);
    struct entry *e = c->store_data;

    if (!e || c->state == CLAIM_STATE_RELEASING)
        return;
    c->state = CLAIM_STATE_RELEASING;
    if (list_is_linked(&e->finish))
        return;
    if (e->lost || (!e->sent && e->calls == 0)) {
        claim_finish(e);
        session_lost_stopped(r);
    } else if (r->phase == PHASE_LIVE && r->beaten)
        ask_release(e);
}

void claim_flush(struct store_redis *r) {
    list_foreach_safe(e, &r->entries, struct entry, link) {
        if (list_is_linked(&e->finish) || e->calls > 0)
            continue;
        if (e->claim->state == CLAIM_STATE_RELEASING)
            ask_release(e);
        else if (e->claim->state == CLAIM_STATE_ASKED && !e->sent)
            ask_claim(e);
    }
}

void claim_reset(struct store_redis *r) {
    ask_reset(r);
    r->store.is_full = false; /* asked again when it is live */
    r->look_under_way = false;
    list_foreach(e, &r->entries, struct entry, link) e->calls = 0;
}

/* --- made and freed --- */

int claim_init(struct store_redis *r) {
    int k;

    list_init(&r->entries);
    list_init(&r->finished);
    list_init(&r->batches);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&r->buckets[i]);
    k = sd_event_add_defer(r->event, &r->finish, claim_on_finish, r);
    if (k >= 0)
        k = sd_event_source_set_enabled(r->finish, SD_EVENT_OFF);
    if (k >= 0)
        k = sd_event_add_time(r->event, &r->full, CLOCK_BOOTTIME, 0, 1000, claim_on_full, r);
    return k < 0 ? k : sd_event_source_set_enabled(r->full, SD_EVENT_OFF);
}

void claim_done(struct store_redis *r) {
    list_foreach_safe(e, &r->entries, struct entry, link) claim_free(e);
    sd_event_source_disable_unref(r->finish);
    sd_event_source_disable_unref(r->full);
}
