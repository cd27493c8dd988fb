/* SPDX-License-Identifier: MIT */
#include "cli/history/use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/demand.h"
#include "base/journal/limit-word.h"

enum change_kind { CHANGE_DECLARED, CHANGE_OVERRIDE, CHANGE_HELD, CHANGE_WAITING, CHANGE_WAITED };

struct change { /* of a pool at a time */
    const char *name, *host;
    size_t name_length;
    usec_t time;
    size_t order; /* of two at one time */
    enum change_kind kind;
    int64_t value; /* the limit (-1: the override has ended); the difference in permits or runs; ms waited */
};

struct changes {
    struct change *items;
    size_t n, allocated;
    int error;
};

static void add(struct changes *c, const struct change *change) {
    if (c->n == c->allocated && c->error == 0) {
        size_t allocated = c->allocated > 0 ? 2 * c->allocated : 256;
        struct change *grown = reallocarray(c->items, allocated, sizeof(*grown));

        if (!grown) {
            c->error = -ENOMEM;
            return;
        }
        c->items = grown;
        c->allocated = allocated;
    }
    if (c->error == 0) {
        c->items[c->n] = *change;
        c->items[c->n].order = c->n;
        c->n++;
    }
}

static int compare_pools(const struct change *x, const struct change *y) {
    int c = strncmp(x->name, y->name, MIN(x->name_length, y->name_length));

    c = c != 0 ? c : (x->name_length > y->name_length) - (x->name_length < y->name_length);
    return c != 0 ? c : strcmp(x->host ? x->host : "", y->host ? y->host : "");
}

static int compare_orders(const void *a, const void *b) {
    const struct change *x = a, *y = b;
    int c = compare_pools(x, y);

    return c != 0 ? c : (x->order > y->order) - (x->order < y->order);
}

static int compare_changes(const void *a, const void *b) {
    const struct change *x = a, *y = b;
    int c = compare_pools(x, y);

    c = c != 0 ? c : (x->time > y->time) - (x->time < y->time);
    return c != 0 ? c : (x->order > y->order) - (x->order < y->order);
}

static void sort(struct changes *c, int (*compare)(const void *a, const void *b)) {
    if (c->n > 0)
        qsort(c->items, c->n, sizeof(*c->items), compare);
}

/* --- limits --- */

/* Only redis-connected and limit-changed have the limit of a cluster pool that is in force, not the
 * declaration of a host. In redis-connected a pool without an override has none. */
static void add_limit(struct changes *c, const struct entry *e, const struct limit_word *w, const char *at) {
    struct change change = {.name = at,
                            .name_length = strlen(w->pool),
                            .time = e->time,
                            .value = w->none ? -1 : (int64_t) w->limit};

    if (w->kind == LIMIT_HOST) {
        change.host = e->host;
        add(c, &change);
    } else if (e->clock > 0 && w->kind == LIMIT_DECLARED) {
        add(c, &change);
        change.kind = CHANGE_OVERRIDE;
        change.value = -1;
        if (strcmp(e->event, "redis-connected") == 0)
            add(c, &change);
    } else if (e->clock > 0) {
        change.kind = CHANGE_OVERRIDE;
        add(c, &change);
    }
}

/* Adds overrides last, because the declared limits of redis-connected end earlier overrides. */
static void add_limits(struct changes *c, const struct entry *e) {
    struct limit_word w;

    for (int overrides = 0; overrides < 2; overrides++)
        for (const char *at = e->limits, *next; at; at = next) {
            next = limit_word_next(at, &w);
            if (w.pool[0] != '\0' && (w.kind == LIMIT_OVERRIDE) == overrides)
                add_limit(c, e, &w, at);
        }
}

/* --- runs --- */

/* Keeps the last limit of each pool, by pool. */
static void keep_last(struct changes *limits) {
    size_t n = 0;

    sort(limits, compare_orders);
    for (size_t i = 0; i < limits->n; i++)
        if (i + 1 == limits->n || compare_pools(&limits->items[i], &limits->items[i + 1]) != 0)
            limits->items[n++] = limits->items[i];
    limits->n = n;
}

static int compare_keys(const void *a, const void *b) {
    return compare_pools(a, b);
}

/* Returns the last limit of the pool of a host, or of all hosts (NULL). */
static const struct change *find_last(const struct changes *last, const struct change *pool, const char *host) {
    struct change key = *pool;

    key.host = host;
    return last->n > 0 ? bsearch(&key, last->items, last->n, sizeof(key), compare_keys) : NULL;
}

/* Returns whether the pool was one of the host alone when its limit was last logged. */
static bool is_host_pool(const struct changes *last, const struct change *pool, const char *host) {
    const struct change *own = find_last(last, pool, host), *shared = find_last(last, pool, NULL);

    return own && (!shared || own->order > shared->order);
}

static void add_span(struct changes *c, const struct change *change, usec_t from, usec_t to) {
    struct change begin = *change, end = *change;

    begin.time = from;
    end.time = to;
    end.value = -end.value;
    add(c, &begin);
    add(c, &end);
}

/* Adds the spans in which a run waited and held. An open run holds until the end of the time. */
static void add_run(struct changes *c, const struct changes *last, const struct past *p, usec_t until) {
    usec_t ended = past_end_time(p) > 0 ? past_end_time(p) : until;
    struct demands demands;
    const char *at = p->pools;

    if (demands_parse(p->pools, &demands) != 0)
        return;
    for (size_t i = 0; i < demands.n; i++, at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ":,");
        struct change change = {.name = at, .name_length = length, .kind = CHANGE_WAITING, .value = 1};

        change.host = is_host_pool(last, &change, p->host) ? p->host : NULL;
        if (p->queued > 0 && p->queued < (p->hold.from > 0 ? p->hold.from : ended))
            add_span(c, &change, p->queued, p->hold.from > 0 ? p->hold.from : ended);
        change.kind = CHANGE_WAITED;
        change.value = past_waited_ms(p);
        change.time = p->hold.from;
        if (p->queued > 0 && p->hold.from > 0 && change.value >= 0)
            add(c, &change);
        change.kind = CHANGE_HELD;
        change.value = demands.items[i].permits;
        if (p->hold.from > 0)
            add_span(c, &change, p->hold.from, MAX(p->hold.to > 0 ? p->hold.to : ended, p->hold.from));
    }
}

