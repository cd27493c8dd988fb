/* SPDX-License-Identifier: MIT */
/* R1: no grant that the limit does not allow. Use above a limit that was lowered, or that was restored, is none; a grant then is. */
#include <errno.h>
#include <string.h>

#include "cli/audit-model.h"

#define HOLDERS_SHOWN 4

struct step { /* from this time on this limit is in force */
    usec_t time;
    uint32_t limit;
};

struct steps {
    struct step *items;
    size_t n;
};

struct declared {
    const char *host;
    uint32_t limit;
};

/* The lowest that is declared. False: by nobody. */
static bool find_lowest(const struct declared *declared, size_t n, uint32_t *ret) {
    *ret = UINT32_MAX;
    for (size_t i = 0; i < n; i++)
        *ret = declared[i].limit < *ret ? declared[i].limit : *ret;
    return n > 0;
}

static void declare(struct declared *declared, size_t *n, const struct audit_change *c) {
    size_t i = 0;

    while (i < *n && strcmp(declared[i].host, c->host) != 0)
        i++;
    if (!c->none) {
        declared[i] = (struct declared) {c->host, c->limit};
        *n += i == *n;
    } else if (i < *n) {
        declared[i] = declared[--*n];
    }
}

static int make_steps(const struct audit_pool *p, struct steps *ret) {
    _cleanup_free_ struct declared *declared = calloc(p->n_changes + 1, sizeof(*declared));
    bool overridden = false;
    uint32_t override = 0, lowest = 0;
    size_t n = 0;

    ret->items = calloc(p->n_changes + 1, sizeof(*ret->items));
    if (!declared || !ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_changes; i++) {
        const struct audit_change *c = &p->changes[i];

        if (c->host) {
            declare(declared, &n, c);
            overridden &= !(p->host && c->anew);
        } else {
            overridden = !c->none;
            override = c->limit;
        }
        if (overridden || find_lowest(declared, n, &lowest))
            ret->items[ret->n++] = (struct step) {c->time, overridden ? override : lowest};
    }
    return 0;
}

/* The highest that may have been in force at a time. False: not known. */
static bool find_limit(const struct audit *a, const struct audit_pool *p, const struct steps *s, usec_t time, uint32_t *ret) {
    usec_t from = usec_sub(time, a->options->tolerance), to = usec_add(time, AUDIT_CHANGE_USEC);
    bool known = false;

    *ret = 0;
    if (p->given && p->given->fixed) {
        *ret = p->given->limit;
        return true;
    }
    for (size_t i = 0; i < s->n && s->items[i].time <= to; i++) {
        if (i + 1 < s->n && s->items[i + 1].time <= from)
            continue;
        *ret = s->items[i].limit > *ret ? s->items[i].limit : *ret;
        known = true;
    }
    if (!known && p->given) {
        *ret = p->given->limit;
        known = true;
    }
    return known;
}

static uint32_t permits_of(const struct audit_run *r, size_t pool) {
    for (size_t i = 0; i < r->n_uses; i++)
        if (r->uses[i].pool == pool)
            return r->uses[i].permits;
    return 0;
}

static const char *holders_text(struct audit_run *const *active, size_t n, char *buffer, size_t size) {
    size_t length = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < n && i < HOLDERS_SHOWN && length < size; i++)
        length += (size_t) snprintf(buffer + length, size - length, "%s%.64s on %.64s", i > 0 ? ", " : "", active[i]->id,
                                    active[i]->granted->host);
    if (n > HOLDERS_SHOWN && length < size)
        snprintf(buffer + length, size - length, ", +%zu", n - HOLDERS_SHOWN);
    return buffer;
}

struct sweep {
    struct audit *a;
    struct steps steps;
    struct audit_run **active;
    size_t pool, n_active;
};

/* A run whose lease was lost, and that goes on as its config wants it to, runs beside those that were granted its permits since. */
static bool is_continued(const struct audit_run *r) {
    return r->continues && r->reclaimed;
}

static void sweep_grant(struct sweep *s, struct audit_run *r) {
    struct audit_pool *p = &s->a->pools[s->pool];
    uint32_t permits = permits_of(r, s->pool), limit;
    uint64_t used = permits, continued = 0;
    char holders[512];

    for (size_t i = 0; i < s->n_active; i++) {
        used += permits_of(s->active[i], s->pool);
        continued += is_continued(s->active[i]) ? permits_of(s->active[i], s->pool) : 0;
    }
    if (!find_limit(s->a, p, &s->steps, p->host ? audit_time(s->a, r->granted) : r->token, &limit)) {
        if (!p->complained)
            audit_find(s->a, AUDIT_NO_LIMIT, r->granted, "nothing tells the limit of pool %s: give it by --limit %s=N", p->name, p->name);
        p->complained = true;
    } else if (used > limit && used - continued <= limit) {
        s->a->report->n_continued++;
    } else if (used > limit) {
        audit_find(s->a, AUDIT_ABOVE_LIMIT, r->granted, "%" PRIu64 " permits of pool %s in use, its limit is %" PRIu32 "; held before: %s",
                   used, p->name, limit, holders_text(s->active, s->n_active, holders, sizeof(holders)));
    }
    s->active[s->n_active++] = r;
}

/* Those that are over when r is granted. Of a pool of one host its journal tells the order, of the cluster's the times. */
static bool is_over(const struct sweep *s, const struct audit_run *active, const struct audit_run *r) {
    if (!s->a->pools[s->pool].host)
        return active->end != USEC_INFINITY && active->end <= usec_add(r->token, s->a->options->tolerance);
    if (active->end_order > 0)
        return active->end_order < r->order;
    return active->granted->boot && r->granted->boot && strcmp(active->granted->boot, r->granted->boot) != 0;
}

static void sweep_forget(struct sweep *s, const struct audit_run *r) {
    size_t n = 0;

    for (size_t i = 0; i < s->n_active; i++)
        if (!is_over(s, s->active[i], r))
            s->active[n++] = s->active[i];
    s->n_active = n;
}

static int compare_orders(const void *a, const void *b) {
    const struct audit_run *x = *(struct audit_run *const *) a, *y = *(struct audit_run *const *) b;

    return x->order < y->order ? -1 : x->order > y->order;
}

static int check_pool(struct audit *a, size_t pool, struct audit_run **runs, size_t n) {
    _cleanup_free_ struct audit_run **active = calloc(n + 1, sizeof(*active));
    struct sweep s = {.a = a, .active = active, .pool = pool};
    int k = active ? make_steps(&a->pools[pool], &s.steps) : -ENOMEM;

    for (size_t i = 0; i < n && k == 0; i++) {
        if (permits_of(runs[i], pool) == 0)
            continue;
        sweep_forget(&s, runs[i]);
        sweep_grant(&s, runs[i]);
    }
    free(s.steps.items);
    return k;
}

int audit_check_use(struct audit *a) {
    _cleanup_free_ struct audit_run **by_order = calloc(a->n_runs + 1, sizeof(*by_order));
    size_t n = 0;
    int k = by_order ? 0 : -ENOMEM;

    for (size_t i = 0; k == 0 && i < a->n_runs; i++)
        if (a->runs[i].granted)
            by_order[n++] = &a->runs[i];
    if (k == 0)
        qsort(by_order, n, sizeof(*by_order), compare_orders);
    for (size_t i = 0; k == 0 && i < a->n_pools; i++)
        k = a->pools[i].host ? check_pool(a, i, by_order, n) : check_pool(a, i, a->granted, a->n_granted);
    return k;
}
