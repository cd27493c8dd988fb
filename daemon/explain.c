/* SPDX-License-Identifier: MIT */

/* Why a run waits, for the operator at three in the morning. */

#include <string.h>

#include "daemon/manager-internal.h"

static const struct snapshot_pool *find_pool(const struct snapshot *s, const char *name) {
    for (size_t i = 0; i < s->n_pools; i++)
        if (strcmp(s->pools[i].name, name) == 0)
            return &s->pools[i];
    return NULL;
}

static const struct snapshot_position *find_position(const struct snapshot *s, const struct claim *c, const char *pool) {
    for (size_t i = 0; i < s->n_mine; i++)
        if (strcmp(s->mine[i].claim, c->id) == 0 && strcmp(s->mine[i].pool, pool) == 0)
            return &s->mine[i];
    return NULL;
}

/* What stands first in a queue has mostly waited long, so it stands near the front of its other queues, too. */
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

/* A pool besides this one where the claim at its head has to wait; NULL: none is seen. */
static const struct snapshot_pool *find_other_queue(const struct snapshot *s, const struct snapshot_pool *p, const char *head) {
    for (size_t i = 0; i < s->n_pools; i++) {
        const struct snapshot_waiter *w = &s->pools[i] == p ? NULL : find_waiter(&s->pools[i], head);

        if (w && is_blocked(&s->pools[i], w->permits, w->position))
            return &s->pools[i];
    }
    return NULL;
}

/* Permits are free, but whoever stands first takes them: a queue is not jumped (R2). */
static void format_behind(const struct snapshot *s, const struct snapshot_pool *p, char *buffer, size_t size) {
    const struct snapshot_waiter *head = p->n_queue > 0 && p->queue[0].position == 1 ? &p->queue[0] : NULL;
    const struct snapshot_pool *other = head ? find_other_queue(s, p, head->claim) : NULL;
    char who[2 * NAME_MAX_LENGTH + 8], reason[NAME_MAX_LENGTH + 32] = "";

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

/* No release ends this wait: a change of the limit does. */
static bool format_limit(const struct snapshot_pool *p, uint32_t permits, char *buffer, size_t size) {
    if (p->limit >= permits)
        return false;
    if (p->limit == 0)
        snprintf(buffer, size, "paused: %s", p->name);
    else
        snprintf(buffer, size, "limit %u is below %u: %s", p->limit, permits, p->name);
    return true;
}

static bool format_wait(const struct snapshot *s, const struct snapshot_pool *p, uint32_t permits, uint32_t position, char *buffer,
                        size_t size) {
    if (!is_blocked(p, permits, position))
        return false;
    if (p->used >= p->limit)
        snprintf(buffer, size, "pool full: %s", p->name);
    else if (position > 1)
        format_behind(s, p, buffer, size);
    else
        snprintf(buffer, size, "needs %u, free %u: %s", permits, p->limit - p->used, p->name);
    return true;
}

/* The first of its pools that alone would keep it waiting; one that parks it comes before those that are full. */
static const char *blocked_in(const struct snapshot *s, const struct claim *c, char *buffer, size_t size) {
    for (size_t i = 0; s && i < c->n_demands; i++) {
        const struct snapshot_pool *p = find_pool(s, c->demands[i].pool);

        if (p && format_limit(p, c->demands[i].permits, buffer, size))
            return buffer;
    }
    for (size_t i = 0; s && i < c->n_demands; i++) {
        const struct snapshot_pool *p = find_pool(s, c->demands[i].pool);
        const struct snapshot_position *position = find_position(s, c, c->demands[i].pool);

        if (p && format_wait(s, p, c->demands[i].permits, position ? position->position : 0, buffer, size))
            return buffer;
    }
    return NULL;
}

static bool is_cluster_pool(struct manager *m, const char *name) {
    const struct pool_settings *p = settings_find_pool(m->settings, name);

    return p && p->scope == POOL_SCOPE_CLUSTER;
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
    else if (redis)
        (void) snprintf(buffer, size, "no-memory: the memory of Redis at %s:%u is full", redis->host, redis->port);
    else
        (void) snprintf(buffer, size, "no-memory: the memory of Redis is full"); /* a reload has taken it away */
    return buffer;
}

const char *manager_blocked_by(struct manager *m, const struct run *r, const struct snapshot *host, const struct snapshot *cluster,
                               char *buffer, size_t size) {
    const char *why;

    if (r->state != RUN_STATE_WAITING)
        return r->state == RUN_STATE_PENDING && r->job.queued_by_overlap ? "overlap" : NULL;
    if (r->host_claim.n_demands > 0 && r->host_claim.state != CLAIM_STATE_HELD) {
        why = blocked_in(host, &r->host_claim, buffer, size);
        /* A cluster pool stands in the host's store for its host-limit alone. */
        if (why && strncmp(why, "pool full: ", 11) == 0 && is_cluster_pool(m, why + 11)) {
            char pool[NAME_MAX_LENGTH + 1];

            snprintf(pool, sizeof(pool), "%s", why + 11);
            snprintf(buffer, size, "host-limit: %s", pool);
        }
        return why;
    }
    if (!m->cluster_store || m->cluster_store->state == STORE_STATE_AWAY)
        return manager_away_text(m, buffer, size);
    if (m->cluster_store->state == STORE_STATE_GRACE)
        return "grace";
    if (m->cluster_store->is_full && r->cluster_claim.state == CLAIM_STATE_ASKED)
        return manager_full_text(m, buffer, size);
    return blocked_in(cluster, &r->cluster_claim, buffer, size);
}
