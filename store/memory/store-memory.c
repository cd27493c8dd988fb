/* SPDX-License-Identifier: MIT */

/* The store of scope host: the pools of pool.h, driven by the event loop. A call takes effect in the pools
 * at once. The listener is called when the loop turns. The claim's public part is written only then, so it never
 * is ahead of the owner. There is no lease: a claim is held until it is released. */

#include <string.h>
#include <syslog.h>
#include <stdio.h>

#include "store/memory/delivery.h"
#include "store/memory/override-file.h"
#include "store/memory/pool-move.h"
#include "store/store.h"

struct memory {
    struct store store; /* first */
    sd_event *event;
    struct events *events;
    struct pools pools;
    struct delivery delivery;
    bool is_started, is_stopped;
    struct timer timer; /* end of the next override that has one */
    char *override_path, *boot; /* of the file of overrides; NULL: none is kept */
};

static struct memory *memory_of(struct store *s) {
    return (struct memory *) s; /* embedded first */
}

/* --- limits --- */

static void emit_limit(struct memory *m, const struct pool *pool) {
    char limits[POOL_NAME_SIZE + 32], before[32] = "";

    if (pool_has_own_limit(pool))
        (void) snprintf(limits, sizeof(limits), "%s:%" PRIu32 "/host", pool->name, pool_limit(pool));
    else
        (void) snprintf(limits, sizeof(limits), "%s:-/host", pool->name); /* that of its pattern */
    if (pool->evaluated_limit != pool_limit(pool))
        (void) snprintf(before, sizeof(before), ", it was %" PRIu32, pool->evaluated_limit);
    event_emit(m->events,
               &(struct event) {.type = EVENT_LIMIT_CHANGED, .pools = pool->name, .limits = limits, .reason = pool->override.reason},
               "the limit of pool %s on this host is now %" PRIu32 "%s", pool->name, pool_limit(pool), before);
}

static void memory_emit_limits(struct memory *m) {
    list_foreach(pool, &m->pools.pools, struct pool, link)
        if (m->is_started && pool_has_new_limit(pool))
            emit_limit(m, pool);
}

/* Applies changed limits, and overrides that end: claims are parked, requeued and granted. */
static void memory_reevaluate(struct memory *m) {
    usec_t next = pools_expire(&m->pools, clock_boottime());

    memory_emit_limits(m);
    pools_reevaluate(&m->pools, clock_realtime());
    delivery_collect(&m->delivery);
    timer_set(&m->timer, next);
}

static void memory_on_timer(void *userdata) {
    memory_reevaluate(userdata);
}

static int memory_save_overrides(struct memory *m) {
    int r = m->override_path ? override_file_save(m->override_path, m->boot, &m->pools) : 0;

    if (r < 0)
        journal_log(events_get_journal(m->events), LOG_WARNING,
                    "%s: cannot write (%s), limits that were set by hand on this host end with berthd", m->override_path, strerror(-r));
    return r;
}

int store_memory_keep_overrides(struct store *s, const char *path, const char *boot) {
    struct memory *m = memory_of(s);
    int r;

    m->override_path = strdup(path);
    m->boot = strdup(boot);
    if (!m->override_path || !m->boot)
        return -ENOMEM;
    r = override_file_load(path, boot, &m->pools);
    if (r < 0 && r != -ENOENT && r != -ENOMEM)
        journal_log(events_get_journal(m->events), LOG_WARNING,
                    "%s: cannot read (%s), limits that were set by hand on this host are those of the config again", path, strerror(-r));
    return r == -ENOMEM ? r : 0;
}

void store_memory_emit_overrides(struct store *s) {
    struct memory *m = memory_of(s);

    list_foreach(pool, &m->pools.pools, struct pool, link)
        if (pool->override.is_set)
            emit_limit(m, pool);
}

