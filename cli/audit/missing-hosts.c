/* SPDX-License-Identifier: MIT */
/* Hosts whose journal is missing. A claim logs its position in the queue: if more claims were ahead than all
 * journals have, or an entry names a host without entries, a journal is missing. That is unproved, not a
 * violation.
 *
 * A host that was killed or lost Redis may have claims that it never logged, so such times are left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/index.h"
#include "cli/audit/model.h"

#define REPLY_TIME (10 * USEC_PER_SEC) /* for the reply to a claim; then Redis counts as lost (redis.timeout) */
/* A host may have been dead for this time before its expiry, or before the first entry of its next
 * berthd. */
#define DEAD (REPLY_TIME + AUDIT_RELEASE_USEC)
#define WITHDRAWN_GONE AUDIT_RELEASE_USEC /* after which a withdrawn claim is in no queue */

/* --- hosts --- */

/* Reports each host without entries once. */
static int check_hosts(struct audit *a) {
    struct audit_names reported = {.tree = NULL};
    int k = 0;

    for (size_t i = 0; i < a->n_events && k == 0; i++) {
        const struct entry *e = a->events[i];
        struct audit_name *name;

        /* "": Redis has lost the name. */
        if (!entry_is_of_another(e) || !*e->host || audit_hosts_find(a, e->host))
            continue;
        name = audit_names_add(&reported, e->host, NULL);
        if (!name)
            k = -ENOMEM;
        else if (name->index == SIZE_MAX)
            audit_report_unproved(a, AUDIT_NO_JOURNAL, e, "the journal of host %s is missing", e->host);
        if (name)
            name->index = i;
    }
    audit_names_done(&reported);
    return k;
}

/* --- times at which a claim may be in no journal --- */

struct trouble { /* by Redis's clock, both included */
    usec_t from, to;
};

struct troubles {
    struct trouble *items; /* by `from`; `to` is the latest of this one and all before it */
    size_t n;
};

static void add_trouble(struct troubles *t, usec_t from, usec_t to) {
    t->items[t->n++] = (struct trouble) {from, to};
}

/* Adds one berthd's start, and each time from a loss of Redis to the next connection. i: its first event.
 * Returns the index after its last. */
static size_t add_berthd(const struct audit *a, struct troubles *t, size_t i) {
    const struct entry *first = a->events[i];
    usec_t from = usec_sub(audit_hosts_time(a, first), first->seq == 1 ? DEAD : 0); /* 0: no trouble */

    for (; i < a->n_events && strcmp(a->events[i]->process, first->process) == 0; i++) {
        const struct entry *e = a->events[i];

        if (from == 0 && (entry_is(e, "redis-lost") || entry_is(e, "session-lost") || entry_is(e, "grace-begun"))) {
            from = usec_sub(audit_hosts_time(a, e), REPLY_TIME);
        } else if (from > 0 && (entry_is(e, "redis-connected") || entry_is(e, "grace-ended"))) {
            add_trouble(t, from, audit_hosts_time_latest(a, e));
            from = 0;
        }
    }
    if (from > 0 && !entry_is(a->events[i - 1], "stopping-daemon"))
        add_trouble(t, from, USEC_INFINITY);
    return i;
}

/* Adds the time before each expiry of a host, and the time after the last entries, because a host that died
 * then has not expired yet. */
static void add_silence(const struct audit *a, struct troubles *t) {
    usec_t end = 0, logged = USEC_INFINITY; /* logged: every host has entries after this time */

    for (size_t i = 0; i < a->n_events; i++) {
        usec_t at = audit_hosts_time_latest(a, a->events[i]);

        end = at > end ? at : end;
        if (entry_is(a->events[i], "host-expired"))
            add_trouble(t, usec_sub(at, DEAD), at);
    }
    for (size_t i = 0; i < a->n_hosts; i++) {
        usec_t last = audit_hosts_time(a, a->hosts[i].last);

        logged = last < logged ? last : logged;
    }
    end = usec_sub(usec_add(end, 1), DEAD);
    add_trouble(t, logged > end ? logged : end, USEC_INFINITY);
}

static int compare_troubles(const void *a, const void *b) {
    const struct trouble *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

static int make_troubles(const struct audit *a, struct troubles *t) {
    t->items = calloc(2 * a->n_events + 1, sizeof(*t->items)); /* at most one for each event, one for each berthd, and the end */
    if (!t->items)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events;)
        i = add_berthd(a, t, i);
    add_silence(a, t);
    qsort(t->items, t->n, sizeof(*t->items), compare_troubles);
    for (size_t i = 1; i < t->n; i++)
        if (t->items[i].to < t->items[i - 1].to)
            t->items[i].to = t->items[i - 1].to;
    return 0;
}

