/* SPDX-License-Identifier: MIT */

/* Overrides of a pool's limit: set, cleared, paused and resumed, and their ends. */

#include "store/memory/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void override_done(struct pool_override *o) {
    free(o->reason);
    *o = (struct pool_override) {.is_set = false};
}

static int override_make(uint32_t limit, usec_t until, const char *reason, struct pool_override *ret) {
    char *copy = NULL;

    if (reason && !(copy = strdup(reason)))
        return -ENOMEM;
    *ret = (struct pool_override) {.is_set = true, .limit = limit, .until = until, .reason = copy};
    return 0;
}

int pool_override(struct pool *pool, uint32_t limit, usec_t until, const char *reason) {
    struct pool_override made;
    int r = override_make(limit, until, reason, &made);

    if (r < 0)
        return r;
    pool_clear(pool);
    pool->override = made;
    return 0;
}

int pool_pause(struct pool *pool, usec_t until, const char *reason) {
    struct pool_override made;
    int r = override_make(0, until, reason, &made);

    if (r < 0)
        return r;
    made.is_pause = true;
    if (pool->override.is_set && pool->override.limit == 0) /* a second pause keeps what the first one replaced */
        override_done(&pool->override);
    else
        pool->replaced = pool->override;
    pool->override = made;
    return 0;
}

void pool_resume(struct pool *pool, usec_t now) {
    if (!pool->override.is_set || pool->override.limit > 0)
        return;
    override_done(&pool->override);
    pool->override = pool->replaced;
    pool->replaced = (struct pool_override) {.is_set = false};
    if (pool->override.is_set && pool->override.until <= now)
        override_done(&pool->override);
}

void pool_clear(struct pool *pool) {
    override_done(&pool->override);
    override_done(&pool->replaced);
}

usec_t pools_expire(struct pools *p, usec_t now) {
    usec_t next = USEC_INFINITY;

    list_foreach(pool, &p->pools, struct pool, link) {
        if (pool->override.is_set && pool->override.until <= now) {
            if (pool->override.is_pause)
                pool_resume(pool, now);
            else
                pool_clear(pool);
        }
        if (pool->override.is_set && pool->override.until < next)
            next = pool->override.until;
    }
    return next;
}
