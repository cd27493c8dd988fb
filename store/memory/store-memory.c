/* SPDX-License-Identifier: MIT */

/* The store of scope host: the pools of daemon/pool, driven by the event loop. A call takes effect in the pools at once; what the
 * listener is to hear of it lies in the outbox until the loop turns, and a claim's public part is written only then, so that it
 * always says what its owner was told. No lease: what is held is held until it is released. */

#include <string.h>
#include <syslog.h>
#include <stdio.h>

#include "store/memory/pool-snapshot.h"
#include "store/memory/pool.h"
#include "store/store.h"

#define DELIVERIES_MAX 128            /* in one turn of the loop (R15) */
#define TIMER_ACCURACY_USEC USEC_PER_MSEC

/* What the store knows of a claim: claim->store_data. */
struct place {
    struct list all;          /* on memory->places */
    struct list link;         /* on memory->outbox, if there is something to tell */
    struct claim *claim;
    struct pool_claim *in_pools;
    bool is_released, is_refused, is_revoked;
    bool revoke_told;
    enum store_refusal refusal;
    char pool[NAME_MAX_LENGTH + 1]; /* of the refusal */
};

struct reply {
    struct list link; /* on memory->replies */
    store_reply_fn fn;
    store_inspect_fn inspect_fn; /* one of the two */
    void *userdata;
    int r;
};

struct memory {
    struct store store;
    sd_event *event;
    struct events *events;
    char host[NAME_MAX_LENGTH + 1];
    struct pools pools;
    struct list places;         /* struct place; of every claim that is known */
    struct list outbox;         /* struct place; in the order in which it became true */
    struct list replies;        /* struct reply */
    struct reply stop_reply;
    bool is_started, is_stopped;
    bool state_untold;
    sd_event_source *deliver;   /* defer; on while there is anything to tell */
    sd_event_source *timer;     /* end of the next override that has one */
};

static struct memory *memory_of(struct store *s) {
    return (struct memory *) s; /* embedded first */
}

/* --- telling --- */

/* The loop calls memory_on_deliver() when it turns. Cannot fail: the source was made with the store. */
static void memory_wake(struct memory *m) {
    (void) sd_event_source_set_enabled(m->deliver, SD_EVENT_ONESHOT);
}

static void memory_tell(struct memory *m, struct place *place) {
    if (!list_is_linked(&place->link))
        list_append(&m->outbox, &place->link);
    memory_wake(m);
}

/* What the pools changed by themselves: claims that were granted, parked or brought back. */
static void memory_collect(struct memory *m) {
    list_foreach_safe(c, &m->pools.news, struct pool_claim, news) {
        list_unlink(&c->news);
        memory_tell(m, c->claim->store_data);
    }
}

static void place_free(struct place *place) {
    list_unlink(&place->all);
    list_unlink(&place->link);
    pool_claim_free(place->in_pools);
    place->claim->store_data = NULL;
    place->claim->state = CLAIM_STATE_NONE;
    free(place);
}

/* The public part of the claim. */
static void place_publish(struct place *place, enum claim_state state) {
    place->claim->state = state;
    place->claim->ticket = place->in_pools->ticket;
    place->claim->token = place->in_pools->token;
    place->claim->position = place->in_pools->position;
    place->claim->since_realtime = place->in_pools->queued_realtime;
}

static void deliver_state(struct memory *m, struct place *place) {
    enum pool_claim_state state = place->in_pools->state;
    struct store_listener *l = &m->store.listener;

    switch (state) {
    case POOL_CLAIM_STATE_NONE:
        return; /* revoked while it waited: the owner was told that */
    case POOL_CLAIM_STATE_WAITING:
    case POOL_CLAIM_STATE_PARKED:
        place_publish(place, state == POOL_CLAIM_STATE_PARKED ? CLAIM_STATE_PARKED : CLAIM_STATE_WAITING);
        l->on_waiting(place->claim, l->userdata);
        return;
    case POOL_CLAIM_STATE_HELD:
        place_publish(place, CLAIM_STATE_HELD);
        l->on_granted(place->claim, l->userdata);
        return;
    }
}

static void deliver_place(struct memory *m, struct place *place) {
    struct store_listener *l = &m->store.listener;
    struct claim *c = place->claim;

    list_unlink(&place->link);
    if (place->is_released) {
        place_free(place);
        l->on_released(c, l->userdata);
    } else if (place->is_refused) {
        struct place copy = *place;

        place_free(place);
        l->on_refused(c, copy.refusal, copy.pool, l->userdata);
    } else if (place->is_revoked && !place->revoke_told) {
        place->revoke_told = true;
        l->on_lost(c, STORE_LOSS_REVOKED, l->userdata);
    } else
        deliver_state(m, place);
}

