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

/* The first of its pools that alone would keep it waiting. */
static const char *blocked_in(const struct snapshot *s, const struct claim *c, char *buffer, size_t size) {
    for (size_t i = 0; s && i < c->n_demands; i++) {
        const struct demand *d = &c->demands[i];
        const struct snapshot_pool *p = find_pool(s, d->pool);
        const struct snapshot_position *position = find_position(s, c, d->pool);

        if (!p)
            continue;
        if (p->limit == 0)
            snprintf(buffer, size, "paused: %s", d->pool);
        else if (p->limit < d->permits)
            snprintf(buffer, size, "limit %u is below %u: %s", p->limit, d->permits, d->pool);
        else if (position && position->position > 1 && p->used + position->head_permits > p->limit && p->used < p->limit)
            snprintf(buffer, size, "head needs %u: %s", position->head_permits, d->pool);
        else if (p->used + d->permits > p->limit || (position && position->position > 1))
            snprintf(buffer, size, "pool full: %s", d->pool);
        else
            continue;
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

    (void) snprintf(buffer, size, "redis away%s%s", *why ? ": " : "", why);
    return buffer;
}

const char *manager_blocked_by(struct manager *m, const struct run *r, const struct snapshot *host, const struct snapshot *cluster,
                               char *buffer, size_t size) {
    const char *why;

    if (r->state != RUN_STATE_WAITING)
        return r->state == RUN_STATE_PENDING && r->behind ? "overlap" : NULL;
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
    return blocked_in(cluster, &r->cluster_claim, buffer, size);
}
