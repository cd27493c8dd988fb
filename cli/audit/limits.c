/* SPDX-License-Identifier: MIT */
/* The limit in force at any time: of cluster pools by numbers of the namespace's clock, of host pools by the
 * host's journal. */
#include <errno.h>
#include <sys/param.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/journal/limit-word.h"
#include "cli/audit/model.h"

/* Learns which pools have scope host on which host, and from when on: the first word of an event that names the pool
 * counts. */
int audit_limits_read_names(struct audit *a) {
    struct limit_word w;

    for (size_t i = 0; i < a->n_events; i++)
        for (const char *at = a->events[i]->limits; at;) {
            struct audit_name *name;

            at = limit_word_next(at, &w);
            if (w.pool[0] == '\0')
                continue;
            name = audit_names_add(&a->pool_names, w.pool, a->events[i]->host);
            if (!name || audit_name_add_scope(name, i + 1, w.kind == LIMIT_HOST) < 0)
                return -ENOMEM;
        }
    return 0;
}

static int add_step(struct audit_limits_steps *s, const struct audit_limits_step *step) {
    if (!array_grow(s->items, s->n))
        return -ENOMEM;
    s->items[s->n++] = *step;
    return 0;
}

static int add_cluster(struct audit *a, const struct entry *e, const struct limit_word *w, size_t order) {
    size_t i = audit_pools_find(a, w->pool, NULL);
    struct audit_limits_step step = {.number = e->clock, .order = order, .none = w->none, .limit = w->limit};
    int k;

    if (i == SIZE_MAX || e->clock == 0)
        return 0; /* no run uses it; or a host's declaration, which redis-connected repeats */
    if (w->kind == LIMIT_OVERRIDE)
        return add_step(&a->pools[i].overrides, &step);
    k = add_step(&a->pools[i].declared, &step);
    return k < 0 || !entry_is(e, "redis-connected") ? k : add_step(&a->pools[i].connections, &step);
}

static int add_host(struct audit *a, const struct entry *e, const struct limit_word *w, size_t order) {
    size_t i = audit_pools_find(a, w->pool, e->host);
    struct audit_limits_step step = {.number = audit_hosts_time(a, e), .order = order, .none = w->none, .limit = w->limit};
    int k = i == SIZE_MAX ? 0 : add_step(&a->pools[i].declared, &step);

    return i == SIZE_MAX || k < 0 ? k : add_step(&a->pools[i].in_order, &step);
}

static int compare_steps(const void *a, const void *b) {
    const struct audit_limits_step *x = a, *y = b;

    return x->number != y->number ? (x->number < y->number ? -1 : 1) : x->order < y->order ? -1 : x->order > y->order;
}

static void sort_steps(struct audit_limits_steps *s) {
    if (s->n > 0)
        qsort(s->items, s->n, sizeof(*s->items), compare_steps);
}

int audit_limits_make(struct audit *a) {
    struct limit_word w;
    int k = 0;

    for (size_t i = 0; i < a->n_events && k == 0; i++) {
        for (const char *at = a->events[i]->limits; at && k == 0;) {
            at = limit_word_next(at, &w);
            if (w.pool[0] == '\0')
                audit_report_violation(a, AUDIT_MALFORMED, a->events[i], "BERTH_LIMITS is \"%.100s\"",
                                       a->events[i]->limits);
            else if (w.kind == LIMIT_HOST)
                k = add_host(a, a->events[i], &w, i + 1);
            else
                k = add_cluster(a, a->events[i], &w, i + 1);
        }
    }
    for (size_t i = 0; i < a->n_pools; i++) {
        sort_steps(&a->pools[i].declared);
        sort_steps(&a->pools[i].overrides);
        sort_steps(&a->pools[i].connections);
    }
    return k;
}

/* Returns the step in force when this number was drawn; NULL: not known. */
static const struct audit_limits_step *find_step(const struct audit_limits_steps *s, uint64_t number) {
    size_t n = s->n == 0 ? 0 : index_count_below(&s->items->number, sizeof(*s->items), s->n, number);

    return n > 0 ? &s->items[n - 1] : NULL;
}

static bool limit_given(const struct audit_pool *p, bool only_fixed, uint32_t *ret) {
    if (!p->given || (only_fixed && !p->given->fixed))
        return false;
    *ret = p->given->limit;
    return true;
}

/* Returns whether the override ended before this number, because a host has connected since. redis-connected has all
 * overrides in force, those of keys with the limit of their pattern. */
