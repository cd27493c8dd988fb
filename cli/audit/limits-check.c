/* SPDX-License-Identifier: MIT */
/* R1: no grant exceeds the limit, also in the pool of a job that hosts share. After a limit was lowered or
 * claims were restored, use may be above the limit, but no grant. Reclaimed permits count as long as their
 * processes may exist, unless on-lease-lost = "continue". */
#include <errno.h>
#include <string.h>

#include "cli/audit/index.h"
#include "cli/audit/model.h"

#define HOLDERS_SHOWN 4

struct holder { /* one holder of permits of a pool: past, present or future */
    const struct audit_run *run;
    uint64_t number;     /* of its grant; grants are checked in ascending order */
    uint64_t last;       /* the last number at which it counts as a holder */
    uint64_t end, there; /* of its permits, of its processes */
    uint64_t unlogged_after;
    const char *why;
    uint32_t permits;
    bool is_active;       /* counts as a holder now */
    bool is_unlogged;     /* ... and may have ended already, without an entry */
    size_t before, after; /* a list of the active holders, by number */
    /* At the check of this grant: the holders whose time is over, and those that may have ended unlogged
     * from then on. */
    size_t first_over, next_over;
    size_t first_unlogged, next_unlogged;
};

#define NONE SIZE_MAX /* at the ends of lists */

struct sweep { /* over the grants of one pool, in their order; use is updated step by step */
    struct audit *a;
    size_t pool;
    struct holder *holders; /* all of the pool, by number */
    size_t n;
    size_t first, last, n_active;
    uint64_t used;       /* of the active holders */
    size_t n_unlogged;   /* active holders that may have ended without an entry */
    uint64_t unlogged;   /* their permits */
    size_t n_taken;      /* reclaimed holders with remaining processes; if not 0, each holder is checked */
    size_t *of_run;      /* the last holder of each run, in this pool or an earlier one */
    uint64_t logged_at;  /* when the current grant was logged, as a number; 0: not needed */
};

/* Returns whether a reclaimed holder may be gone: its processes ended between this grant's token and its log
 * entry, so the order cannot be decided. After Redis's clock was set back, its numbers lag behind time. */
static bool may_be_gone(const struct sweep *s, const struct holder *h, uint64_t number) {
    return h->end < number && h->there < s->logged_at;
}

static bool may_be_over(const struct sweep *s, const struct holder *h, uint64_t number) {
    return !(h->end < number && h->run->continues) &&
           ((h->unlogged_after > 0 && h->unlogged_after < number) || may_be_gone(s, h, number));
}

static const char *why_over(const struct sweep *s, const struct holder *h, uint64_t number) {
    return may_be_gone(s, h, number) ? "its permits were reclaimed, and this grant was logged late" : h->why;
}

/* Lists all holders, or with `unknown` those that may have ended at this number, and why. */
static const char *holders_text(const struct sweep *s, uint64_t number, bool unknown, char *buffer, size_t size) {
    bool is_counted = !unknown || s->n_taken == 0;
    size_t length = 0, n = 0;

    buffer[0] = '\0';
    for (size_t i = s->first; i != NONE && (!is_counted || n < HOLDERS_SHOWN); i = s->holders[i].after) {
        const struct holder *h = &s->holders[i];

        if ((unknown && !may_be_over(s, h, number)) || n++ >= HOLDERS_SHOWN || length >= size)
            continue;
        length += (size_t) snprintf(buffer + length, size - length, "%s%.64s on %.64s%s%s%s", n > 1 ? ", " : "", h->run->id,
                                    audit_run_host(h->run), unknown ? " (" : "", unknown ? why_over(s, h, number) : "", unknown ? ")" : "");
    }
    n = !is_counted ? n : unknown ? s->n_unlogged : s->n_active;
    if (n > HOLDERS_SHOWN && length < size)
        snprintf(buffer + length, size - length, ", +%zu", n - HOLDERS_SHOWN);
    return buffer;
}

/* excused: permits of runs that continue after a lost lease, as configured. unknown: permits of holders that
 * may have ended without an entry. */
static void sweep_count_uncertain(const struct sweep *s, uint64_t number, uint64_t *ret_excused,
                                  uint64_t *ret_unknown) {
    *ret_excused = 0;
    *ret_unknown = s->unlogged;
    if (s->n_taken == 0)
        return;
    *ret_unknown = 0;
    for (size_t i = s->first; i != NONE; i = s->holders[i].after) {
        const struct holder *h = &s->holders[i];

        if (h->end < number && h->run->continues)
            *ret_excused += h->permits;
        else if (may_be_over(s, h, number))
            *ret_unknown += h->permits;
    }
}

