/* SPDX-License-Identifier: MIT */
/* Hosts whose journal is missing. Redis numbers a queue whoever stands in it: where more claims were ahead than all journals tell of, or
 * somebody tells of a host that wrote nothing, there is a host that is not heard. A doubt, not a violation: nothing breaks a rule.
 *
 * What a claim's host had not heard of when it was killed, or lost Redis, no journal can tell: around such times nothing is concluded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit-model.h"

#define UNHEARD (10 * USEC_PER_SEC)       /* a claim is answered within this, or Redis counts as lost (redis.timeout) */
#define DEAD (UNHEARD + AUDIT_RELEASE_USEC) /* before it was said to be dead, or its next berthd's first word, a host may have been that */
#define WITHDRAWN_GONE AUDIT_RELEASE_USEC /* after this who has withdrawn is in no queue */

static bool is_event(const struct entry *e, const char *event) {
    return strcmp(e->event, event) == 0;
}

static void check_hosts(struct audit *a) {
    for (size_t i = 0; i < a->n_events; i++) {
        const struct entry *e = a->events[i];
        bool told = !audit_is_of_another(e) || !*e->host || audit_find_host(a, e->host); /* "": Redis has lost the name */

        for (size_t k = 0; k < i && !told; k++)
            told = audit_is_of_another(a->events[k]) && strcmp(a->events[k]->host, e->host) == 0;
        if (!told)
            audit_doubt(a, AUDIT_NO_JOURNAL, e, "no journal of host %s is there", e->host);
    }
}

/* --- times at which somebody may have asked and not have been heard --- */

static bool is_between(usec_t from, usec_t time, usec_t to) {
    return from <= time && time <= to;
}

/* This time of Redis's clock, and one berthd: around its start, and from a loss of Redis to the next connection. i: its first event;
 * *ret: the first one behind it. */
static bool is_berthd_troubled(const struct audit *a, size_t i, usec_t time, size_t *ret) {
    const struct entry *first = a->events[i];
    usec_t from = usec_sub(audit_time(a, first), first->seq == 1 ? DEAD : 0); /* 0: all is well */
    bool troubled = false;

    for (; i < a->n_events && strcmp(a->events[i]->process, first->process) == 0; i++) {
        const struct entry *e = a->events[i];

        if (from == 0 && (is_event(e, "redis-lost") || is_event(e, "session-lost") || is_event(e, "grace-begun")))
            from = usec_sub(audit_time(a, e), UNHEARD);
        else if (from > 0 && (is_event(e, "redis-connected") || is_event(e, "grace-ended"))) {
            troubled |= is_between(from, time, audit_time_latest(a, e));
            from = 0;
        }
    }
    *ret = i;
    return troubled || (from > 0 && from <= time && !is_event(a->events[i - 1], "stopping-daemon"));
}

/* Others say that a host is dead; or it has said nothing since, and others have not had the time to. */
static bool is_somebody_silent(const struct audit *a, usec_t time) {
    usec_t end = 0;

    for (size_t i = 0; i < a->n_events; i++) {
        usec_t at = audit_time_latest(a, a->events[i]);

        end = at > end ? at : end;
        if (is_event(a->events[i], "host-buried") && is_between(usec_sub(at, DEAD), time, at))
            return true;
    }
    for (size_t h = 0; h < a->n_hosts && end < usec_add(time, DEAD); h++) {
        bool heard = false;

        for (size_t i = 0; i < a->n_events && !heard; i++)
            heard = !audit_is_of_another(a->events[i]) && strcmp(a->events[i]->host, a->hosts[h].name) == 0 && audit_time(a, a->events[i]) > time;
        if (!heard)
            return true;
    }
    return false;
}

static bool was_calm(const struct audit *a, usec_t time) {
    if (is_somebody_silent(a, time))
        return false;
    for (size_t i = 0; i < a->n_events;)
        if (is_berthd_troubled(a, i, time, &i))
            return false;
    return true;
}

/* --- queues --- */

static bool shares_cluster_pool(const struct audit *a, const struct audit_run *x, const struct audit_run *y) {
    for (size_t i = 0; i < x->n_uses; i++)
        if (!a->pools[x->uses[i].pool].host && audit_permits(y, x->uses[i].pool) > 0)
            return true;
    return false;
}

/* Asked again with another ticket, or never told where it stood: it may have been ahead of anybody. */
static bool is_vague(const struct audit_run *r) {
    if (!r->has_place)
        return !r->of_host && r->n_uses > 0;
    for (size_t i = 1; i < r->n_events; i++)
        if (strcmp(r->events[i]->process, r->events[0]->process) != 0)
            return true;
    return false;
}

static bool is_gone(const struct audit *a, const struct audit_run *r, uint64_t number) {
    if (r->granted)
        return r->granted->token < number;
    return r->withdrawn && usec_add(audit_time_latest(a, r->withdrawn), WITHDRAWN_GONE) < number;
}

static bool is_told_place(const struct audit_run *r) {
    return r->queued && r->queued->position > 1 && r->has_place && !r->of_host && !is_vague(r) && r->queued->ticket == r->ticket;
}

static void check_place(struct audit *a, const struct audit_run *r, const struct audit_run *const *waiting, size_t n_waiting) {
    int64_t ahead = 0;

    for (size_t i = 0; i < n_waiting; i++)
        ahead += waiting[i]->score <= r->score && shares_cluster_pool(a, waiting[i], r);
    if (ahead >= r->queued->position - 1)
        return;
    for (size_t i = 0; i < a->n_runs; i++)
        ahead += &a->runs[i] != r && is_vague(&a->runs[i]) && shares_cluster_pool(a, &a->runs[i], r);
    if (ahead < r->queued->position - 1 && was_calm(a, r->ticket))
        audit_doubt(a, AUDIT_NO_JOURNAL, r->queued, "%" PRId64 " claims were ahead of it, and the journals tell of %" PRId64
                    ": is that of a host missing?", r->queued->position - 1, ahead);
}

static int compare_tickets(const void *a, const void *b) {
    const struct audit_run *x = *(const struct audit_run *const *) a, *y = *(const struct audit_run *const *) b;

    return x->ticket < y->ticket ? -1 : x->ticket > y->ticket;
}

int audit_check_unseen(struct audit *a) {
    _cleanup_free_ const struct audit_run **runs = calloc(a->n_runs + 1, sizeof(*runs));
    size_t n = 0, n_waiting = 0;

    if (!runs)
        return -ENOMEM;
    check_hosts(a);
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].has_place && !a->runs[i].of_host && !is_vague(&a->runs[i]))
            runs[n++] = &a->runs[i];
    qsort(runs, n, sizeof(*runs), compare_tickets);
    for (size_t i = 0; i < n; i++) { /* those before it that still wait are moved to the front */
        const struct audit_run *r = runs[i];
        size_t kept = 0;

        for (size_t k = 0; k < n_waiting; k++)
            if (!is_gone(a, runs[k], r->ticket))
                runs[kept++] = runs[k];
        n_waiting = kept;
        if (is_told_place(r))
            check_place(a, r, runs, n_waiting);
        runs[n_waiting++] = r;
    }
    return 0;
}
