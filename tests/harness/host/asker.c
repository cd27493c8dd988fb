/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/asker.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/test.h"

struct asker *asker_new(const char *pools) {
    struct asker *a = calloc(1, sizeof(*a));

    if (!a || demands_parse(pools, &a->demands) != 0)
        abort();
    snprintf(a->id, sizeof(a->id), "%p", (void *) a);
    a->claim.name = "x";
    a->claim.id = a->id;
    demands_get_refs(&a->demands, a->refs);
    a->claim.demands = a->refs;
    a->claim.n_demands = a->demands.n;
    return a;
}

struct asker *asker_ask(struct pools *p, const char *pools, usec_t now) {
    struct asker *a = asker_new(pools);
    size_t refused = 0;

    TEST_INT(pools_claim(p, &a->claim, now, &a->in_pools, &refused), 0);
    return a;
}

void asker_give_back(struct pools *p, struct asker *a, usec_t now) {
    pools_leave(p, a->in_pools, now);
    pool_claim_free(a->in_pools);
    free(a);
}

void asker_declare(struct pools *p, const char *name, uint32_t limit, uint32_t queue_limit) {
    struct pool *pool;

    if (pools_make(p, name, &pool) < 0)
        abort();
    pool_declare(pool, limit, queue_limit);
}

void asker_begin(struct pools *p) {
    pools_init(p);
    asker_declare(p, "db", 4, 10000);
    asker_declare(p, "net", 1, 10000);
    pools_open(p, NOW);
}