static bool has_ended(const struct audit *a, size_t pool, const struct audit_limits_step *override, uint64_t number) {
    for (; pool != SIZE_MAX; pool = a->pools[pool].pattern) {
        const struct audit_limits_step *connection = find_step(&a->pools[pool].connections, number);

        if (connection && connection->number > override->number)
            return true;
    }
    return false;
}

/* Returns the override of the pool in force when this number was drawn, or else that of its pattern. */
static const struct audit_limits_step *find_override(const struct audit *a, size_t pool, uint64_t number) {
    for (; pool != SIZE_MAX; pool = a->pools[pool].pattern) {
        const struct audit_limits_step *step = find_step(&a->pools[pool].overrides, number);

        if (step && !step->none && !has_ended(a, pool, step, number))
            return step;
    }
    return NULL;
}

static const struct audit_limits_step *find_declared(const struct audit *a, size_t pool, uint64_t number) {
    const struct audit_limits_step *step = NULL;

    for (; pool != SIZE_MAX && !step; pool = a->pools[pool].pattern)
        step = find_step(&a->pools[pool].declared, number);
    return step;
}

static bool limit_given_to_key(const struct audit *a, size_t pool, bool only_fixed, uint32_t *ret) {
    for (; pool != SIZE_MAX; pool = a->pools[pool].pattern)
        if (limit_given(&a->pools[pool], only_fixed, ret))
            return true;
    return false;
}

bool audit_limits_at(const struct audit *a, size_t pool, uint64_t number, uint32_t *ret) {
    const struct audit_limits_step *step;

    if (limit_given_to_key(a, pool, true, ret))
        return true;
    step = find_override(a, pool, number);
    if (!step)
        step = find_declared(a, pool, number);
    if (!step)
        return limit_given_to_key(a, pool, false, ret);
    *ret = step->limit;
    return true;
}

static uint64_t next_step(const struct audit_limits_steps *s, uint64_t number) {
    size_t n = s->n == 0 ? 0 : index_count_below(&s->items->number, sizeof(*s->items), s->n, number);

    return n < s->n ? s->items[n].number : UINT64_MAX;
}

uint64_t audit_limits_until(const struct audit *a, size_t pool, uint64_t number) {
    uint64_t until = UINT64_MAX;

    for (; pool != SIZE_MAX; pool = a->pools[pool].pattern) {
        const struct audit_pool *p = &a->pools[pool];
        const struct audit_limits_steps *const all[] = {&p->declared, &p->overrides, &p->connections};

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
            until = MIN(until, next_step(all[i], number));
    }
    return until;
}

/* A grant is decided before it is logged; its number is the host's time of the decision. The limit logged
 * before the grant, or the one at its time, was in force. */
bool audit_limits_of_host_at(const struct audit *a, size_t pool, const struct audit_run *r,
                             uint32_t *ret_lowest, uint32_t *ret_highest) {
    const struct audit_pool *p = &a->pools[pool];
    const struct audit_limits_step *steps[2];
    size_t n;
    uint64_t number = r->of_host && r->granted->token > 0 ? r->granted->token
                                                          : audit_hosts_time(a, r->granted);
    bool is_known = false;

    if (limit_given(p, true, ret_lowest)) {
        *ret_highest = *ret_lowest;
        return true;
    }
    n = p->in_order.n == 0 ? 0 : index_count_below(&p->in_order.items->order, sizeof(*p->in_order.items), p->in_order.n, r->order);
    steps[0] = n > 0 ? &p->in_order.items[n - 1] : NULL;
    steps[1] = find_step(&p->declared, number);
    /* A step that ended, or a key without one: the limit is that of the pattern. */
    if (p->pattern != SIZE_MAX && (!steps[0] || steps[0]->none || !steps[1] || steps[1]->none))
        is_known = audit_limits_of_host_at(a, p->pattern, r, ret_lowest, ret_highest);
    for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
        if (!steps[i] || steps[i]->none)
            continue;
        *ret_lowest = !is_known || steps[i]->limit < *ret_lowest ? steps[i]->limit : *ret_lowest;
        *ret_highest = !is_known || steps[i]->limit > *ret_highest ? steps[i]->limit : *ret_highest;
        is_known = true;
    }
    if (is_known)
        return true;
    is_known = limit_given(p, false, ret_lowest);
    *ret_highest = *ret_lowest;
    return is_known;
}
