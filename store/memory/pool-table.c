/* SPDX-License-Identifier: MIT */

/* The pools by name: plain ones, patterns and their keys, and the limit that each has. */

#include "store/memory/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pools_init(struct pools *pools) {
    *pools = (struct pools) {.is_open = false};
    list_init(&pools->pools);
    list_init(&pools->claims);
    list_init(&pools->due);
    list_init(&pools->changed);
}

static void pool_free(struct pool *pool) {
    if (pool->pattern)
        pool->pattern->n_keys--;
    list_unlink(&pool->link);
    list_unlink(&pool->due);
    pool_clear(pool);
    free(pool);
}

void pools_done(struct pools *pools) {
    list_foreach_safe(c, &pools->claims, struct pool_claim, link)
        free(c);
    list_foreach_safe(pool, &pools->pools, struct pool, link) {
        pool->pattern = NULL; /* may be gone */
        pool_free(pool);
    }
    pools_init(pools);
}

struct pool *pools_find(struct pools *pools, const char *name) {
    list_foreach(pool, &pools->pools, struct pool, link)
        if (strcmp(pool->name, name) == 0)
            return pool;
    return NULL;
}

static struct pool *pool_new(struct pools *pools, const char *name, struct pool *pattern) {
    struct pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return NULL;
    snprintf(pool->name, sizeof(pool->name), "%s", name);
    list_init(&pool->due);
    list_init(&pool->queue);
    list_init(&pool->parked);
    list_init(&pool->held);
    list_append(&pools->pools, &pool->link);
    if (pattern) {
        pattern->n_keys++;
        pool->pattern = pattern;
        pool->is_evaluated = true;
        pool->evaluated_limit = pool_limit(pool);
    }
    return pool;
}

int pools_make(struct pools *pools, const char *name, struct pool **ret) {
    struct pool *pool = pools_find(pools, name), *pattern = NULL;
    char text[POOL_NAME_SIZE];

    if (!pool && pool_name_pattern(name, text)) {
        pattern = pools_find(pools, text);
        if (!pattern && !(pattern = pool_new(pools, text, NULL)))
            return -ENOMEM;
    }
    if (!pool && !(pool = pool_new(pools, name, pattern)))
        return -ENOMEM;
    *ret = pool;
    return 0;
}

int pools_get(struct pools *pools, const char *name, struct pool **ret) {
    char text[POOL_NAME_SIZE];
    struct pool *pattern;

    *ret = pools_find(pools, name);
    if (*ret || !pool_name_pattern(name, text))
        return 0;
    pattern = pools_find(pools, text);
    return pattern && pattern->declared ? pools_make(pools, name, ret) : 0;
}

void pools_undeclare(struct pools *pools) {
    list_foreach(pool, &pools->pools, struct pool, link)
        pool->declared = false;
}

void pool_declare(struct pool *pool, uint32_t limit, uint32_t queue_limit) {
    pool->declared = true;
    pool->declared_limit = limit;
    pool->queue_limit = queue_limit;
}

/* Returns whether a key without claims exists because of its override. */
static bool is_override_kept(const struct pool *pool) {
    return pool->pattern && pool->pattern->declared && pool->override.is_set;
}

static bool is_unused(const struct pool *pool) {
    return !pool->declared && list_is_empty(&pool->queue) && list_is_empty(&pool->parked) &&
           list_is_empty(&pool->held) && pool->n_keys == 0 && !is_override_kept(pool);
}

void pools_drop_unused(struct pools *pools) {
    list_foreach_safe(pool, &pools->pools, struct pool, link)
        if (is_unused(pool))
            pool_free(pool);
}

void pool_drop_if_unused(struct pool *pool) {
    struct pool *pattern = pool->pattern;

    if (!is_unused(pool))
        return;
    pool_free(pool);
    if (pattern)
        pool_drop_if_unused(pattern);
}

bool pool_has_own_limit(const struct pool *pool) {
    return !pool->pattern || pool->declared || pool->override.is_set;
}

/* Returns the pool whose declaration counts: the pattern of a key that is not declared in full. When neither is
 * declared any more, the last declaration stays until the key's last claim is gone. */
static const struct pool *declared_of(const struct pool *pool) {
    bool is_patterns = pool->pattern && !pool->declared && (pool->pattern->declared || pool->declared_limit == 0);

    return is_patterns ? pool->pattern : pool;
}

bool pool_is_defined(const struct pool *pool) {
    return pool->declared || (pool->pattern && pool->pattern->declared);
}

uint32_t pool_limit(const struct pool *pool) {
    if (pool->override.is_set)
        return pool->override.limit;
    if (pool->pattern && pool->pattern->override.is_set)
        return pool->pattern->override.limit;
    return declared_of(pool)->declared_limit;
}

uint32_t pool_queue_limit(const struct pool *pool) {
    return declared_of(pool)->queue_limit;
}
