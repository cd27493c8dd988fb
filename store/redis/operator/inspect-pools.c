/* SPDX-License-Identifier: MIT */

/* The pools of a snapshot: those that this host or a session declares or uses. Of the limits of a session it keeps those
 * that differ. A thousand hosts may declare hundreds of pools each, so pools are found by binary search. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

#define POOLS_MAX 1000
#define UNDEFINED_MAX 64 /* pools that no host declares */

struct own_pool { /* that this host declares */
    const struct declared *declared;
    bool is_there; /* the session under way declares it as well */
};

struct collection {
    struct inspection *inspection;
    struct snapshot *snapshot;
    uint16_t by_name[POOLS_MAX]; /* indices of the snapshot's pools */
    struct own_pool *own;        /* by name */
    size_t n_own;
};

/* --- pools of the snapshot --- */

/* Returns the place of a name in by_name. */
static size_t find_place(const struct collection *c, const char *name, bool *ret_is_there) {
    size_t low = 0, high = c->snapshot->n_pools;

    *ret_is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(c->snapshot->pools[c->by_name[middle]].name, name);

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        *ret_is_there |= order == 0;
    }
    return low;
}

static struct snapshot_pool *find_pool(const struct collection *c, const char *name) {
    bool is_there;
    size_t at = find_place(c, name, &is_there);

    return is_there ? &c->snapshot->pools[c->by_name[at]] : NULL;
}

/* Returns the new pool, or NULL: it is there already, or there is no room. */
static struct snapshot_pool *add_pool(struct collection *c, const char *name, uint32_t limit) {
    struct snapshot *s = c->snapshot;
    bool is_there;
    size_t at = find_place(c, name, &is_there);
    struct snapshot_pool *p;

    if (is_there || s->n_pools == POOLS_MAX)
        return NULL;
    memmove(&c->by_name[at + 1], &c->by_name[at], (s->n_pools - at) * sizeof(*c->by_name));
    c->by_name[at] = (uint16_t) s->n_pools;
    p = &s->pools[s->n_pools++];
    (void) snprintf(p->name, sizeof(p->name), "%s", name);
    p->limit = limit;
    return p;
}

/* A pool's limit is the lowest declared one until its reply arrives. */
static void collect_pool(struct collection *c, const char *name, uint32_t limit) {
    struct snapshot_pool *p = find_pool(c, name);

    if (!p)
        (void) add_pool(c, name, limit);
    else if (limit < p->limit)
        p->limit = limit;
}

static void collect_declared(struct collection *c) {
    const struct limits *own = &c->inspection->store->limits;
    const struct snapshot *s = c->snapshot;

    for (size_t k = 0; k < own->n_declared; k++)
        if (!own->declared[k].pool.is_host_scoped)
            collect_pool(c, own->declared[k].pool.name, own->declared[k].pool.limit);
    for (size_t at = 0; at < s->n_sessions; at++)
        for (size_t k = 0; k < s->sessions[at].n_limits; k++)
            if (!s->sessions[at].limits[k].is_host_scoped)
                collect_pool(c, s->sessions[at].limits[k].pool, s->sessions[at].limits[k].limit);
}

/* Adds the pools that no host declares, but claims of this host hold or wait for, after a reload that removed
 * them. Those of keys are in the inspection's names. */
static void collect_undefined(struct collection *c) {
    size_t n_left = UNDEFINED_MAX;

    list_foreach(entry, &c->inspection->store->table.entries, struct claim_entry, link)
        for (size_t k = 0; k < entry->claim->n_demands && n_left > 0; k++) {
            const char *name = entry->claim->demands[k].pool;
            struct snapshot_pool *p = pool_name_parse(name) != POOL_NAME_KEY ? add_pool(c, name, 0) : NULL;

            if (p) {
                p->is_undefined = true;
                n_left--;
            }
        }
}

/* Adds a key that no config names in full. */
static void collect_key(struct collection *c, const char *name) {
    struct snapshot_pool *p = pool_name_parse(name) == POOL_NAME_KEY ? add_pool(c, name, 0) : NULL;
    char pattern[POOL_NAME_SIZE];

    if (p) {
        p->has_pattern = true;
        p->is_undefined = !pool_name_pattern(name, pattern) || !find_pool(c, pattern);
    }
}

/* --- what differs --- */

