/* SPDX-License-Identifier: MIT */

/* Why a run waits. */

#include <string.h>

#include "base/duration.h"
#include "daemon/manager-internal.h"

static const struct snapshot_position *find_position(const struct snapshot *s, const struct claim *c,
                                                     const char *pool) {
    for (size_t i = 0; i < s->n_mine; i++)
        if (strcmp(s->mine[i].claim, c->id) == 0 && strcmp(s->mine[i].pool, pool) == 0)
            return &s->mine[i];
    return NULL;
}

/* The head of a queue has usually waited long, so it is near the front of its other queues as well. */
#define FRONT 100

static const struct snapshot_waiter *find_waiter(const struct snapshot_pool *p, const char *claim) {
    for (size_t i = 0; i < p->n_queue && i < FRONT; i++)
        if (p->queue[i].position > 0 && strcmp(p->queue[i].claim, claim) == 0)
            return &p->queue[i];
    return NULL;
}

static bool is_blocked(const struct snapshot_pool *p, uint32_t permits, uint32_t position) {
    return position > 1 || p->used + permits > p->limit;
}

/* Returns another pool for which the claim at the head of this queue waits, or NULL. */
static const struct snapshot_pool *find_other_queue(const struct snapshot *s, const struct snapshot_pool *p,
                                                    const char *head) {
    for (size_t i = 0; i < s->n_pools; i++) {
        const struct snapshot_waiter *w = &s->pools[i] == p ? NULL : find_waiter(&s->pools[i], head);

        if (w && is_blocked(&s->pools[i], w->permits, w->position))
            return &s->pools[i];
    }
    return NULL;
}

/* Permits are free, but the claim at the head of the queue gets them first (R2). */
static void format_behind(const struct snapshot *s, const struct snapshot_pool *p, char *buffer,
                          size_t size) {
    const struct snapshot_waiter *head = p->n_queue > 0 && p->queue[0].position == 1 ? &p->queue[0] : NULL;
    const struct snapshot_pool *other = head ? find_other_queue(s, p, head->claim) : NULL;
    char who[2 * NAME_MAX_LENGTH + 8], reason[POOL_NAME_SIZE + 32] = "";

    if (!head) {
        snprintf(buffer, size, "behind others: %s", p->name);
        return;
    }
    snprintf(who, sizeof(who), "%s%s%s", head->name, head->host[0] ? " on " : "", head->host);
    if (p->used + head->permits > p->limit)
        snprintf(reason, sizeof(reason), ", which needs %u", head->permits);
    else if (other)
        snprintf(reason, sizeof(reason), ", which waits for %s", other->name);
    snprintf(buffer, size, "behind %s%s: %s", who, reason, p->name);
}

enum wait_kind {
    WAIT_NONE,
    WAIT_UNDEFINED,  /* no host declares the pool */
    WAIT_NOT_HERE,   /* it is of scope host, and this host does not declare it */
    WAIT_PAUSED, /* the limit of the pool is 0 */
    WAIT_LIMIT,  /* the limit is below the demand: only a change of the limit ends this wait */
    WAIT_POOL_FULL,
    WAIT_HOST_LIMIT, /* the pool is full on this host */
    WAIT_BEHIND,     /* permits are free, but a claim before this one gets them */
    WAIT_PERMITS,    /* some are free, but too few */
};

struct wait_reason {
    enum wait_kind kind;
    const struct snapshot *snapshot;
    const struct snapshot_pool *pool;
    uint32_t permits; /* demanded */
};

static enum wait_kind wait_of(const struct snapshot_pool *p, uint32_t permits, uint32_t position) {
    if (!is_blocked(p, permits, position))
        return WAIT_NONE;
    return p->used >= p->limit ? WAIT_POOL_FULL : position > 1 ? WAIT_BEHIND : WAIT_PERMITS;
}

/* A pool that no config has comes first: nobody can change its limit. */
static enum wait_kind parked_by(const struct snapshot_pool *p) {
    if (p->is_undefined)
        return p->host_scope ? WAIT_NOT_HERE : WAIT_UNDEFINED;
    return p->limit > 0 ? WAIT_LIMIT : WAIT_PAUSED;
}

/* Returns the first pool that keeps the claim waiting. A pool that parks it comes before those that are
 * full. */
static struct wait_reason find_reason(const struct snapshot *s, const struct claim *c) {
    struct wait_reason reason = {.snapshot = s};

    for (size_t i = 0; s && i < c->n_demands; i++) {
        reason.permits = c->demands[i].permits;
        reason.pool = snapshot_find_pool(s, c->demands[i].pool);
        if (reason.pool && reason.pool->limit < reason.permits) {
            reason.kind = parked_by(reason.pool);
            return reason;
        }
    }
    for (size_t i = 0; s && i < c->n_demands; i++) {
        const struct snapshot_position *position = find_position(s, c, c->demands[i].pool);

        reason.permits = c->demands[i].permits;
        reason.pool = snapshot_find_pool(s, c->demands[i].pool);
        if (reason.pool)
            reason.kind = wait_of(reason.pool, reason.permits, position ? position->position : 0);
        if (reason.kind != WAIT_NONE)
            return reason;
    }
    return reason;
}

