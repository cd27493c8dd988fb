/* SPDX-License-Identifier: MIT */
/* R1: no grant that the limit does not allow. Use above a limit that was lowered, or that was restored, is none; a grant then is. Permits
 * that were taken back count as long as the processes that had them were there, but for on-lease-lost = "continue". */
#include <errno.h>
#include <string.h>

#include "cli/audit-model.h"

#define HOLDERS_SHOWN 4

struct holder {
    const struct audit_run *run;
    uint64_t end, there; /* of its permits, of its processes */
    uint64_t untold;
    const char *why;
};

struct sweep { /* over the grants of one pool, in their order */
    struct audit *a;
    struct holder *active;
    size_t pool, n_active;
    uint64_t told; /* when the grant that is judged was told, as a number; 0: nobody asks */
};

/* Its permits were taken back, and its processes were gone before the grant at this number was told, but not before that number: when that
 * was drawn is not known. Where Redis's clock was set back its numbers are behind the time. */
static bool may_be_gone(const struct sweep *s, const struct holder *h, uint64_t number) {
    return h->end < number && h->there < s->told;
}

static bool may_be_over(const struct sweep *s, const struct holder *h, uint64_t number) {
    return !(h->end < number && h->run->continues) && ((h->untold > 0 && h->untold < number) || may_be_gone(s, h, number));
}

static const char *why_over(const struct sweep *s, const struct holder *h, uint64_t number) {
    return may_be_gone(s, h, number) ? "its permits were taken back, and nobody told in time of this grant" : h->why;
}

/* All of them, or those that may be over at this number and why (unknown). */
static const char *holders_text(const struct sweep *s, uint64_t number, bool unknown, char *buffer, size_t size) {
    size_t length = 0, n = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < s->n_active; i++) {
        const struct holder *h = &s->active[i];

        if ((unknown && !may_be_over(s, h, number)) || n++ >= HOLDERS_SHOWN || length >= size)
            continue;
        length += (size_t) snprintf(buffer + length, size - length, "%s%.64s on %.64s%s%s%s", n > 1 ? ", " : "", h->run->id,
                                    audit_run_host(h->run), unknown ? " (" : "", unknown ? why_over(s, h, number) : "", unknown ? ")" : "");
    }
    if (n > HOLDERS_SHOWN && length < size)
        snprintf(buffer + length, size - length, ", +%zu", n - HOLDERS_SHOWN);
    return buffer;
}

/* excused: what of it runs on after a lost lease as its config wants it to; unknown: what may have ended untold. */
static uint64_t sweep_used(const struct sweep *s, uint64_t number, uint64_t *ret_excused, uint64_t *ret_unknown) {
    uint64_t used = 0, excused = 0, unknown = 0;

    for (size_t i = 0; i < s->n_active; i++) {
        uint32_t permits = audit_permits(s->active[i].run, s->pool);

        used += permits;
        if (s->active[i].end < number && s->active[i].run->continues)
            excused += permits;
        else if (may_be_over(s, &s->active[i], number))
            unknown += permits;
    }
    *ret_excused = excused;
    *ret_unknown = unknown;
    return used;
}

static void sweep_judge(struct sweep *s, const struct entry *entry, const struct audit_run *r, uint64_t number, const uint32_t *limit) {
    struct audit_pool *p = &s->a->pools[s->pool];
    uint64_t excused, unknown, used = sweep_used(s, number, &excused, &unknown) + audit_permits(r, s->pool);
    char holders[1024];

    if (!limit) {
        if (!p->complained)
            audit_find(s->a, AUDIT_NO_LIMIT, entry, "nothing tells the limit of pool %s: give it by --limit %s=N", p->name, p->name);
        p->complained = true;
    } else if (used > *limit && used - excused <= *limit) {
        s->a->report->n_continued++;
    } else if (used > *limit && used - excused - unknown <= *limit) {
        audit_doubt(s->a, AUDIT_ABOVE_LIMIT, entry,
                    "%" PRIu64 " permits of pool %s in use, its limit is %" PRIu32 ", unless these were over: %s", used, p->name, *limit,
                    holders_text(s, number, true, holders, sizeof(holders)));
    } else if (used > *limit) {
        audit_find(s->a, AUDIT_ABOVE_LIMIT, entry, "%" PRIu64 " permits of pool %s in use, its limit is %" PRIu32 "; held before: %s", used,
                   p->name, *limit, holders_text(s, number, false, holders, sizeof(holders)));
    }
}

static void sweep_drop(struct sweep *s, size_t i) {
    memmove(&s->active[i], &s->active[i + 1], (--s->n_active - i) * sizeof(*s->active));
}

/* --- pools of the cluster --- */

static void sweep_hold(struct sweep *s, const struct audit_hold *h) {
    uint32_t limit = 0;
    bool known = audit_limit_at(s->a, s->pool, h->token, &limit);

    for (size_t i = s->n_active; i-- > 0;)
        if ((s->active[i].end < h->token && s->active[i].there < h->token) || s->active[i].run == h->run)
            sweep_drop(s, i);
    s->told = audit_time(s->a, h->entry);
    if (!h->renewed) /* else it is beyond the limit if need be, as all that is restored */
        sweep_judge(s, h->entry, h->run, h->token, known ? &limit : NULL);
    s->active[s->n_active++] = (struct holder) {h->run, h->end, h->there, h->untold, h->why};
}

static void check_cluster_pool(struct sweep *s) {
    for (size_t i = 0; i < s->a->n_holds; i++)
        if (audit_permits(s->a->holds[i].run, s->pool) > 0)
            sweep_hold(s, &s->a->holds[i]);
}

/* --- pools of one host: its journal tells the order --- */

static bool is_over(const struct audit_run *active, const struct audit_run *r) {
    if (active->end_order > 0)
        return active->end_order < r->order;
    return active->granted->boot && r->granted->boot && strcmp(active->granted->boot, r->granted->boot) != 0;
}

static void check_host_pool(struct sweep *s, const struct audit_run **by_order, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t lowest, limit = 0;
        bool known;

        if (audit_permits(by_order[i], s->pool) == 0)
            continue;
        for (size_t k = s->n_active; k-- > 0;)
            if (is_over(s->active[k].run, by_order[i]))
                sweep_drop(s, k);
        known = audit_host_limit_at(s->a, s->pool, by_order[i], &lowest, &limit);
        sweep_judge(s, by_order[i]->granted, by_order[i], 0, known ? &limit : NULL);
        s->active[s->n_active++] = (struct holder) {.run = by_order[i]};
    }
}

static int compare_orders(const void *a, const void *b) {
    const struct audit_run *x = *(const struct audit_run *const *) a, *y = *(const struct audit_run *const *) b;

    return x->order < y->order ? -1 : x->order > y->order;
}

int audit_check_use(struct audit *a) {
    size_t max = a->n_runs + a->n_holds + 1, n = 0;
    _cleanup_free_ const struct audit_run **by_order = calloc(max, sizeof(*by_order));
    _cleanup_free_ struct holder *active = calloc(max, sizeof(*active));

    if (!by_order || !active)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].granted)
            by_order[n++] = &a->runs[i];
    qsort(by_order, n, sizeof(*by_order), compare_orders);
    for (size_t i = 0; i < a->n_pools; i++) {
        struct sweep s = {.a = a, .active = active, .pool = i};

        if (a->pools[i].host)
            check_host_pool(&s, by_order, n);
        else
            check_cluster_pool(&s);
    }
    return 0;
}
