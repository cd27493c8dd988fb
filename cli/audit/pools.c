/* SPDX-License-Identifier: MIT */
/* Pools by name: the runs that used them, and their scope. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/audit/index.h"
#include "cli/audit/model.h"

size_t audit_pools_find(const struct audit *a, const char *name, const char *host) {
    const struct audit_name *found = audit_names_find(&a->pool_names, name, host);

    return found ? found->index : SIZE_MAX;
}

/* Stores the limits of the options with the cluster's name of the pool. */
static int read_options(struct audit *a) {
    for (size_t i = 0; i < a->options->n_limits; i++) {
        const struct audit_limit *limit = &a->options->limits[i];
        struct audit_name *name = audit_names_add(&a->pool_names, limit->pool, NULL);

        if (!name)
            return -ENOMEM;
        if (!name->given || limit->fixed)
            name->given = limit;
        name->given_as_host |= limit->host;
    }
    return 0;
}

int audit_pools_read_names(struct audit *a) {
    int k = read_options(a);

    return k < 0 ? k : audit_limits_read_names(a);
}

static int add_pool(struct audit *a, const char *name, const char *host) {
    struct audit_name *key = audit_names_add(&a->pool_names, name, host);
    const struct audit_name *of_cluster = audit_names_find(&a->pool_names, name, NULL);

    if (!key || !array_grow(a->pools, a->n_pools))
        return -ENOMEM;
    a->pools[a->n_pools] = (struct audit_pool) {.name = key->text, .host = host, .pattern = SIZE_MAX,
                                                .given = of_cluster ? of_cluster->given : NULL};
    key->index = a->n_pools++;
    return 0;
}

/* Returns whether the pool had scope host on this host at this place of the log, as its entries say, or those of its
 * pattern. */
static bool is_of_host(const struct audit *a, const char *name, const char *pattern, const char *host, size_t order) {
    const struct audit_name *of_host = audit_names_find(&a->pool_names, name, host);
    const struct audit_name *of_cluster = audit_names_find(&a->pool_names, name, NULL);

    if (of_host && of_host->n_scopes > 0)
        return audit_name_is_host(of_host, order);
    if (of_cluster && of_cluster->given)
        return of_cluster->given_as_host;
    return pattern && is_of_host(a, pattern, NULL, host, order);
}

int audit_pools_find_or_add(struct audit *a, const char *name, const char *host, size_t order, size_t *ret) {
    char text[POOL_NAME_SIZE];
    const char *pattern = pool_name_pattern(name, text), *only = is_of_host(a, name, pattern, host, order) ? host : NULL;
    size_t of_pattern = SIZE_MAX;

    *ret = audit_pools_find(a, name, only);
    if (*ret != SIZE_MAX)
        return 0;
    if ((pattern && audit_pools_find_or_add(a, pattern, host, order, &of_pattern) < 0) || add_pool(a, name, only) < 0)
        return -ENOMEM;
    *ret = a->n_pools - 1;
    a->pools[*ret].pattern = of_pattern;
    return 0;
}

/* --- users --- */

int audit_pools_make_users(const struct audit *a, const struct audit_run *const *runs, size_t n,
                           struct audit_pool_users *ret) {
    *ret = (struct audit_pool_users) {.first = calloc(a->n_pools + 2, sizeof(*ret->first))};
    for (size_t i = 0; i < n; i++)
        ret->n += runs[i]->n_uses;
    ret->items = calloc(ret->n + 1, sizeof(*ret->items));
    if (!ret->first || !ret->items)
        return -ENOMEM;
    /* Counts are stored two pools ahead, so that filling moves each begin to its place. */
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < runs[i]->n_uses; k++)
            ret->first[runs[i]->uses[k].pool + 2]++;
    for (size_t i = 2; i < a->n_pools + 2; i++)
        ret->first[i] += ret->first[i - 1];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < runs[i]->n_uses; k++)
            ret->items[ret->first[runs[i]->uses[k].pool + 1]++] = i;
    return 0;
}

size_t audit_pools_find_user(const struct audit_pool_users *u, size_t pool, uint64_t item) {
    size_t first = u->first[pool];

    return first + index_count_below(&u->items[first], sizeof(*u->items), u->first[pool + 1] - first, item);
}

void audit_pools_users_done(struct audit_pool_users *u) {
    free(u->items);
    free(u->first);
    *u = (struct audit_pool_users) {};
}

void audit_pools_done(struct audit *a) {
    for (size_t i = 0; i < a->n_pools; i++) {
        free(a->pools[i].declared.items);
        free(a->pools[i].overrides.items);
        free(a->pools[i].connections.items);
        free(a->pools[i].in_order.items);
    }
    free(a->pools);
    audit_names_done(&a->pool_names);
}