/* The embedded one of store_stop() is not freed. The store may be freed by the handler only there. */
static void deliver_reply(struct memory *m, struct reply *reply) {
    struct reply copy = *reply;
    struct snapshot *snapshot = NULL;

    list_unlink(&reply->link);
    if (reply != &m->stop_reply)
        free(reply);
    if (copy.fn) {
        copy.fn(copy.r, copy.userdata);
        return;
    }
    if (copy.r == 0)
        copy.r = pools_snapshot(&m->pools, m->host, clock_boottime(), clock_realtime(), &snapshot);
    copy.inspect_fn(copy.r, snapshot, copy.userdata);
}

static int memory_on_deliver(sd_event_source *source _unused_, void *userdata) {
    struct memory *m = userdata;
    struct place *place;
    struct reply *reply;

    if (m->state_untold) {
        m->state_untold = false;
        m->store.listener.on_state(&m->store, m->store.state, m->store.listener.userdata);
    }
    for (int i = 0; i < DELIVERIES_MAX && (place = list_first(&m->outbox, struct place, link)); i++)
        deliver_place(m, place);
    /* A handler may free the store when its last reply, that of store_stop(), is delivered. */
    for (int i = 0; i < DELIVERIES_MAX && (reply = list_first(&m->replies, struct reply, link)); i++) {
        bool is_last = reply == &m->stop_reply;

        deliver_reply(m, reply);
        if (is_last)
            return 0;
    }
    if (!list_is_empty(&m->outbox) || !list_is_empty(&m->replies))
        memory_wake(m);
    return 0;
}

/* Takes place when the loop turns, so that its r may still be set by the caller. NULL: no memory. */
static struct reply *memory_add_reply(struct memory *m, store_reply_fn fn, store_inspect_fn inspect_fn, void *userdata) {
    struct reply *reply = calloc(1, sizeof(*reply));

    if (!reply)
        return NULL;
    reply->fn = fn;
    reply->inspect_fn = inspect_fn;
    reply->userdata = userdata;
    list_append(&m->replies, &reply->link);
    memory_wake(m);
    return reply;
}

/* --- limits --- */

static void memory_emit_limits(struct memory *m) {
    char limits[NAME_MAX_LENGTH + 32];

    list_foreach(pool, &m->pools.pools, struct pool, link) {
        if (!m->is_started || !pool_has_new_limit(pool))
            continue;
        (void) snprintf(limits, sizeof(limits), "%s:%" PRIu32 "/host", pool->name, pool_limit(pool));
        event_emit(m->events,
                   &(struct event){.type = EVENT_LIMIT_CHANGED, .pools = pool->name, .limits = limits, .reason = pool->override.reason},
                   "the limit of pool %s on this host is %" PRIu32 " now, it was %" PRIu32, pool->name, pool_limit(pool),
                   pool->settled_limit);
    }
}

/* After any change of limits, or when the timer says so: overrides end, claims are parked, brought back and granted. */
static void memory_settle(struct memory *m) {
    usec_t next = pools_expire(&m->pools, clock_boottime());

    memory_emit_limits(m);
    pools_settle(&m->pools, clock_realtime());
    memory_collect(m);
    if (next == USEC_INFINITY)
        (void) sd_event_source_set_enabled(m->timer, SD_EVENT_OFF);
    else {
        (void) sd_event_source_set_time(m->timer, next);
        (void) sd_event_source_set_enabled(m->timer, SD_EVENT_ONESHOT);
    }
}

static int memory_on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata) {
    memory_settle(userdata);
    return 0;
}

static int memory_declare(struct store *s, const struct store_pool *pools, size_t n, _unused_ bool drained) {
    struct memory *m = memory_of(s);
    struct pool *pool;

    for (size_t i = 0; i < n; i++) /* all that can fail comes first */
        if (pools_make(&m->pools, pools[i].name, &pool) < 0)
            return -ENOMEM;
    pools_undeclare(&m->pools);
    for (size_t i = 0; i < n; i++)
        pool_declare(pools_find(&m->pools, pools[i].name), pools[i].limit, pools[i].queue_limit);
    if (m->is_started)
        memory_settle(m);
    return 0;
}

