/* SPDX-License-Identifier: MIT */
#include "cli/history/use-changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/array.h"
#include "base/demand.h"
#include "base/journal/limit-word.h"
#include "cli/history/stats.h"

void changes_add(struct changes *c, const struct change *change) {
    if (!array_grow(c->items, c->n)) {
        c->error = -ENOMEM;
        return;
    }
    c->items[c->n] = *change;
    c->items[c->n].order = c->n;
    c->n++;
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
 * declaration of a host. */
static void add_limit(struct changes *c, const struct entry *e, const struct limit_word *w, const char *at) {
    struct change change = {.name = at,
                            .name_length = strlen(w->pool),
                            .time = e->time,
                            .value = w->none ? -1 : (int64_t) w->limit};

    if (w->kind == LIMIT_HOST) {
        change.host = e->host;
        changes_add(c, &change);
    } else if (e->clock > 0 && w->kind == LIMIT_DECLARED) {
        changes_add(c, &change);
        change.kind = CHANGE_CONNECTED;
        if (entry_is(e, "redis-connected"))
            changes_add(c, &change);
    } else if (e->clock > 0) {
        change.kind = CHANGE_OVERRIDE;
        changes_add(c, &change);
    }
}

/* Adds overrides last, because a connection ends earlier ones. */
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
    changes_add(c, &begin);
    changes_add(c, &end);
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
            changes_add(c, &change);
        change.kind = CHANGE_HELD;
        change.value = demands.items[i].permits;
        if (p->hold.from > 0)
            add_span(c, &change, p->hold.from, MAX(p->hold.to > 0 ? p->hold.to : ended, p->hold.from));
    }
}

/* --- all of them --- */

int changes_make(struct changes *ret, const struct entries *e, const struct past *pasts, size_t n,
                 const struct history_hosts *hosts, usec_t until) {
    struct changes limits = {}, all = {};

    for (size_t i = 0; i < e->n; i++)
        add_limits(&limits, &e->items[i]);
    for (size_t i = 0; i < limits.n; i++)
        changes_add(&all, &limits.items[i]);
    keep_last(&limits);
    for (size_t i = 0; i < n; i++)
        if (!past_ended_with_boot(&pasts[i], hosts))
            add_run(&all, &limits, &pasts[i], until);
    if (limits.error < 0)
        all.error = limits.error;
    sort(&all, compare_changes);
    changes_done(&limits);
    *ret = all;
    return all.error;
}

size_t changes_count(const struct changes *c, const struct change *pool, bool its_own) {
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_pools(&c->items[middle], pool) < its_own)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void changes_done(struct changes *c) {
    free(c->items);
    *c = (struct changes) {};
}