static int memory_declare(struct store *s, const struct store_pool *pools, size_t n, _unused_ bool drained) {
    struct memory *m = memory_of(s);
    struct pool *pool;

    for (size_t i = 0; i < n; i++) /* all that can fail comes first */
        if (!pools[i].is_former && pools_make(&m->pools, pools[i].name, &pool) < 0)
            return -ENOMEM;
    pools_undeclare(&m->pools);
    for (size_t i = 0; i < n; i++) {
        pool = pools_find(&m->pools, pools[i].name);
        if (!pools[i].is_former)
            pool_declare(pool, pools[i].limit, pools[i].queue_limit);
        else if (pool)
            pool->declared_limit = pools[i].limit;
    }
    if (m->is_started) {
        memory_reevaluate(m);
        (void) memory_save_overrides(m); /* those of pools that are gone are not kept */
    }
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

static int memory_override(struct store *s, const struct store_override *o, store_reply_fn fn,
                           void *userdata) {
    struct memory *m = memory_of(s);
    struct delivery_reply *reply = delivery_add_reply(&m->delivery, fn, NULL, userdata);
    struct pool *pool;

    if (!reply)
        return -ENOMEM;
    reply->result = pools_get(&m->pools, o->pool, &pool);
    if (reply->result == 0)
        reply->result = pool && !(pool->n_keys > 0 && !pool->declared) ? pool_apply(pool, o, clock_boottime())
                                                                       : STORE_E_UNKNOWN;
    if (reply->result == 0) {
        if (memory_save_overrides(m) < 0)
            reply->result = STORE_E_NOT_KEPT;
        memory_reevaluate(m);
    }
    return 0;
}

/* --- claims --- */

static int memory_claim(struct store *s, struct claim *claim) {
    struct memory *m = memory_of(s);
    struct pool_claim *entry = NULL;
    size_t refused_demand = 0;
    int r;

    if (m->is_stopped)
        return -ESHUTDOWN;
    r = pools_claim(&m->pools, claim, clock_realtime(), &entry, &refused_demand);
    if (r < 0)
        return r;
    claim->store_data = entry;
    claim->state = CLAIM_STATE_ASKED;
    claim->token = 0;
    if (r > 0) {
        entry->notice = POOL_NOTICE_REFUSED;
        entry->refusal = r;
        entry->refused_demand = refused_demand;
    }
    delivery_notify(&m->delivery, entry);
    return 0;
}

static int memory_adopt(struct store *s, struct claim *claim) {
    struct memory *m = memory_of(s);
    struct pool_claim *entry;
    int r = pools_adopt(&m->pools, claim, clock_realtime(), &entry);

    if (r < 0)
        return r;
    claim->store_data = entry;
    if (claim->token > 0) { /* the listener is not called */
        delivery_publish(entry, CLAIM_STATE_HELD);
        return 0;
    }
    claim->state = CLAIM_STATE_ASKED;
    if (m->is_started)
        delivery_notify(&m->delivery, entry);
    return 0;
}

static void memory_release(struct store *s, struct claim *claim) {
    struct memory *m = memory_of(s);
    struct pool_claim *entry = claim->store_data;

    if (claim->state == CLAIM_STATE_NONE || claim->state == CLAIM_STATE_RELEASING)
        return;
    claim->state = CLAIM_STATE_RELEASING;
    entry->notice = POOL_NOTICE_RELEASED;
    pools_leave(&m->pools, entry, clock_realtime());
    delivery_notify(&m->delivery, entry); /* before the claims that its permits were granted to */
    delivery_collect(&m->delivery);
}

static struct pool_claim *memory_find_live(struct memory *m, const char *id) {
    list_foreach(entry, &m->pools.claims, struct pool_claim, link)
        if (strcmp(entry->claim->id, id) == 0 && entry->notice < POOL_NOTICE_REFUSED)
            return entry;
    return NULL;
}

static int memory_revoke(struct store *s, const char *claim, const char *reason _unused_, store_reply_fn fn,
                         void *userdata) {
    struct memory *m = memory_of(s);
    struct pool_claim *entry = memory_find_live(m, claim);
    struct delivery_reply *reply = delivery_add_reply(&m->delivery, fn, NULL, userdata);

    if (!reply)
        return -ENOMEM;
    reply->result = entry ? 0 : STORE_E_UNKNOWN;
    if (!entry || entry->notice != POOL_NOTICE_STATE)
        return 0;
    entry->notice = POOL_NOTICE_REVOKED;
    if (entry->claim->state != CLAIM_STATE_HELD) { /* nothing was started: it leaves the pools at once */
        pools_leave(&m->pools, entry, clock_realtime());
        delivery_collect(&m->delivery);
    }
    delivery_notify(&m->delivery, entry);
    return 0;
}

/* Returns a claim that can be moved. NULL: `about` and *ret say why there is none. */
static struct pool_claim *memory_find_waiting(struct memory *m, const char *id, struct store_move *move, int *ret) {
    struct pool_claim *entry = memory_find_live(m, id);

    (void) snprintf(move->about, sizeof(move->about), "%s", id);
    if (!entry || entry->state == POOL_CLAIM_STATE_NONE)
        *ret = STORE_E_UNKNOWN;
    else if (entry->state == POOL_CLAIM_STATE_HELD)
        *ret = STORE_E_HELD;
    else if (entry->notice != POOL_NOTICE_STATE)
        *ret = STORE_E_UNKNOWN;
    else
        return entry;
    return NULL;
}

static int memory_move_now(struct memory *m, struct store_move *move) {
    struct pool_claim *before = NULL, *entry;
    int r = 0;

    entry = memory_find_waiting(m, move->claim, move, &r);
    if (entry && move->kind == STORE_MOVE_BEFORE)
        before = memory_find_waiting(m, move->before, move, &r);
    if (r == 0)
        r = pools_move(&m->pools, entry, before, move, clock_realtime());
    if (r != 0)
        return r;
    (void) snprintf(move->host, sizeof(move->host), "%s", m->delivery.host);
    for (size_t i = 0; i < move->n_passed; i++)
        (void) snprintf(move->passed[i].host, sizeof(move->passed[i].host), "%s", m->delivery.host);
    entry->claim->given_usec = entry->given_usec; /* a later claim of the same run keeps them */
    entry->claim->moved = entry->moved;
    delivery_collect(&m->delivery);
    return 0;
}

static int memory_move(struct store *s, struct store_move *move, store_reply_fn fn, void *userdata) {
    struct memory *m = memory_of(s);
    struct delivery_reply *reply = delivery_add_reply(&m->delivery, fn, NULL, userdata);

    if (!reply)
        return -ENOMEM;
    reply->result = memory_move_now(m, move);
    return 0;
}

/* --- the rest --- */

static void memory_send(struct store *s) {
    delivery_claims(&memory_of(s)->delivery);
}

static int memory_end_grace(struct store *s, store_reply_fn fn, void *userdata) {
    return delivery_add_reply(&memory_of(s)->delivery, fn, NULL, userdata)
               ? 0
               : -ENOMEM; /* there is none to end */
}

static int memory_inspect(struct store *s, _unused_ const struct store_question *question, store_inspect_fn fn,
                          void *userdata) {
    return delivery_add_reply(&memory_of(s)->delivery, NULL, fn, userdata) ? 0 : -ENOMEM;
}

static void memory_emit_overcommitted(struct memory *m) {
    list_foreach(pool, &m->pools.pools, struct pool, link)
        if (pool_is_defined(pool) && pool_used(pool) > pool_limit(pool))
            event_emit(m->events, &(struct event) {.type = EVENT_OVERCOMMITTED, .pools = pool->name},
                       "%" PRIu32 " permits of pool %s are held on this host, its limit is %" PRIu32,
                       pool_used(pool), pool->name, pool_limit(pool));
}

static int memory_start(struct store *s) {
    struct memory *m = memory_of(s);

    memory_emit_overcommitted(m);
    m->is_started = true;
    pools_open(&m->pools, clock_realtime());
    memory_reevaluate(m);
    list_foreach(entry, &m->pools.claims, struct pool_claim, link)
        if (entry->claim->state == CLAIM_STATE_ASKED) /* adopted waiting ones */
            delivery_notify(&m->delivery, entry);
    delivery_set_state(&m->delivery, STORE_STATE_READY);
    return 0;
}

/* Gives up all claims without calling their listener. */
static void memory_forget_claims(struct memory *m) {
    list_foreach_safe(entry, &m->pools.claims, struct pool_claim, link) {
        pools_leave(&m->pools, entry, clock_realtime());
        delivery_end_claim(entry);
    }
}

static void memory_stop(struct store *s, store_reply_fn done, void *userdata) {
    struct memory *m = memory_of(s);

    m->is_stopped = true;
    m->pools.is_open = false;
    memory_forget_claims(m);
    delivery_stop(&m->delivery, done, userdata);
}

/* Does not touch claims: their owners may have freed them already. */
static struct store *memory_free(struct store *s) {
    struct memory *m = memory_of(s);

    delivery_done(&m->delivery);
    timer_done(&m->timer);
    pools_done(&m->pools);
    free(m->override_path);
    free(m->boot);
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
    .send = memory_send,
    .override = memory_override,
    .revoke = memory_revoke,
    .move = memory_move,
    .end_grace = memory_end_grace,
    .inspect = memory_inspect,
};

int store_memory_new(struct store **ret, sd_event *event, struct events *events, const char *host,
                     const struct store_listener *listener) {
    struct memory *m = calloc(1, sizeof(*m));
    _cleanup_(store_freep) struct store *s = NULL;
    int r;

    if (!m)
        return -ENOMEM;
    m->store = (struct store) {
        .ops = &memory_ops, .listener = *listener, .state = STORE_STATE_AWAY, .deadline = USEC_INFINITY};
    m->event = sd_event_ref(event);
    m->events = events;
    pools_init(&m->pools);
    s = &m->store;
    r = delivery_init(&m->delivery, event, s, &m->pools, host);
    if (r >= 0)
        r = timer_init(&m->timer, event, SD_EVENT_PRIORITY_NORMAL, memory_on_timer, m);
    if (r < 0)
        return r;
    *ret = steal_pointer(&s);
    return 0;
}