static int pool_apply(struct pool *pool, const struct store_override *o, usec_t now) {
    usec_t until = usec_add(now, o->for_usec);

    if (o->pause)
        return pool_pause(pool, until, o->reason);
    if (o->resume)
        pool_resume(pool, now);
    else if (o->clear)
        pool_clear(pool);
    else
        return pool_override(pool, o->limit, until, o->reason);
    return 0;
}

static int memory_override(struct store *s, const struct store_override *o, store_reply_fn fn, void *userdata) {
    struct memory *m = memory_of(s);
    struct pool *pool = pools_find(&m->pools, o->pool);
    struct reply *reply = memory_add_reply(m, fn, NULL, userdata);

    if (!reply)
        return -ENOMEM;
    reply->r = pool ? pool_apply(pool, o, clock_boottime()) : STORE_E_UNKNOWN;
    if (reply->r == 0)
        memory_settle(m);
    return 0;
}

/* --- claims --- */

static struct place *place_new(struct memory *m, struct claim *c) {
    struct place *place = calloc(1, sizeof(*place));

    if (!place)
        return NULL;
    list_append(&m->places, &place->all);
    list_init(&place->link);
    place->claim = c;
    c->store_data = place;
    return place;
}

static int memory_claim(struct store *s, struct claim *c) {
    struct memory *m = memory_of(s);
    struct pool *pool = NULL;
    struct place *place;
    int r;

    if (m->is_stopped)
        return -ESHUTDOWN;
    place = place_new(m, c);
    if (!place)
        return -ENOMEM;
    r = pools_claim(&m->pools, c, clock_realtime(), &place->in_pools, &pool);
    if (r < 0) {
        place_free(place);
        return r;
    }
    c->state = CLAIM_STATE_ASKED;
    c->token = 0;
    place->is_refused = r > 0;
    if (place->is_refused) {
        place->refusal = r == POOL_E_BUSY ? STORE_REFUSAL_BUSY : STORE_REFUSAL_QUEUE_FULL;
        snprintf(place->pool, sizeof(place->pool), "%s", pool->name);
    }
    memory_tell(m, place);
    return 0;
}

static int memory_adopt(struct store *s, struct claim *c) {
    struct memory *m = memory_of(s);
    struct place *place = place_new(m, c);
    int r;

    if (!place)
        return -ENOMEM;
    r = pools_adopt(&m->pools, c, clock_realtime(), &place->in_pools);
    if (r < 0) {
        place_free(place);
        return r;
    }
    if (c->token > 0) { /* the owner knows */
        place_publish(place, CLAIM_STATE_HELD);
        return 0;
    }
    c->state = CLAIM_STATE_ASKED;
    if (m->is_started)
        memory_tell(m, place);
    return 0;
}

static void memory_release(struct store *s, struct claim *c) {
    struct memory *m = memory_of(s);
    struct place *place = c->store_data;

    if (c->state == CLAIM_STATE_NONE || c->state == CLAIM_STATE_RELEASING)
        return;
    c->state = CLAIM_STATE_RELEASING;
    place->is_released = true;
    pools_leave(&m->pools, place->in_pools, clock_realtime());
    memory_tell(m, place); /* before those who have got its permits now */
    memory_collect(m);
}

static struct place *memory_find_live(struct memory *m, const char *id) {
    list_foreach(place, &m->places, struct place, all)
        if (strcmp(place->claim->id, id) == 0 && !place->is_released && !place->is_refused)
            return place;
    return NULL;
}

static int memory_revoke(struct store *s, const char *claim, const char *reason _unused_, store_reply_fn fn, void *userdata) {
    struct memory *m = memory_of(s);
    struct place *place = memory_find_live(m, claim);
    struct reply *reply = memory_add_reply(m, fn, NULL, userdata);

    if (!reply)
        return -ENOMEM;
    reply->r = place ? 0 : STORE_E_UNKNOWN;
    if (!place || place->is_revoked)
        return 0;
    place->is_revoked = true;
    if (place->claim->state != CLAIM_STATE_HELD) { /* nothing was started yet: it has no part in the pools any more */
        pools_leave(&m->pools, place->in_pools, clock_realtime());
        memory_collect(m);
    }
    memory_tell(m, place);
    return 0;
}

/* --- the rest --- */

static int memory_end_grace(struct store *s, store_reply_fn fn, void *userdata) {
    return memory_add_reply(memory_of(s), fn, NULL, userdata) ? 0 : -ENOMEM; /* there is none to end */
}

