/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "base/pool-name.h"
#include "store/redis/store-redis.h"

#define OVERRIDES_MAX 1000                       /* of pools that this host does not declare */
#define OVERRIDE_KEPT (24 * 3600 * USEC_PER_SEC) /* a cleared one: see limits.lua */

void limits_done(struct store_redis *store) {
    free(store->limits.declared);
    free(store->limits.overrides);
}

/* --- what this host declares --- */

static struct declared *find_any_scope(const struct store_redis *store, const char *pool) {
    for (size_t i = 0; i < store->limits.n_declared; i++)
        if (strcmp(store->limits.declared[i].pool.name, pool) == 0)
            return &store->limits.declared[i];
    return NULL;
}

struct declared *limits_find(struct store_redis *store, const char *pool) {
    struct declared *declared = find_any_scope(store, pool);

    return declared && !declared->pool.is_host_scoped ? declared : NULL;
}

bool limits_has_job(const struct store_redis *store) {
    for (size_t i = 0; i < store->limits.n_declared; i++)
        if (pool_name_parse(store->limits.declared[i].pool.name) == POOL_NAME_JOB)
            return true;
    return false;
}

uint32_t limits_queue_limit(const struct store_redis *store, const char *pool) {
    const struct declared *declared = find_any_scope(store, pool);
    char pattern[POOL_NAME_SIZE];

    if (!declared && pool_name_pattern(pool, pattern))
        declared = find_any_scope(store, pattern);
    return declared ? declared->pool.queue_limit : 0;
}

/* Returns declared.in_force of a pool. The limit of a new pool is news if redis-connected has logged the others. */
static uint64_t logged_in_force(const struct store_redis *store, const char *pool) {
    const struct declared *declared = find_any_scope(store, pool);

    if (declared)
        return declared->in_force;
    return store->link.log.is_connected ? UINT64_MAX - 1 : UINT64_MAX;
}

int limits_declare(struct store_redis *store, const struct store_pool *pools, size_t n, bool drained) {
    struct declared *declared = calloc(n > 0 ? n : 1, sizeof(*declared));

    if (!declared)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct declared *before = limits_find(store, pools[i].name);

        declared[i] = (struct declared) {.pool = pools[i],
                                         .decided = before ? before->decided : 0,
                                         .in_force = logged_in_force(store, pools[i].name)};
    }
    free(store->limits.declared);
    store->limits.declared = declared;
    store->limits.n_declared = n;
    store->limits.is_drained = drained;
    return 0;
}

/* --- overrides --- */

static struct override_reply *find_override(const struct store_redis *store, const char *pool) {
    for (size_t i = 0; i < store->limits.n_overrides; i++)
        if (strcmp(store->limits.overrides[i].pool, pool) == 0)
            return &store->limits.overrides[i];
    return NULL;
}

uint64_t limits_override_version(const struct store_redis *store, const char *pool) {
    const struct override_reply *override = find_override(store, pool);

    return override ? override->version : 0;
}

void limits_forget_overrides(struct store_redis *store) {
    store->limits.n_overrides = 0;
    store->limits.overrides_version = 0;
    store->limits.overrides_received = false;
}

/* Returns the limit of the override in force, or NULL. */
static const char *override_limit(const struct store_redis *store, const char *pool) {
    const struct override_reply *override = find_override(store, pool);

    return override && strcmp(override->limit, "-") != 0 ? override->limit : NULL;
}

/* Returns whether a cleared override is so old that no host can repeat the call that it replaced. */
static bool is_obsolete(struct store_redis *store, const struct override_reply *override) {
    return strcmp(override->limit, "-") == 0 && !*override->restore &&
           override->version + OVERRIDE_KEPT < store->clock.latest && !limits_find(store, override->pool);
}

/* Returns room for the override of another pool: a new entry, or that of an obsolete override. NULL: no room, or (*r < 0) no memory. */
static struct override_reply *add_override(struct store_redis *store, const char *pool, int *r) {
    struct limits *limits = &store->limits;
    struct override_reply *entry = limits->overrides, *end = entry + limits->n_overrides;

    while (entry < end && !is_obsolete(store, entry))
        entry++;
    if (entry == end) {
        /* Pools that no host declares must not exhaust memory. Those of this host are always kept. */
        if (limits->n_overrides >= OVERRIDES_MAX && !limits_find(store, pool))
            return NULL;
        entry = reallocarray(limits->overrides, limits->n_overrides + 1, sizeof(*entry));
        if (!entry) {
            *r = -ENOMEM;
            return NULL;
        }
        limits->overrides = entry;
        entry += limits->n_overrides++;
    }
    *entry = (struct override_reply) {.limit = "-", .until = "0"};
    (void) snprintf(entry->pool, sizeof(entry->pool), "%s", pool);
    return entry;
}