static bool was_calm(const struct troubles *t, usec_t time) {
    size_t n = index_count_below(&t->items->from, sizeof(*t->items), t->n, time + 1);

    return n == 0 || t->items[n - 1].to < time;
}

static void troubles_done(struct troubles *t) {
    free(t->items);
}

/* --- queues --- */

struct claim { /* of cluster pools */
    const struct audit_run *run;
    uint64_t score;
    uint64_t gone; /* it is in no queue at numbers after this one */
    bool vague;
    size_t group;
};

struct group { /* all claims of the same cluster pools: they stand in the same queues */
    size_t first, n, n_vague;        /* claims; the vague ones follow the n others */
    size_t n_waiting;                /* of the claims */
    const struct audit_run *counted; /* the run whose check has counted the group */
};

struct queues {
    struct claim *claims; /* by group, then by score */
    size_t n_claims;
    struct group *groups;
    size_t n_groups;
    struct audit_pool_users users; /* the groups of each pool */
    struct maxima waiting_groups; /* of each user: how many claims of the group wait, or are vague */
    struct places waiting;    /* of the claims */
};

/* Returns whether the claim may have been ahead of any other: it was claimed again with another ticket,
 * moved, or has no logged place. */
static bool is_vague(const struct audit_run *r) {
    if (!r->has_place || r->stands.n > 1)
        return true;
    for (size_t i = 1; i < r->n_events; i++)
        if (strcmp(r->events[i]->process, r->events[0]->process) != 0)
            return true;
    return false;
}

static uint64_t gone_after(const struct audit *a, const struct audit_run *r) {
    if (r->granted)
        return r->granted->token;
    return r->withdrawn ? usec_add(audit_hosts_time_latest(a, r->withdrawn), WITHDRAWN_GONE) : UINT64_MAX;
}

static bool is_place_logged(const struct claim *c) {
    const struct entry *queued = c->run->queued;

    return queued && queued->position > 1 && queued->ticket == c->run->ticket;
}

/* Orders by cluster pools, then by score; host pools do not matter. */
static int compare_claims(const void *a, const void *b) {
    const struct claim *x = a, *y = b;
    int c = audit_compare_cluster_pools(x->run, y->run);

    if (c == 0 && x->vague != y->vague)
        return x->vague ? 1 : -1;
    return c != 0 ? c : x->score < y->score ? -1 : x->score > y->score;
}

static int make_groups(const struct audit *a, struct queues *q) {
    _cleanup_free_ const struct audit_run **first = calloc(q->n_claims + 1, sizeof(*first)); /* of each group */

    q->groups = calloc(q->n_claims + 1, sizeof(*q->groups));
    if (!first || !q->groups)
        return -ENOMEM;
    for (size_t i = 0; i < q->n_claims; i++) {
        struct claim *c = &q->claims[i];

        if (i == 0 || audit_compare_cluster_pools(c->run, q->claims[i - 1].run) != 0) {
            q->groups[q->n_groups].first = i;
            first[q->n_groups++] = c->run;
        }
        c->group = q->n_groups - 1;
        q->groups[c->group].n += !c->vague;
        q->groups[c->group].n_vague += c->vague;
    }
    return audit_pools_make_users(a, first, q->n_groups, &q->users);
}

/* Notes how many claims of the group wait now. */
static void group_set(struct queues *q, size_t group, size_t n_waiting) {
    struct group *g = &q->groups[group];
    const struct audit_run *r = q->claims[g->first].run;

    g->n_waiting = n_waiting;
    for (size_t i = 0; i < r->n_cluster; i++)
        maxima_set(&q->waiting_groups, audit_pools_find_user(&q->users, r->uses[i].pool, group), n_waiting + g->n_vague);
}

static int make_queues(const struct audit *a, struct queues *q) {
    int k;

    q->claims = calloc(a->n_runs + 1, sizeof(*q->claims));
    if (!q->claims)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_runs; i++) {
        const struct audit_run *r = &a->runs[i];

        if (r->n_cluster > 0)
            q->claims[q->n_claims++] = (struct claim) {.run = r, .score = audit_run_score(r), .gone = gone_after(a, r), .vague = is_vague(r)};
    }
    qsort(q->claims, q->n_claims, sizeof(*q->claims), compare_claims);
    k = make_groups(a, q);
    k = k < 0 ? k : places_make(&q->waiting, q->n_claims);
    k = k < 0 ? k : maxima_make(&q->waiting_groups, q->users.n);
    for (size_t i = 0; i < q->n_groups && k == 0; i++)
        group_set(q, i, 0);
    return k;
}

