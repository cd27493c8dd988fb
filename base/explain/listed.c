/* SPDX-License-Identifier: MIT */
#include "base/explain/listed.h"

#include <stdlib.h>

#include "base/json/format.h"

struct listed {
    struct listed_pool *pools;
    size_t n;
    json_t *by_name; /* maps a name to the numbers of its pools */
};

struct listed *listed_free(struct listed *l) {
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->n; i++) {
        json_decref(l->pools[i].waiting);
        json_decref(l->pools[i].held);
        json_decref(l->pools[i].holders);
    }
    free(l->pools);
    json_decref(l->by_name);
    free(l);
    return NULL;
}

static int index_claim(json_t *index, json_t *claim) {
    const char *id = format_get_text(claim, "claim");

    return json_object_get(index, id) ? 0 : json_object_set(index, id, claim);
}

static int index_pool(struct listed_pool *p, json_t *pool) {
    json_t *claim;
    size_t i;
    int k = 0;

    p->json = pool;
    p->waiting = json_object();
    p->held = json_object();
    json_array_foreach (json_object_get(pool, "queue"), i, claim) {
        k |= index_claim(p->waiting, claim);
        if (!p->head && format_get_number(claim, "position") == 1)
            p->head = claim;
    }
    json_array_foreach (json_object_get(pool, "holders"), i, claim)
        k |= index_claim(p->held, claim);
    return k;
}

static int index_name(struct listed *l, size_t i) {
    const char *name = format_get_text(l->pools[i].json, "name");
    json_t *numbers = json_object_get(l->by_name, name);

    if (!numbers) {
        numbers = json_array();
        if (json_object_set_new(l->by_name, name, numbers) < 0)
            return -1;
    }
    return json_array_append_new(numbers, json_integer((json_int_t) i));
}

struct listed *listed_new(const json_t *pools) {
    _cleanup_(listed_freep) struct listed *l = calloc(1, sizeof(*l));
    json_t *pool;
    size_t i;

    if (!l)
        return NULL;
    l->pools = calloc(json_array_size(pools) + 1, sizeof(*l->pools));
    l->by_name = json_object();
    if (!l->pools || !l->by_name)
        return NULL;
    json_array_foreach (pools, i, pool)
        if (index_pool(&l->pools[l->n++], pool) < 0 || index_name(l, i) < 0)
            return NULL;
    return steal_pointer(&l);
}

size_t listed_count(const struct listed *l) {
    return l->n;
}

struct listed_pool *listed_at(const struct listed *l, size_t i) {
    return &l->pools[i];
}

struct listed_pool *listed_find(const struct listed *l, const char *name, const char *claim) {
    const json_t *numbers = json_object_get(l->by_name, name);
    struct listed_pool *first = NULL;
    json_t *number;
    size_t i;

    json_array_foreach (numbers, i, number) {
        struct listed_pool *p = &l->pools[json_integer_value(number)];

        if (listed_waiter(p, claim) || listed_holder(p, claim))
            return p;
        first = first ? first : p;
    }
    return first;
}

const json_t *listed_waiter(const struct listed_pool *p, const char *claim) {
    return p ? json_object_get(p->waiting, claim) : NULL;
}

const json_t *listed_holder(const struct listed_pool *p, const char *claim) {
    return p ? json_object_get(p->held, claim) : NULL;
}

int listed_add_waiter(struct listed_pool *p, json_t *waiter) {
    int k = waiter ? index_claim(p->waiting, waiter) : -1;

    return json_array_append_new(json_object_get(p->json, "queue"), waiter) | k;
}