/* --- a pool in time --- */

struct now {                                   /* the state of a pool at some time */
    int64_t declared, override, held, waiting; /* of the first two -1: not known */
};

static int64_t limit_of(const struct now *now) {
    return now->override >= 0 ? now->override : now->declared;
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

static void apply(struct now *now, const struct change *change) {
    switch (change->kind) {
    case CHANGE_DECLARED:
        now->declared = change->value;
        break;
    case CHANGE_OVERRIDE:
        now->override = change->value;
        break;
    case CHANGE_HELD:
        now->held += change->value;
        break;
    case CHANGE_WAITING:
        now->waiting += change->value;
        break;
    case CHANGE_WAITED:
        break;
    }
}

/* Returns the first known limit, which counts from the beginning; -1: none. */
static int64_t first_limit(const struct change *changes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (changes[i].kind == CHANGE_DECLARED && changes[i].value >= 0)
            return changes[i].value;
    return -1;
}

static int make_pool(struct uses *u, const struct change *changes, size_t n, int64_t declared) {
    struct use_pool *p = &u->pools[u->n];
    struct now now = {.declared = declared, .override = -1};
    usec_t from = 0;

    *p =
        (struct use_pool){.name = changes->name, .name_length = changes->name_length, .host = changes->host};
    p->cells = calloc(u->n_cells, sizeof(*p->cells));
    if (!p->cells)
        return -ENOMEM;
    u->n++;
    for (size_t i = 0; i < n; i++) {
        pass(p, u, &now, from, changes[i].time);
        apply(&now, &changes[i]);
        from = MAX(from, changes[i].time);
    }
    pass(p, u, &now, from, u->until);
    for (size_t i = 0; i < u->n_cells; i++) {
        p->all.held += p->cells[i].held;
        p->all.allowed += p->cells[i].allowed;
    }
    return 0;
}

/* waits: has room for n. */
static void add_waits(struct use_pool *p, const struct uses *u, const struct change *changes, size_t n,
                      int64_t *waits) {
    size_t n_waits = 0;

    for (size_t i = 0; i < n; i++)
        if (changes[i].kind == CHANGE_WAITED && changes[i].time >= u->since && changes[i].time < u->until)
            waits[n_waits++] = changes[i].value;
    p->wait = figures_make(waits, n_waits);
}

/* --- all pools --- */

bool use_pool_is(const struct use_pool *p, const char *name) {
    return strlen(name) == p->name_length && strncmp(name, p->name, p->name_length) == 0;
}

static bool is_pattern(const struct change *c) {
    return c->name[c->name_length - 1] == '*';
}

/* Returns whether the pool is a key of the pattern, "tenant/" and a star. */
static bool is_key_of(const struct change *key, const struct change *pattern) {
    return key->name_length >= pattern->name_length &&
           strncmp(key->name, pattern->name, pattern->name_length - 1) == 0;
}

static int make_pools(struct uses *u, const struct changes *c) {
    _cleanup_free_ int64_t *waits = calloc(c->n + 1, sizeof(*waits));
    const struct change *pattern = NULL; /* it comes before its keys: a star precedes what a key may have */
    int64_t pattern_limit = -1;
    int k = waits ? 0 : -ENOMEM;

    u->pools = calloc(c->n + 1, sizeof(*u->pools));
    if (!u->pools)
        return -ENOMEM;
    for (size_t i = 0, next; i < c->n && k == 0; i = next) {
        const struct change *pool = &c->items[i];
        int64_t limit;

        for (next = i + 1; next < c->n && compare_pools(pool, &c->items[next]) == 0;)
            next++;
        limit = first_limit(pool, next - i);
        if (is_pattern(pool) && (!pattern || pattern_limit < 0 || !is_key_of(pool, pattern))) {
            pattern = pool;
            pattern_limit = limit;
        }
        if (pool->name[0] == '@' || is_pattern(pool)) /* not pools of jobs, nor patterns */
            continue;
        if (limit < 0 && pattern && is_key_of(pool, pattern))
            limit = pattern_limit;
        k = make_pool(u, pool, next - i, limit);
        if (k == 0)
            add_waits(&u->pools[u->n - 1], u, pool, next - i, waits);
    }
    return k;
}

int uses_make(struct uses *ret, const struct entries *e, const struct past *pasts, size_t n,
              const struct history_hosts *hosts, usec_t since, usec_t until, size_t n_cells) {
    struct uses u = {.since = since, .until = until, .n_cells = n_cells};
    struct changes limits = {}, all = {};
    int k = 0;

    for (size_t i = 0; i < e->n; i++)
        add_limits(&limits, &e->items[i]);
    for (size_t i = 0; i < limits.n; i++)
        add(&all, &limits.items[i]);
    keep_last(&limits);
    for (size_t i = 0; i < n; i++)
        if (!past_ended_with_boot(&pasts[i], hosts))
            add_run(&all, &limits, &pasts[i], until);
    k = limits.error < 0 ? limits.error : all.error;
    sort(&all, compare_changes);
    if (k == 0)
        k = make_pools(&u, &all);
    free(limits.items);
    free(all.items);
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
