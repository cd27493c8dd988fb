/* SPDX-License-Identifier: MIT */
#include "cli/history/use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/cleanup.h"
#include "base/pool-name.h"
#include "cli/history/use-changes.h"

/* --- a pool in time --- */

struct limits { /* -1: none */
    int64_t declared, override;
};

struct now { /* the state of a pool at some time */
    struct limits own, of_pattern;
    usec_t own_until; /* the override of a key has ended by then */
    int64_t held, waiting;
};

static int64_t limit_of(const struct now *now) {
    const int64_t limits[] = {now->own.override, now->of_pattern.override, now->own.declared, now->of_pattern.declared};

    for (size_t i = 0; i < ELEMENTSOF(limits); i++)
        if (limits[i] >= 0)
            return limits[i];
    return -1;
}

static void add_cells(struct use_pool *p, const struct uses *u, const struct now *now, usec_t from,
                      usec_t to) {
    double allowed = limit_of(now) > 0 ? (double) limit_of(now) : 0;
    usec_t span = MAX((u->until - u->since) / u->n_cells, (usec_t) 1);

    while (from < to) {
        size_t cell = MIN((size_t) ((from - u->since) / span), u->n_cells - 1);
        usec_t end = cell + 1 == u->n_cells ? to : MIN(to, u->since + (cell + 1) * span);
        double length = (double) (end - from);

        p->cells[cell].held += allowed > 0 ? length * (double) now->held : 0;
        p->cells[cell].allowed += length * allowed;
        from = end;
    }
}

/* Accounts for the time until a change. */
static void pass(struct use_pool *p, const struct uses *u, const struct now *now, usec_t from, usec_t to) {
    int64_t limit = limit_of(now);

    from = MAX(from, u->since);
    to = MIN(to, u->until);
    if (from >= to)
        return;
    p->full += now->waiting > 0 ? to - from : 0;
    p->shut += limit == 0 ? to - from : 0;
    p->peak = MAX(p->peak, (uint32_t) MAX(now->held, 0));
    if (limit >= 0) {
        p->limit_min = p->has_limit ? MIN(p->limit_min, (uint32_t) limit) : (uint32_t) limit;
        p->limit_max = p->has_limit ? MAX(p->limit_max, (uint32_t) limit) : (uint32_t) limit;
        p->has_limit = true;
    }
    add_cells(p, u, now, from, to);
}

static void limits_apply(struct limits *limits, const struct change *change) {
    if (change->kind == CHANGE_DECLARED)
        limits->declared = change->value;
    else if (change->kind == CHANGE_OVERRIDE)
        limits->override = change->value;
    else if (change->kind == CHANGE_CONNECTED)
        limits->override = -1;
}

static void apply(struct now *now, const struct change *change) {
    limits_apply(&now->own, change);
    now->held += change->kind == CHANGE_HELD ? change->value : 0;
    now->waiting += change->kind == CHANGE_WAITING ? change->value : 0;
}

/* Accounts for the time until `to`. */
static void advance(struct use_pool *p, const struct uses *u, struct now *now, usec_t *from, usec_t to) {
    if (now->own.override >= 0 && now->own_until < to) {
        pass(p, u, now, *from, now->own_until);
        *from = MAX(*from, now->own_until);
        now->own.override = -1;
    }
    pass(p, u, now, *from, to);
    *from = MAX(*from, to);
}

struct span { /* the changes of one pool, by time */
    const struct change *items;
    size_t n;
};

/* Returns the first known limit, which counts from the beginning; -1: none. */
static int64_t first_limit(struct span s) {
    for (size_t i = 0; i < s.n; i++)
        if (s.items[i].kind == CHANGE_DECLARED && s.items[i].value >= 0)
            return s.items[i].value;
    return -1;
}

/* Returns when a host first connected after this change; USEC_INFINITY: not at all. */
static usec_t next_connection(struct span s, const struct change *after) {
    size_t low = 0, high = s.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct change *c = &s.items[middle];

        if (c->time < after->time || (c->time == after->time && c->order < after->order))
            low = middle + 1;
        else
            high = middle;
    }
    while (low < s.n && s.items[low].kind != CHANGE_CONNECTED)
        low++;
    return low < s.n ? s.items[low].time : USEC_INFINITY;
}