static void queues_done(struct queues *q) {
    free(q->claims);
    free(q->groups);
    audit_pools_users_done(&q->users);
    places_done(&q->waiting);
    maxima_done(&q->waiting_groups);
}

static int64_t count_ahead(const struct queues *q, const struct group *g, uint64_t score) {
    size_t n = index_count_below(&q->claims[g->first].score, sizeof(*q->claims), g->n, score + 1);

    return (int64_t) (places_before(&q->waiting, g->first + n) - places_before(&q->waiting, g->first) + g->n_vague);
}

static void check_place(struct audit *a, struct queues *q, const struct troubles *t, const struct audit_run *r) {
    int64_t logged = r->queued->position - 1, ahead = 0;

    for (size_t i = 0; i < r->n_cluster; i++) {
        size_t k = q->users.first[r->uses[i].pool], end = q->users.first[r->uses[i].pool + 1];

        for (; ahead < logged && (k = maxima_next(&q->waiting_groups, k, 1)) < end; k++) {
            struct group *g = &q->groups[q->users.items[k]];

            ahead += g->counted == r ? 0 : count_ahead(q, g, audit_run_score(r));
            g->counted = r;
        }
    }
    if (ahead < logged && was_calm(t, r->ticket))
        audit_report_unproved(a, AUDIT_NO_JOURNAL, r->queued,
                              "%" PRId64 " claims were ahead of it, and the journals have %" PRId64
                              ": a host's journal may be missing",
                              logged, ahead);
}

static int compare_tickets(const void *a, const void *b) {
    const struct audit_run *x = (*(const struct claim *const *) a)->run, *y = (*(const struct claim *const *) b)->run;

    return x->ticket != y->ticket ? (x->ticket < y->ticket ? -1 : 1) : x < y ? -1 : x > y;
}

static int compare_gone(const void *a, const void *b) {
    const struct claim *x = *(const struct claim *const *) a, *y = *(const struct claim *const *) b;

    return x->gone < y->gone ? -1 : x->gone > y->gone;
}

static void queues_take(struct queues *q, const struct claim *c) {
    places_take(&q->waiting, (size_t) (c - q->claims));
    group_set(q, c->group, q->groups[c->group].n_waiting + 1);
}

static void queues_leave(struct queues *q, const struct claim *c) {
    places_leave(&q->waiting, (size_t) (c - q->claims));
    group_set(q, c->group, q->groups[c->group].n_waiting - 1);
}

/* Replays the claims whose place is known, and checks logged positions. */
static int check_places(struct audit *a, struct queues *q, const struct troubles *t) {
    _cleanup_free_ const struct claim **come = calloc(q->n_claims + 1, sizeof(*come));
    _cleanup_free_ const struct claim **go = calloc(q->n_claims + 1, sizeof(*go));
    size_t n = 0, n_gone = 0;

    if (!come || !go)
        return -ENOMEM;
    for (size_t i = 0; i < q->n_claims; i++)
        if (!q->claims[i].vague)
            come[n++] = &q->claims[i];
    memcpy(go, come, n * sizeof(*come));
    qsort(come, n, sizeof(*come), compare_tickets);
    qsort(go, n, sizeof(*go), compare_gone);
    for (size_t i = 0; i < n; i++) {
        const struct audit_run *r = come[i]->run;

        for (; n_gone < n && go[n_gone]->gone < r->ticket; n_gone++)
            if (go[n_gone]->gone >= go[n_gone]->run->ticket) /* else it was never in a queue */
                queues_leave(q, go[n_gone]);
        if (is_place_logged(come[i]))
            check_place(a, q, t, r);
        if (come[i]->gone >= r->ticket)
            queues_take(q, come[i]);
    }
    return 0;
}

int missing_hosts_check(struct audit *a) {
    _cleanup_(troubles_done) struct troubles troubles = {.n = 0};
    _cleanup_(queues_done) struct queues queues = {.n_claims = 0};
    int k = check_hosts(a);

    k = k < 0 ? k : make_troubles(a, &troubles);
    k = k < 0 ? k : make_queues(a, &queues);
    return k < 0 ? k : check_places(a, &queues, &troubles);
}