static const char *format_reason(const struct wait_reason *reason, char *buffer, size_t size) {
    const struct snapshot_pool *p = reason->pool;

    switch (reason->kind) {
    case WAIT_NONE:
        return NULL;
    case WAIT_UNDEFINED:
        snprintf(buffer, size, "no host defines it: %s", p->name);
        break;
    case WAIT_NOT_HERE:
        snprintf(buffer, size, "this host's config lacks it: %s", p->name);
        break;
    case WAIT_PAUSED:
        snprintf(buffer, size, "paused: %s", p->name);
        break;
    case WAIT_LIMIT:
        snprintf(buffer, size, "limit %u is below %u: %s", p->limit, reason->permits, p->name);
        break;
    case WAIT_POOL_FULL:
        snprintf(buffer, size, "pool full: %s", p->name);
        break;
    case WAIT_HOST_LIMIT:
        snprintf(buffer, size, "host-limit: %s", p->name);
        break;
    case WAIT_BEHIND:
        format_behind(reason->snapshot, p, buffer, size);
        break;
    case WAIT_PERMITS:
        snprintf(buffer, size, "needs %u, free %u: %s", reason->permits, p->limit - p->used, p->name);
        break;
    }
    return buffer;
}

/* Returns whether a pool of the host's store stands for the host-limit of a cluster pool. A pool that only was of scope
 * host is undefined there. */
static bool is_host_limit(const struct manager *m, const struct snapshot_pool *pool) {
    const struct pool_settings *p = settings_find_pool(m->settings, pool->name);

    return p && p->scope == POOL_SCOPE_CLUSTER && !pool->is_undefined;
}

const char *manager_away_text(const struct manager *m, char *buffer, size_t size) {
    const char *why = m->cluster_store ? m->cluster_store->away_why : "";

    (void) snprintf(buffer, size, *why ? "redis away: %s" : "connecting to Redis", why);
    return buffer;
}

const char *manager_full_text(const struct manager *m, char *buffer, size_t size) {
    const struct redis_settings *redis = m->settings->redis;

    if (redis && redis->unix_path)
        (void) snprintf(buffer, size, "no-memory: the memory of Redis at %s is full", redis->unix_path);
    else if (redis && redis->host)
        (void) snprintf(buffer, size, "no-memory: the memory of Redis at %s:%u is full", redis->host,
                        redis->port);
    else /* sentinels name its address, or a reload removed it */
        (void) snprintf(buffer, size, "no-memory: the memory of Redis is full");
    return buffer;
}

const char *manager_blocked_by(struct manager *m, const struct run *r, const struct snapshot *host,
                               const struct snapshot *cluster, char *buffer, size_t size) {
    struct wait_reason reason;
    char text[DURATION_TEXT_SIZE];
    usec_t left;

    if (r->state == RUN_STATE_RETRYING && manager_is_drained(m))
        return "drained";
    if (r->state == RUN_STATE_RETRYING) {
        const char *what = r->job.origin.trigger == RUN_TRIGGER_RESTART ? "restart" : "retry";

        left = usec_sub(r->job.begin_due, clock_boottime());
        (void) snprintf(buffer, size, "%s in %s", what, duration_format((left + USEC_PER_SEC - 1) / USEC_PER_SEC * USEC_PER_SEC, text));
        return buffer;
    }
    if (r->state == RUN_STATE_PENDING && r->job.queued_by_overlap)
        return "overlap";
    if ((r->state == RUN_STATE_PENDING || r->state == RUN_STATE_STARTING) && r->kind == RUN_KIND_JOB &&
        !executor_is_connected(m->executor))
        return "no berth-runner";
    if (r->state == RUN_STATE_PENDING && manager_is_recovering(m))
        return executor_is_connected(m->executor) ? "recovering" : "no berth-runner";
    if (r->state != RUN_STATE_WAITING)
        return NULL;
    if (r->host_claim->n_demands > 0 && r->host_claim->state != CLAIM_STATE_HELD) {
        reason = find_reason(host, r->host_claim);
        if (reason.kind == WAIT_POOL_FULL && is_host_limit(m, reason.pool))
            reason.kind = WAIT_HOST_LIMIT;
        else if (reason.kind == WAIT_NOT_HERE && settings_find_pool(m->settings, reason.pool->name))
            reason.kind = WAIT_LIMIT; /* the pool is one of the cluster now, or has lost its host-limit */
        return format_reason(&reason, buffer, size);
    }
    if (!m->cluster_store || m->cluster_store->state == STORE_STATE_AWAY)
        return manager_away_text(m, buffer, size);
    if (m->cluster_store->state == STORE_STATE_GRACE)
        return "grace";
    if (m->cluster_store->is_full && r->cluster_claim->state == CLAIM_STATE_ASKED)
        return manager_full_text(m, buffer, size);
    reason = find_reason(cluster, r->cluster_claim);
    return format_reason(&reason, buffer, size);
}