static int compare_own(const void *a, const void *b) {
    const struct own_pool *x = a, *y = b;

    return strcmp(x->declared->pool.name, y->declared->pool.name);
}

static int collect_own(struct collection *c) {
    const struct limits *own = &c->inspection->store->limits;

    c->own = calloc(own->n_declared + 1, sizeof(*c->own));
    if (!c->own)
        return -ENOMEM;
    for (; c->n_own < own->n_declared; c->n_own++)
        c->own[c->n_own].declared = &own->declared[c->n_own];
    qsort(c->own, c->n_own, sizeof(*c->own), compare_own);
    return 0;
}

static int compare_to_own(const void *name, const void *own) {
    return strcmp(name, ((const struct own_pool *) own)->declared->pool.name);
}

/* Returns what this host declares of a pool, with any scope, or NULL. */
static struct own_pool *find_own(const struct collection *c, const char *name) {
    return bsearch(name, c->own, c->n_own, sizeof(*c->own), compare_to_own);
}

/* Returns whether hosts may differ in it: jobs are defined where they shall run. */
static bool is_job(const char *pool) {
    return pool_name_parse(pool) == POOL_NAME_JOB;
}

static bool is_due_otherwise(const struct own_pool *own, const struct snapshot_limit *limit) {
    const struct store_pool *pool = own ? &own->declared->pool : NULL;

    return pool && !pool->is_host_scoped && pool->due_hash > 0 && limit->due_hash > 0 && pool->due_hash != limit->due_hash;
}

/* Returns whether the limit of a session differs in some way. */
static bool compare(struct collection *c, struct snapshot_limit *limit) {
    struct own_pool *own = find_own(c, limit->pool);
    const struct snapshot_pool *p = limit->is_host_scoped ? NULL : find_pool(c, limit->pool);

    if (own)
        own->is_there = true;
    if (limit->is_host_scoped)
        return false;
    limit->differs = p && limit->limit != p->limit;
    limit->is_due_otherwise = is_due_otherwise(own, limit);
    limit->is_only_there = !own && !is_job(limit->pool);
    return limit->differs || limit->is_due_otherwise || limit->is_only_there;
}

/* Returns whether the session lacks this pool. */
static bool is_only_here(const struct own_pool *own) {
    return !own->is_there && !own->declared->pool.is_host_scoped && !is_job(own->declared->pool.name);
}

/* Keeps only what differs of the limits of a session, and adds the pools of this host that it does not declare. */
static int keep_differing(struct collection *c, struct snapshot_session *session) {
    struct snapshot_limit *all;
    size_t n = 0, n_only_here = 0;

    for (size_t k = 0; k < c->n_own; k++)
        c->own[k].is_there = false;
    for (size_t k = 0; k < session->n_limits; k++)
        if (compare(c, &session->limits[k]))
            session->limits[n++] = session->limits[k];
    session->n_limits = n;
    for (size_t k = 0; k < c->n_own; k++)
        n_only_here += is_only_here(&c->own[k]);
    all = reallocarray(session->limits, n + n_only_here + 1, sizeof(*all)); /* mostly it shrinks much */
    if (!all)
        return -ENOMEM;
    session->limits = all;
    for (size_t k = 0; k < c->n_own; k++)
        if (is_only_here(&c->own[k])) {
            all[session->n_limits] = (struct snapshot_limit) {.is_only_here = true};
            memcpy(all[session->n_limits++].pool, c->own[k].declared->pool.name, sizeof(all->pool));
        }
    return 0;
}

int inspect_collect_pools(struct inspection *i) {
    struct collection c = {.inspection = i, .snapshot = i->snapshot};
    struct snapshot *s = i->snapshot;
    size_t n = i->store->limits.n_declared + i->n_limits + UNDEFINED_MAX + i->n_names; /* at most */
    int r;

    inspect_sort_sessions(s);
    s->pools = calloc(n < POOLS_MAX ? n : POOLS_MAX, sizeof(*s->pools));
    if (!s->pools)
        return -ENOMEM;
    collect_declared(&c);
    collect_undefined(&c);
    for (size_t k = 0; k < i->n_names; k++)
        collect_key(&c, i->names[k]);
    r = collect_own(&c);
    for (size_t k = 0; k < s->n_sessions && r == 0; k++)
        r = keep_differing(&c, &s->sessions[k]);
    free(c.own);
    return r;
}