/* The runs of a job with on = "any" share a pool, which allows one. */
static enum audit_kind kind_above(const struct audit_pool *p) {
    return pool_name_parse(p->name) == POOL_NAME_JOB ? AUDIT_DUE_OVERLAP : AUDIT_ABOVE_LIMIT;
}

static void sweep_check_grant(struct sweep *s, const struct entry *entry, const struct audit_run *r,
                              uint64_t number, const uint32_t *limit) {
    struct audit_pool *p = &s->a->pools[s->pool];
    uint64_t excused, unknown, used = s->used + audit_run_permits(r, s->pool);
    char holders[1024];

    if (!limit) {
        if (!p->complained)
            audit_report_violation(s->a, AUDIT_NO_LIMIT, entry,
                                   "the limit of pool %s is not logged; pass it with --limit %s=N", p->name,
                                   p->name);
        p->complained = true;
        return;
    }
    if (used <= *limit)
        return;
    sweep_count_uncertain(s, number, &excused, &unknown);
    if (used - excused <= *limit) {
        s->a->report->n_continued++;
    } else if (used - excused - unknown <= *limit) {
        audit_report_unproved(s->a, kind_above(p), entry,
                    "%" PRIu64 " permits of pool %s in use, its limit is %" PRIu32 ", unless these were over: %s", used, p->name, *limit,
                    holders_text(s, number, true, holders, sizeof(holders)));
    } else {
        audit_report_violation(
            s->a, kind_above(p), entry,
            "%" PRIu64 " permits of pool %s in use, its limit is %" PRIu32 "; held before: %s", used,
            p->name, *limit, holders_text(s, number, false, holders, sizeof(holders)));
    }
}

static bool is_taken(const struct holder *h) {
    return h->there > h->end;
}

static void sweep_drop(struct sweep *s, struct holder *h) {
    if (!h->is_active)
        return;
    *(h->before == NONE ? &s->first : &s->holders[h->before].after) = h->after;
    *(h->after == NONE ? &s->last : &s->holders[h->after].before) = h->before;
    h->is_active = false;
    s->n_active--;
    s->used -= h->permits;
    s->unlogged -= h->is_unlogged ? h->permits : 0;
    s->n_unlogged -= h->is_unlogged;
    s->n_taken -= is_taken(h);
}

static void sweep_set_unlogged(struct sweep *s, struct holder *h) {
    if (!h->is_active)
        return;
    h->is_unlogged = true;
    s->unlogged += h->permits;
    s->n_unlogged++;
}

/* Removes the holders whose time is over at this number, and the run's previous grant, which this one
 * renews. */
static void sweep_move(struct sweep *s, size_t i) {
    size_t run = (size_t) (s->holders[i].run - s->a->runs), before = s->of_run[run];

    for (size_t k = s->holders[i].first_over; k != NONE; k = s->holders[k].next_over)
        sweep_drop(s, &s->holders[k]);
    for (size_t k = s->holders[i].first_unlogged; k != NONE; k = s->holders[k].next_unlogged)
        sweep_set_unlogged(s, &s->holders[k]);
    if (before < i && s->holders[before].run == s->holders[i].run)
        sweep_drop(s, &s->holders[before]);
    s->of_run[run] = i;
}

/* Returns the first holder after i that is checked at a higher number; n: none. */
static size_t find_after(const struct sweep *s, size_t i, uint64_t number) {
    size_t found = number == UINT64_MAX ? s->n : index_count_below(&s->holders->number, sizeof(*s->holders), s->n, number + 1);

    return found > i ? found : i + 1;
}

static void sweep_add(struct sweep *s, size_t i) {
    struct holder *h = &s->holders[i];
    size_t over = find_after(s, i, h->last);
    size_t unlogged = h->unlogged_after > 0 ? find_after(s, i, h->unlogged_after) : s->n;

    h->before = s->last;
    h->after = NONE;
    *(s->last == NONE ? &s->first : &s->holders[s->last].after) = i;
    s->last = i;
    h->is_active = true;
    s->n_active++;
    s->used += h->permits;
    s->n_taken += is_taken(h);
    if (over < s->n) {
        h->next_over = s->holders[over].first_over;
        s->holders[over].first_over = i;
    }
    if (unlogged < s->n) {
        h->next_unlogged = s->holders[unlogged].first_unlogged;
        s->holders[unlogged].first_unlogged = i;
    }
}

static void sweep_begin(struct sweep *s, size_t pool, size_t n) {
    *s = (struct sweep) {.a = s->a, .holders = s->holders, .of_run = s->of_run, .pool = pool, .n = n, .first = NONE, .last = NONE};
    for (size_t i = 0; i < n; i++)
        s->holders[i].first_over = s->holders[i].next_over = s->holders[i].first_unlogged =
            s->holders[i].next_unlogged = NONE;
}

/* --- pools of the cluster --- */

