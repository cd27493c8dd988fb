/* SPDX-License-Identifier: MIT */
/* R2 and R7: grants in the order of tickets minus head starts, and tokens that grow. */
#include <errno.h>
#include <string.h>

#include "cli/audit-model.h"

#define SCORE_STEP USEC_PER_MSEC /* head starts are told in milliseconds */

/* --- tokens --- */

static void check_twice(struct audit *a) {
    for (size_t i = 1; i < a->n_granted; i++)
        if (a->granted[i]->token == a->granted[i - 1]->token)
            audit_find(a, AUDIT_TOKEN_TWICE, a->granted[i]->granted, "token %" PRIu64 " was granted to run %s, too", a->granted[i]->token,
                       a->granted[i - 1]->id);
}

/* Whoever asked after somebody else's grant was logged gets a higher token. (That a lower one was logged later proves nothing: its
 * host may have heard of it late.) */
static void check_growth(struct audit *a) {
    usec_t first_logged = USEC_INFINITY, slack = usec_add(a->options->tolerance, a->report->doubt);
    const struct audit_run *first = NULL;

    for (size_t i = a->n_granted; i-- > 0;) {
        const struct audit_run *r = a->granted[i];
        usec_t logged = audit_time(a, r->granted);

        if (r->granted->wait_ms >= 0 && first &&
            usec_sub(logged, (usec_t) (r->granted->wait_ms + 1) * USEC_PER_MSEC) > usec_add(first_logged, slack))
            audit_find(a, AUDIT_TOKEN_ORDER, r->granted, "its token %" PRIu64 " is below %" PRIu64
                       " of run %s, which was granted before this one asked", r->token, first->token, first->id);
        if (logged < first_logged) {
            first_logged = logged;
            first = r;
        }
        if (r->ticket > r->token)
            audit_find(a, AUDIT_TOKEN_ORDER, r->granted, "its token %" PRIu64 " is below its own ticket %" PRIu64, r->token, r->ticket);
    }
}

/* --- tickets --- */

/* Until when a claim waited, by Redis's clock; 0: it is not known to have waited. */
static usec_t waited_until(const struct audit *a, const struct audit_run *r) {
    if (r->ticket == 0 || r->n_uses == 0)
        return 0;
    if (r->token > 0)
        return r->token;
    return r->withdrawn && !r->granted ? usec_sub(audit_time(a, r->withdrawn), a->options->tolerance) : 0;
}

static bool shares_pool(const struct audit *a, const struct audit_run *x, const struct audit_run *y) {
    for (size_t i = 0; i < x->n_uses; i++)
        for (size_t k = 0; k < y->n_uses; k++)
            if (x->uses[i].pool == y->uses[k].pool && !a->pools[x->uses[i].pool].host)
                return true;
    return false;
}

/* What takes a claim out of its queue for a while. */
static bool is_reason(const struct entry *e, const char *host) {
    static const char *const events[] = {"redis-lost", "redis-connected", "session-lost", "ready", "host-name-taken", "lease-differs"};

    if (strcmp(e->event, "grace-begun") == 0)
        return true; /* hosts tell what waits there one after the other */
    if (strcmp(e->event, "host-buried") == 0 && strcmp(e->host, host) == 0)
        return true;
    for (size_t i = 0; i < ELEMENTSOF(events); i++)
        if (strcmp(e->event, events[i]) == 0 && strcmp(e->host, host) == 0)
            return true;
    return false;
}

static bool is_explained(const struct audit *a, const struct audit_run *r, usec_t until) {
    const char *host = (r->granted ? r->granted : r->queued)->host;

    if (r->parked)
        return true;
    for (size_t i = 0; i < a->n_events; i++)
        if (is_reason(a->events[i], host)) {
            usec_t time = audit_time(a, a->events[i]);

            if (time + a->options->tolerance >= r->ticket && time <= usec_add(until, AUDIT_CHANGE_USEC))
                return true;
        }
    return false;
}

static bool is_overtaken(const struct audit *a, const struct audit_run *waiting, const struct audit_run *granted) {
    return usec_add(waiting->score, waiting->score != waiting->ticket || granted->score != granted->ticket ? SCORE_STEP : 0) <
               granted->score && shares_pool(a, waiting, granted);
}

static int compare_tickets(const void *a, const void *b) {
    const struct audit_run *x = *(struct audit_run *const *) a, *y = *(struct audit_run *const *) b;

    return x->ticket < y->ticket ? -1 : x->ticket > y->ticket;
}

/* Against those that wait at this moment; those that do no longer are dropped. */
static void check_grant(struct audit *a, const struct audit_run *granted, struct audit_run **waiting, size_t *n_waiting) {
    size_t n = 0;
    bool told = false;

    for (size_t i = 0; i < *n_waiting; i++) {
        struct audit_run *w = waiting[i];
        usec_t until = waited_until(a, w);

        if (until <= granted->token)
            continue;
        waiting[n++] = w;
        if (told || !is_overtaken(a, w, granted))
            continue;
        if (is_explained(a, w, until)) {
            a->report->n_explained++;
            continue;
        }
        told = true;
        audit_find(a, AUDIT_OVERTAKEN, granted->granted, "granted before run %s on %s, which has the earlier ticket %" PRIu64
                   " (this one: %" PRIu64 ")", w->id, (w->granted ? w->granted : w->queued)->host, w->ticket, granted->ticket);
    }
    *n_waiting = n;
}

static int check_tickets(struct audit *a) {
    _cleanup_free_ struct audit_run **queued = calloc(a->n_runs + 1, sizeof(*queued));
    _cleanup_free_ struct audit_run **waiting = calloc(a->n_runs + 1, sizeof(*waiting));
    size_t n = 0, next = 0, n_waiting = 0;

    if (!queued || !waiting)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_runs; i++)
        if (waited_until(a, &a->runs[i]) > a->runs[i].ticket)
            queued[n++] = &a->runs[i];
    qsort(queued, n, sizeof(*queued), compare_tickets);
    for (size_t i = 0; i < a->n_granted; i++) {
        while (next < n && queued[next]->ticket < a->granted[i]->token)
            waiting[n_waiting++] = queued[next++];
        check_grant(a, a->granted[i], waiting, &n_waiting);
    }
    return 0;
}

int audit_check_order(struct audit *a) {
    check_twice(a);
    check_growth(a);
    return check_tickets(a);
}