static void log_override(struct store_redis *store, const struct override_reply *override) {
    bool ended = strcmp(override->limit, "-") == 0;
    char limits[POOL_NAME_SIZE + 16];
    const struct event event = {.type = EVENT_LIMIT_CHANGED,
                                .pools = override->pool,
                                .limits = limits,
                                .clock = override->version,
                                .reason = !ended && *override->reason ? override->reason : NULL};

    (void) snprintf(limits, sizeof(limits), "%s:%s", override->pool, override->limit);
    if (ended)
        event_emit(store->env.events, &event, "the limit of pool %s is again what hosts declare",
                   override->pool);
    else
        event_emit(store->env.events, &event, "the limit of pool %s is %s by override", override->pool,
                   override->limit);
}

static int apply_override(struct store_redis *store, const struct override_reply *override) {
    struct override_reply *known = find_override(store, override->pool);
    int r = 0;

    if (!known)
        known = add_override(store, override->pool, &r);
    if (r < 0)
        return r;
    if (override->version > store->limits.overrides_version) /* also without room: else no later override would come */
        store->limits.overrides_version = override->version;
    if (!known || override->version <= known->version)
        return 0;
    if (store->limits.overrides_received)
        log_override(store, override);
    *known = *override;
    return 0;
}

int limits_apply_overrides(struct store_redis *store, const struct redisReply *list) {
    struct override_reply override;
    int r = 0;

    for (size_t i = 0; r >= 0 && override_reply_at(list, i, &override) == 0; i++)
        r = apply_override(store, &override);
    if (r >= 0)
        store->limits.overrides_received = true;
    return r;
}

/* --- hello --- */

static void add_override_to(struct redis_command *command, const struct override_reply *override) {
    command_add(command, override->pool);
    command_add_u64(command, override->version);
    command_add(command, override->limit);
    command_add(command, override->until);
    command_add(command, override->by);
    command_add(command, override->restore);
    command_add(command, override->reason);
}

static void add_limit_to(struct redis_command *command, const struct store_pool *pool) {
    char text[32];

    if (pool->is_host_scoped)
        (void) snprintf(text, sizeof(text), "host");
    else if (pool->due_hash > 0)
        (void) snprintf(text, sizeof(text), "%" PRIu32 "x%08" PRIx32, pool->limit, pool->due_hash);
    else
        (void) snprintf(text, sizeof(text), "%" PRIu32, pool->limit);
    command_add(command, text);
}

void limits_add_to(struct store_redis *store, struct redis_command *command) {
    const struct limits *limits = &store->limits;

    command_add_u64(command, limits->n_declared);
    for (size_t i = 0; i < limits->n_declared; i++) {
        command_add(command, limits->declared[i].pool.name);
        add_limit_to(command, &limits->declared[i].pool);
    }
    for (size_t i = 0; i < limits->n_overrides; i++)
        if (!is_obsolete(store, &limits->overrides[i]))
            add_override_to(command, &limits->overrides[i]);
}

/* --- limits of other hosts --- */

static void log_differing(struct store_redis *store, struct declared *declared,
                          const struct differing_reply *reply) {
    const struct store_pool *pool = &declared->pool;
    const struct event event = {.type = EVENT_LIMITS_DIFFER, .pools = pool->name};
    bool is_new = reply->lowest != declared->lowest || reply->highest != declared->highest;

    if (reply->lowest != reply->highest && is_new && !pool->is_host_scoped)
        event_emit(store->env.events, &event,
                   "hosts declare limits of %" PRIu64 " to %" PRIu64 " for pool %s, this one %" PRIu32
                   ": the lowest is in force",
                   reply->lowest, reply->highest, pool->name, pool->limit);
    if (reply->host_scoped > 0 && reply->host_scoped != declared->host_scoped)
        event_emit(store->env.events, &event,
                   "pool %s has scope host on %" PRIu64 " hosts and scope cluster on others; this one has scope %s",
                   pool->name, reply->host_scoped, pool->is_host_scoped ? "host" : "cluster");
    if (strcmp(reply->other, declared->other) != 0 && *reply->other)
        event_emit(store->env.events, &(struct event) {.type = EVENT_JOBS_DIFFER, .job = pool->name + 1, .other.host = reply->other},
                   "%s has other due times on %s: each due time of either is decided once", pool->name + 1, reply->other);
    memcpy(declared->other, reply->other, sizeof(declared->other));
    declared->lowest = reply->lowest;
    declared->highest = reply->highest;
    declared->host_scoped = reply->host_scoped;
}

