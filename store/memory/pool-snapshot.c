/* SPDX-License-Identifier: MIT */
#include "store/memory/pool-snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array of n zeroed elements; of one if n is 0, so that NULL always means that there is no memory. */
#define NEW_ARRAY(pointer, n) (((pointer) = calloc((n) > 0 ? (n) : 1, sizeof(*(pointer)))) != NULL)

static size_t list_length_to(const struct list *list, size_t max) {
    size_t n = 0;

    for (const struct list *l = list->next; l != list && n < max; l = l->next)
        n++;
    return n;
}

static int fill_holders(struct pool *pool, const char *host, struct snapshot *all, struct snapshot_pool *s) {
    size_t n = list_length_to(&pool->held, SNAPSHOT_LIST_MAX);

    if (!NEW_ARRAY(s->holders, n))
        return -ENOMEM;
    list_foreach(part, &pool->held, struct pool_part, link) {
        const struct pool_claim *c = part->claim;

        if (s->n_holders == n) {
            s->is_cut = true;
            break;
        }
        struct snapshot_holder *h = &s->holders[s->n_holders++];
        snprintf(h->claim, sizeof(h->claim), "%s", c->claim->id);
        h->host = host;
        h->name = snapshot_text(all, c->claim->name);
        if (!h->name)
            return -ENOMEM;
        h->permits = part->permits;
        h->token = c->token;
        h->since_realtime = c->granted_realtime;
    }
    return 0;
}

static int fill_waiters(struct list *list, bool parked, const char *host, usec_t now_realtime, size_t max,
                        struct snapshot *all, struct snapshot_pool *s) {
    uint32_t position = 0;

    list_foreach(part, list, struct pool_part, link) {
        const struct pool_claim *c = part->claim;

        if (s->n_queue == max)
            break;
        struct snapshot_waiter *w = &s->queue[s->n_queue++];
        snprintf(w->claim, sizeof(w->claim), "%s", c->claim->id);
        w->host = host;
        w->name = snapshot_text(all, c->claim->name);
        if (!w->name)
            return -ENOMEM;
        w->permits = part->permits;
        w->position = parked ? 0 : ++position;
        w->waiting_usec = usec_sub(now_realtime, c->queued_realtime);
    }
    return 0;
}

static int fill_queue(struct pool *pool, const char *host, usec_t now_realtime, struct snapshot *all,
                      struct snapshot_pool *s) {
    size_t max = (size_t) pool->n_queue + pool->n_parked;
    int r;

    s->is_cut |= max > SNAPSHOT_LIST_MAX;
    if (max > SNAPSHOT_LIST_MAX)
        max = SNAPSHOT_LIST_MAX;
    if (!NEW_ARRAY(s->queue, max))
        return -ENOMEM;
    r = fill_waiters(&pool->queue, false, host, now_realtime, max, all, s);
    return r < 0 ? r : fill_waiters(&pool->parked, true, host, now_realtime, max, all, s);
}

static int fill_pool(struct pool *pool, const char *host, usec_t now, usec_t now_realtime, struct snapshot *all,
                     struct snapshot_pool *s) {
    int r;

    snprintf(s->name, sizeof(s->name), "%s", pool->name);
    s->host_scope = true;
    s->has_pattern = pool->pattern && !pool->declared;
    s->is_undefined = !pool_is_defined(pool);
    s->limit = pool_limit(pool);
    s->used = pool_used(pool);
    s->waiting = pool->n_queue;
    s->parked = pool->n_parked;
    s->has_override = pool->override.is_set;
    if (s->has_override) {
        s->override_limit = pool->override.limit;
        s->override_until = pool->override.until == USEC_INFINITY
                                ? USEC_INFINITY
                                : usec_add(now_realtime, usec_sub(pool->override.until, now));
        if (pool->override.reason && !(s->override_reason = strdup(pool->override.reason)))
            return -ENOMEM;
    }
    r = fill_holders(pool, host, all, s);
    return r < 0 ? r : fill_queue(pool, host, now_realtime, all, s);
}

/* Adds the counts of each key to those of its pattern. */
static void count_keys(struct pools *p, struct snapshot *s) {
    size_t i = 0;

    list_foreach(pool, &p->pools, struct pool, link) {
        const struct snapshot_pool *key = &s->pools[i++];
        struct snapshot_pool *pattern = s->pools;

        if (!pool->pattern || key->used + key->waiting + key->parked == 0)
            continue;
        while (strcmp(pattern->name, pool->pattern->name) != 0)
            pattern++;
        pattern->n_keys++;
        pattern->used += key->used;
        pattern->waiting += key->waiting;
        pattern->parked += key->parked;
    }
}

/* Lists the positions of this host's waiting claims: all claims here are this host's. */
static int fill_mine(struct pools *p, struct snapshot *s) {
    size_t n = 0;

    list_foreach(pool, &p->pools, struct pool, link)
        n += pool->n_queue;
    if (!NEW_ARRAY(s->mine, n))
        return -ENOMEM;
    list_foreach(pool, &p->pools, struct pool, link) {
        uint32_t position = 0;

        list_foreach(part, &pool->queue, struct pool_part, link) {
            struct snapshot_position *m = &s->mine[s->n_mine++];

            snprintf(m->claim, sizeof(m->claim), "%s", part->claim->claim->id);
            snprintf(m->pool, sizeof(m->pool), "%s", pool->name);
            m->position = ++position;
        }
    }
    return 0;
}

int pools_snapshot(struct pools *p, const char *host, usec_t now, usec_t now_realtime,
                   struct snapshot **ret) {
    _cleanup_(snapshot_freep) struct snapshot *s = calloc(1, sizeof(*s));
    size_t n = list_length_to(&p->pools, SIZE_MAX);
    int r;

    if (!s || !NEW_ARRAY(s->pools, n) || !(host = snapshot_text(s, host)))
        return -ENOMEM;
    list_foreach(pool, &p->pools, struct pool, link) {
        r = fill_pool(pool, host, now, now_realtime, s, &s->pools[s->n_pools++]);
        if (r < 0)
            return r;
    }
    count_keys(p, s);
    r = fill_mine(p, s);
    if (r < 0)
        return r;
    *ret = steal_pointer(&s);
    return 0;
}