static int memory_inspect(struct store *s, store_inspect_fn fn, void *userdata) {
    return memory_add_reply(memory_of(s), NULL, fn, userdata) ? 0 : -ENOMEM;
}

static void memory_emit_overcommitted(struct memory *m) {
    list_foreach(pool, &m->pools.pools, struct pool, link)
        if (pool_used(pool) > pool_limit(pool))
            event_emit(m->events, &(struct event){.type = EVENT_OVERCOMMITTED, .pools = pool->name},
                       "%" PRIu32 " permits of pool %s are held on this host, its limit is %" PRIu32, pool_used(pool), pool->name,
                       pool_limit(pool));
}

static int memory_start(struct store *s) {
    struct memory *m = memory_of(s);

    memory_emit_overcommitted(m);
    m->is_started = true;
    pools_open(&m->pools, clock_realtime());
    memory_settle(m);
    list_foreach(place, &m->places, struct place, all)
        if (place->claim->state == CLAIM_STATE_ASKED) /* adopted waiting ones */
            memory_tell(m, place);
    s->state = STORE_STATE_READY;
    m->state_untold = true;
    memory_wake(m);
    return 0;
}

/* Gives all claims up; from now on nothing is told but replies. */
static void memory_forget_claims(struct memory *m) {
    list_foreach_safe(place, &m->places, struct place, all) {
        pools_leave(&m->pools, place->in_pools, clock_realtime());
        place_free(place);
    }
}

static void memory_stop(struct store *s, store_reply_fn done, void *userdata) {
    struct memory *m = memory_of(s);

    m->is_stopped = true;
    m->pools.is_open = false;
    m->state_untold = false;
    memory_forget_claims(m);
    s->state = STORE_STATE_AWAY;
    if (list_is_linked(&m->stop_reply.link))
        return;
    m->stop_reply.fn = done;
    m->stop_reply.userdata = userdata;
    list_append(&m->replies, &m->stop_reply.link);
    memory_wake(m);
}

/* Claims are left as they are: their owner may have freed them already. */
static struct store *memory_free(struct store *s) {
    struct memory *m = memory_of(s);

    list_foreach_safe(place, &m->places, struct place, all)
        free(place);
    while (!list_is_empty(&m->replies)) {
        struct reply *reply = list_first(&m->replies, struct reply, link);

        reply->r = -ENOTCONN;
        deliver_reply(m, reply);
    }
    sd_event_source_disable_unref(m->deliver);
    sd_event_source_disable_unref(m->timer);
    pools_done(&m->pools);
    sd_event_unref(m->event);
    free(m);
    return NULL;
}

static const struct store_ops memory_ops = {
    .free = memory_free,
    .start = memory_start,
    .stop = memory_stop,
    .declare = memory_declare,
    .claim = memory_claim,
    .adopt = memory_adopt,
    .release = memory_release,
    .override = memory_override,
    .revoke = memory_revoke,
    .end_grace = memory_end_grace,
    .inspect = memory_inspect,
};

static int memory_add_sources(struct memory *m) {
    int r = sd_event_add_defer(m->event, &m->deliver, memory_on_deliver, m);

    if (r >= 0)
        r = sd_event_source_set_enabled(m->deliver, SD_EVENT_OFF);
    if (r >= 0)
        r = sd_event_add_time(m->event, &m->timer, CLOCK_BOOTTIME, 0, TIMER_ACCURACY_USEC, memory_on_timer, m);
    return r < 0 ? r : sd_event_source_set_enabled(m->timer, SD_EVENT_OFF);
}

int store_memory_new(struct store **ret, sd_event *event, struct events *events, const char *host,
                     const struct store_listener *listener) {
    struct memory *m = calloc(1, sizeof(*m));
    _cleanup_(store_freep) struct store *s = NULL;
    int r;

    if (!m)
        return -ENOMEM;
    m->store = (struct store){.ops = &memory_ops, .listener = *listener, .state = STORE_STATE_AWAY, .deadline = USEC_INFINITY};
    m->event = sd_event_ref(event);
    m->events = events;
    snprintf(m->host, sizeof(m->host), "%s", host);
    pools_init(&m->pools);
    list_init(&m->places);
    list_init(&m->outbox);
    list_init(&m->replies);
    list_init(&m->stop_reply.link);
    s = &m->store;
    r = memory_add_sources(m);
    if (r < 0)
        return r;
    *ret = steal_pointer(&s);
    return 0;
}