/* Logs the lowest declared limit of a pool if it has changed. clock: the last number before the change. */
static void log_lowest(struct store_redis *store, const char *pool, uint64_t lowest, uint64_t clock) {
    struct declared *declared = limits_find(store, pool);
    const char *override = override_limit(store, pool);
    char limits[POOL_NAME_SIZE + 40], before[32] = "";

    if (declared && declared->in_force == lowest)
        return;
    if (declared && declared->in_force <= UINT32_MAX)
        (void) snprintf(before, sizeof(before), ", it was %" PRIu64, declared->in_force);
    if (declared)
        declared->in_force = lowest;
    (void) snprintf(limits, sizeof(limits), "%s:%" PRIu64 "/declared", pool, lowest);
    event_emit(store->env.events,
               &(struct event) {.type = EVENT_LIMIT_CHANGED, .pools = pool, .limits = limits,
                                .clock = clock},
               "the limit of pool %s is %" PRIu64 "%s: the lowest that a host declares%s%s", pool, lowest,
               before, override ? "; in force is an override: " : "", override ? override : "");
}

static uint64_t lowest_of(const struct declared *declared) {
    return declared->lowest != declared->highest ? declared->lowest : declared->pool.limit;
}

void limits_apply_differing(struct store_redis *store, const struct redisReply *list,
                            uint64_t effective_after) {
    struct limits *limits = &store->limits;

    limits->effective_after = effective_after;
    for (size_t i = 0; i < limits->n_declared; i++) {
        struct declared *declared = &limits->declared[i];
        struct differing_reply differing = {}, item;

        for (size_t k = 0; differing_reply_at(list, k, &item) == 0; k++)
            if (item.pool && strcmp(item.pool, declared->pool.name) == 0)
                differing = item;
        log_differing(store, declared, &differing);
    }
    for (size_t i = 0; i < limits->n_declared; i++) { /* redis-connected logs the first ones */
        const struct declared *declared = &limits->declared[i];

        if (!declared->pool.is_host_scoped && declared->in_force != UINT64_MAX)
            log_lowest(store, declared->pool.name, lowest_of(declared), effective_after);
    }
}

void limits_apply_undeclared(struct store_redis *store, const struct redisReply *list, bool skip_declared) {
    struct undeclared_reply undeclared;

    for (size_t i = 0; undeclared_reply_at(list, i, &undeclared) == 0; i++)
        if (undeclared.is_declared && !(skip_declared && limits_find(store, undeclared.pool)))
            log_lowest(store, undeclared.pool, undeclared.lowest, undeclared.clock);
}

/* Adds the overrides of keys of declared patterns. */
static void format_keys(const struct store_redis *store, FILE *f) {
    for (size_t i = 0; i < store->limits.n_overrides; i++) {
        const struct override_reply *override = &store->limits.overrides[i];
        char pattern[POOL_NAME_SIZE];

        if (strcmp(override->limit, "-") != 0 && !find_any_scope(store, override->pool) &&
            pool_name_pattern(override->pool, pattern) && find_any_scope(store, pattern))
            fprintf(f, "%s%s:%s", ftello(f) > 0 ? "," : "", override->pool, override->limit);
    }
}

char *limits_format(struct store_redis *store) {
    struct limits *limits = &store->limits;
    char *text = NULL;
    size_t size;
    FILE *f = limits->n_declared > 0 ? open_memstream(&text, &size) : NULL;

    for (size_t i = 0; f && i < limits->n_declared; i++) {
        struct declared *declared = &limits->declared[i];
        const char *override = override_limit(store, declared->pool.name), *comma = ftello(f) > 0 ? "," : "";

        if (declared->pool.is_host_scoped)
            continue;
        declared->in_force = lowest_of(declared);
        fprintf(f, "%s%s:%" PRIu64 "/declared", comma, declared->pool.name, declared->in_force);
        if (override)
            fprintf(f, ",%s:%s", declared->pool.name, override);
    }
    if (f)
        format_keys(store, f);
    if (f && fclose(f) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}
