/* SPDX-License-Identifier: MIT */
/* R2 and R7: grants in the order of tickets minus head starts, and tokens that grow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit-model.h"

/* --- tokens --- */

static void check_twice(struct audit *a) {
    for (size_t i = 1; i < a->n_holds; i++)
        if (a->holds[i].token == a->holds[i - 1].token)
            audit_find(a, AUDIT_TOKEN_TWICE, a->holds[i].entry, "token %" PRIu64 " was granted to run %s, too", a->holds[i].token,
                       a->holds[i - 1].run->id);
}

/* Whoever asked after somebody else's grant was logged gets a higher token. (That a lower one was logged later proves nothing: its
 * host may have heard of it late.) */
static void check_growth(struct audit *a) {
    usec_t first_logged = USEC_INFINITY, slack = usec_add(a->options->tolerance, a->report->doubt);
    const struct audit_hold *first = NULL;

    for (size_t i = a->n_holds; i-- > 0;) {
        const struct audit_hold *h = &a->holds[i];
        usec_t logged = audit_time(a, h->entry);

        if (h->entry->wait_ms >= 0 && first &&
            usec_sub(logged, (usec_t) (h->entry->wait_ms + 1) * USEC_PER_MSEC) > usec_add(first_logged, slack))
            audit_find(a, AUDIT_TOKEN_ORDER, h->entry, "its token %" PRIu64 " is below %" PRIu64
                       " of run %s, which was granted before this one asked", h->token, first->token, first->run->id);
        if (logged < first_logged) {
            first_logged = logged;
            first = h;
        }
        if (h->entry->ticket > h->token)
            audit_find(a, AUDIT_TOKEN_ORDER, h->entry, "its token %" PRIu64 " is below its own ticket %" PRIu64, h->token,
                       h->entry->ticket);
    }
}

/* --- tickets --- */

struct grant {
    const struct audit_run *run;
    const struct entry *entry;
    uint64_t token;
};

static bool shares_pool(const struct audit *a, const struct audit_run *x, const struct audit_run *y) {
    for (size_t i = 0; i < x->n_uses; i++)
        for (size_t k = 0; k < y->n_uses; k++)
            if (x->uses[i].pool == y->uses[k].pool && !a->pools[x->uses[i].pool].host == !x->of_host)
                return true;
    return false;
}

/* Whoever wants more than a limit is in no queue as long as that is so. */
static bool is_parked(const struct audit *a, const struct audit_run *r, const struct grant *g) {
    for (size_t i = 0; i < r->n_uses; i++) {
        size_t pool = r->uses[i].pool;
        uint32_t limit, highest;

        if (a->pools[pool].host ? r->of_host && audit_host_limit_at(a, pool, g->run, &limit, &highest) && r->uses[i].permits > limit
                                : audit_limit_at(a, pool, g->token, &limit) && r->uses[i].permits > limit)
            return true;
    }
    return false;
}

static bool same_numbers(const struct audit_run *x, const struct audit_run *y) {
    return !x->of_host == !y->of_host && (!x->of_host || strcmp(x->of_host, y->of_host) == 0);
}

static bool is_before(const struct audit_run *waiting, const struct audit_run *granted) {
    return waiting->score < granted->score || (waiting->score == granted->score && waiting->ticket < granted->ticket);
}

/* Against those that wait at this moment; those that do no longer are dropped. */
static void check_grant(struct audit *a, const struct grant *g, const struct audit_run **waiting, size_t *n_waiting) {
    size_t n = 0;
    bool told = false;

    for (size_t i = 0; i < *n_waiting; i++) {
        const struct audit_run *w = waiting[i];

        if (w->until <= g->token && same_numbers(w, g->run))
            continue;
        waiting[n++] = w;
        if (told || !same_numbers(w, g->run) || !is_before(w, g->run) || !shares_pool(a, w, g->run))
            continue;
        if (is_parked(a, w, g) || audit_is_absent(a, w, g->token)) {
            a->report->n_explained++;
            continue;
        }
        told = true;
        audit_find(a, AUDIT_OVERTAKEN, g->entry, "granted before run %s on %s, which has the earlier ticket %" PRIu64
                   " (this one: %" PRIu64 ") and waited until %" PRIu64, w->id, audit_run_host(w), w->ticket, g->run->ticket, w->until);
    }
    *n_waiting = n;
}

static int compare_tickets(const void *a, const void *b) {
    const struct audit_run *x = *(const struct audit_run *const *) a, *y = *(const struct audit_run *const *) b;

    return x->ticket < y->ticket ? -1 : x->ticket > y->ticket;
}

static int compare_grants(const void *a, const void *b) {
    const struct grant *x = a, *y = b;

    return x->token < y->token ? -1 : x->token > y->token;
}

/* Those that have a place in a queue that is known. A grant beyond a lost lease has none. One whose host never heard of it, and which asked
 * anew in its next session, had another place than the ticket that was told later. */
static size_t list_grants(const struct audit *a, struct grant *grants) {
    size_t n = 0;

    for (size_t i = 0; i < a->n_holds; i++)
        if (!a->holds[i].renewed && !a->holds[i].again && a->holds[i].run->has_place && a->holds[i].token >= a->holds[i].run->ticket)
            grants[n++] = (struct grant) {a->holds[i].run, a->holds[i].entry, a->holds[i].token};
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].of_host && a->runs[i].granted && a->runs[i].has_place)
            grants[n++] = (struct grant) {&a->runs[i], a->runs[i].granted, a->runs[i].granted->token};
    qsort(grants, n, sizeof(*grants), compare_grants);
    return n;
}

static int check_tickets(struct audit *a) {
    _cleanup_free_ const struct audit_run **queued = calloc(a->n_runs + 1, sizeof(*queued));
    _cleanup_free_ const struct audit_run **waiting = calloc(a->n_runs + 1, sizeof(*waiting));
    _cleanup_free_ struct grant *grants = calloc(a->n_runs + a->n_holds + 1, sizeof(*grants));
    size_t n = 0, next = 0, n_waiting = 0, n_grants;

    if (!queued || !waiting || !grants)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].until > 0)
            queued[n++] = &a->runs[i];
    qsort(queued, n, sizeof(*queued), compare_tickets);
    n_grants = list_grants(a, grants);
    for (size_t i = 0; i < n_grants; i++) {
        while (next < n && queued[next]->ticket < grants[i].token)
            waiting[n_waiting++] = queued[next++];
        check_grant(a, &grants[i], waiting, &n_waiting);
    }
    return 0;
}

int audit_check_order(struct audit *a) {
    check_twice(a);
    check_growth(a);
    return check_tickets(a);
}