static void check_cluster_pool(struct sweep *s, size_t pool, const struct audit_pool_users *users) {
    const uint64_t *of_pool = &users->items[users->first[pool]];
    size_t n = users->first[pool + 1] - users->first[pool];

    for (size_t i = 0; i < n; i++) {
        const struct audit_hold *h = &s->a->holds[of_pool[i]];

        s->holders[i] = (struct holder){.run = h->run,
                                        .number = h->token,
                                        .last = h->end > h->there ? h->end : h->there,
                                        .end = h->end,
                                        .there = h->there,
                                        .unlogged_after = h->unlogged_after,
                                        .why = h->why,
                                        .permits = audit_run_permits(h->run, pool)};
    }
    sweep_begin(s, pool, n);
    for (size_t i = 0; i < n; i++) {
        const struct audit_hold *h = &s->a->holds[of_pool[i]];
        uint32_t limit = 0;
        bool known = audit_limits_at(s->a, pool, h->token, &limit);

        sweep_move(s, i);
        s->logged_at = audit_hosts_time(s->a, h->entry);
        if (!h->renewed) /* a renewed grant may exceed the limit, like a restored one */
            sweep_check_grant(s, h->entry, h->run, h->token, known ? &limit : NULL);
        sweep_add(s, i);
    }
}

/* --- pools of one host: its journal has the order --- */

/* A reboot of the host ends holders without a logged end. */
static void sweep_drop_booted(struct sweep *s, const char *boot) {
    for (size_t i = s->first, after; i != NONE; i = after) {
        struct holder *h = &s->holders[i];

        after = h->after;
        if (h->last == UINT64_MAX && h->run->granted->boot && strcmp(h->run->granted->boot, boot) != 0)
            sweep_drop(s, h);
    }
}

static void check_host_pool(struct sweep *s, size_t pool, const struct audit_run *const *by_order,
                            const struct audit_pool_users *users) {
    const uint64_t *of_pool = &users->items[users->first[pool]];
    size_t n = users->first[pool + 1] - users->first[pool];
    const char *boot = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct audit_run *r = by_order[of_pool[i]];

        s->holders[i] = (struct holder) {.run = r, .number = r->order, .last = r->end_order > 0 ? r->end_order : UINT64_MAX,
                                         .permits = audit_run_permits(r, pool)};
    }
    sweep_begin(s, pool, n);
    for (size_t i = 0; i < n; i++) {
        const struct audit_run *r = s->holders[i].run;
        uint32_t lowest, limit = 0;
        bool known = audit_limits_of_host_at(s->a, pool, r, &lowest, &limit);

        if (boot && r->granted->boot && strcmp(boot, r->granted->boot) != 0)
            sweep_drop_booted(s, r->granted->boot);
        boot = r->granted->boot ? r->granted->boot : boot;
        sweep_move(s, i);
        sweep_check_grant(s, r->granted, r, 0, known ? &limit : NULL);
        sweep_add(s, i);
    }
}

static int compare_orders(const void *a, const void *b) {
    const struct audit_run *x = *(const struct audit_run *const *) a, *y = *(const struct audit_run *const *) b;

    return x->order < y->order ? -1 : x->order > y->order;
}

static int list_users(struct audit *a, const struct audit_run **by_order, struct audit_pool_users *ret_holds,
                      struct audit_pool_users *ret_grants) {
    _cleanup_free_ const struct audit_run **of_holds = calloc(a->n_holds + 1, sizeof(*of_holds));
    size_t n = 0;
    int k;

    if (!of_holds)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_holds; i++)
        of_holds[i] = a->holds[i].run;
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].granted)
            by_order[n++] = &a->runs[i];
    qsort(by_order, n, sizeof(*by_order), compare_orders);
    k = audit_pools_make_users(a, of_holds, a->n_holds, ret_holds);
    return k < 0 ? k : audit_pools_make_users(a, by_order, n, ret_grants);
}

int limits_check(struct audit *a) {
    _cleanup_free_ const struct audit_run **by_order = calloc(a->n_runs + 1, sizeof(*by_order));
    _cleanup_free_ struct holder *holders = calloc(a->n_runs + a->n_holds + 1, sizeof(*holders));
    _cleanup_free_ size_t *of_run = calloc(a->n_runs + 1, sizeof(*of_run));
    _cleanup_(audit_pools_users_done) struct audit_pool_users holds = {.n = 0}, grants = {.n = 0};
    struct sweep s = {.a = a, .holders = holders, .of_run = of_run};
    int k = by_order && holders && of_run ? list_users(a, by_order, &holds, &grants) : -ENOMEM;

    for (size_t i = 0; i < a->n_pools && k == 0; i++)
        if (a->pools[i].host)
            check_host_pool(&s, i, by_order, &grants);
        else
            check_cluster_pool(&s, i, &holds);
    return k;
}