/* pattern: all changes of its pattern; steps: those that change its limit. */
static int make_pool(struct uses *u, struct span own, struct span pattern, struct span steps) {
    struct use_pool *p = &u->pools[u->n];
    struct now now = {.own = {first_limit(own), -1}, .of_pattern = {first_limit(pattern), -1}};
    usec_t from = 0;
    size_t step = 0;

    *p = (struct use_pool) {.name = own.items->name, .name_length = own.items->name_length, .host = own.items->host};
    p->cells = calloc(u->n_cells, sizeof(*p->cells));
    if (!p->cells)
        return -ENOMEM;
    u->n++;
    for (size_t i = 0; i < own.n; i++) {
        for (; step < steps.n && steps.items[step].time <= own.items[i].time; step++) {
            advance(p, u, &now, &from, steps.items[step].time);
            limits_apply(&now.of_pattern, &steps.items[step]);
        }
        advance(p, u, &now, &from, own.items[i].time);
        apply(&now, &own.items[i]);
        if (own.items[i].kind == CHANGE_OVERRIDE && own.items[i].value >= 0)
            now.own_until = next_connection(pattern, &own.items[i]);
    }
    for (; step < steps.n; step++) {
        advance(p, u, &now, &from, steps.items[step].time);
        limits_apply(&now.of_pattern, &steps.items[step]);
    }
    advance(p, u, &now, &from, u->until);
    for (size_t i = 0; i < u->n_cells; i++) {
        p->all.held += p->cells[i].held;
        p->all.allowed += p->cells[i].allowed;
    }
    return 0;
}

/* waits: has room for n. */
static void add_waits(struct use_pool *p, const struct uses *u, struct span own, int64_t *waits) {
    size_t n_waits = 0;

    for (size_t i = 0; i < own.n; i++)
        if (own.items[i].kind == CHANGE_WAITED && own.items[i].time >= u->since && own.items[i].time < u->until)
            waits[n_waits++] = own.items[i].value;
    p->wait = figures_make(waits, n_waits);
}

/* --- all pools --- */

bool use_pool_is(const struct use_pool *p, const char *name) {
    return strlen(name) == p->name_length && strncmp(name, p->name, p->name_length) == 0;
}

static bool is_pattern(const struct change *c) {
    return c->name[c->name_length - 1] == '*';
}

/* Keeps the changes of patterns that change a limit, for keys, which may be many. */
static void add_steps(struct changes *steps, struct span s) {
    struct limits now = {first_limit(s), -1};

    for (size_t i = 0; i < s.n; i++) {
        struct limits before = now;

        limits_apply(&now, &s.items[i]);
        if (now.declared != before.declared || now.override != before.override)
            changes_add(steps, &s.items[i]);
    }
}

/* Returns the changes of the pattern of a key, on its host. */
static struct span span_of(const struct changes *c, const char *pattern, const struct change *key) {
    struct change pool = {.name = pattern, .name_length = strlen(pattern), .host = key->host};
    size_t first = changes_count(c, &pool, false);

    return (struct span) {&c->items[first], changes_count(c, &pool, true) - first};
}

static int add_pool(struct uses *u, const struct changes *c, const struct changes *steps, struct span own, int64_t *waits) {
    char name[POOL_NAME_SIZE], pattern[POOL_NAME_SIZE];
    struct span of_pattern = {0}, steps_of_pattern = {0};
    int k;

    (void) snprintf(name, sizeof(name), "%.*s", (int) own.items->name_length, own.items->name);
    if (pool_name_pattern(name, pattern)) {
        of_pattern = span_of(c, pattern, own.items);
        steps_of_pattern = span_of(steps, pattern, own.items);
    }
    k = make_pool(u, own, of_pattern, steps_of_pattern);
    if (k == 0)
        add_waits(&u->pools[u->n - 1], u, own, waits);
    return k;
}

static int make_pools(struct uses *u, const struct changes *c, struct changes *steps) {
    _cleanup_free_ int64_t *waits = calloc(c->n + 1, sizeof(*waits));
    int k = waits ? 0 : -ENOMEM;

    u->pools = calloc(c->n + 1, sizeof(*u->pools));
    if (!u->pools)
        return -ENOMEM;
    for (size_t i = 0; i < c->n && k == 0;) {
        struct span own = {&c->items[i], changes_count(c, &c->items[i], true) - i};

        if (is_pattern(own.items)) /* it comes before its keys: a star precedes what a key may have */
            add_steps(steps, own);
        else if (own.items->name[0] != '@') /* not pools of jobs */
            k = add_pool(u, c, steps, own, waits);
        i += own.n;
    }
    return k < 0 ? k : steps->error;
}

int uses_make(struct uses *ret, const struct entries *e, const struct past *pasts, size_t n,
              const struct history_hosts *hosts, usec_t since, usec_t until, size_t n_cells) {
    _cleanup_(changes_done) struct changes all = {}, steps = {};
    struct uses u = {.since = since, .until = until, .n_cells = n_cells};
    int k = changes_make(&all, e, pasts, n, hosts, until);

    k = k < 0 ? k : make_pools(&u, &all, &steps);
    if (k < 0)
        uses_done(&u);
    else
        *ret = u;
    return k;
}

void uses_done(struct uses *u) {
    for (size_t i = 0; i < u->n; i++)
        free(u->pools[i].cells);
    free(u->pools);
    *u = (struct uses){};
}
