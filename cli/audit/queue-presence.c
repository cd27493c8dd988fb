/* SPDX-License-Identifier: MIT */
/* Until when each claim was in its queues, and when the queues may have lacked it: its host had expired, or
 * Redis had lost its data and the host had not sent the claim again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/audit/model.h"

/* --- hosts --- */

static int add_absence(struct audit_host *h, uint64_t from, uint64_t claimed_until) {
    if (!array_grow(h->absences, h->n_absences))
        return -ENOMEM;
    h->absences[h->n_absences++] = (struct audit_absence){
        .from = from, .to = UINT64_MAX, .claimed_until = claimed_until};
    return 0;
}

/* Ends an absence: the claims that the host makes or sends again are in the queues at once. */
static void end_absence(const struct audit *a, struct audit_absence *x, const struct entry *e) {
    usec_t to = audit_hosts_time_latest(a, e);

    x->to = to > e->clock ? to : e->clock;
    if (entry_is(e, "redis-connected") && e->clock > 0)
        x->claimed_until = e->clock;
}

/* Returns the number from which the host may have missed a grant before this loss. The host had received all
 * replies up to the number that it logs. A berthd that has just started logs none: Redis may have made and
 * lost a grant since the last number of the berthd before. */
static uint64_t begin_of_absence(const struct audit *a, const struct audit_host *h, const struct entry *e) {
    uint64_t at = usec_sub(audit_hosts_time(a, e), a->options->tolerance);
    uint64_t last = usec_sub(h->last_number, a->options->tolerance);

    if (e->clock > 0)
        return e->clock;
    return last > 0 && last < at ? last : at;
}

static bool is_connection(const struct entry *e) {
    return entry_is(e, "redis-connected");
}

static bool is_return(const struct entry *e) {
    return is_connection(e) || entry_is(e, "grace-ended");
}

/* Notes whether the host is connected. */
static void follow(struct audit_host *h, const struct entry *e) {
    if (is_connection(e))
        h->is_away = false;
    else if (entry_is(e, "redis-lost") || entry_is(e, "session-lost") || entry_is(e, "ready"))
        h->is_away = true;
}

static int add_own(struct audit *a, struct audit_host *h, const struct entry *e) {
    if (is_return(e))
        for (size_t i = h->n_absences; i-- > 0 && h->absences[i].to == UINT64_MAX;)
            end_absence(a, &h->absences[i], e);
    else if (entry_is(e, "grace-begun") || entry_is(e, "session-lost"))
        return add_absence(h, begin_of_absence(a, h, e), audit_hosts_time_latest(a, e));
    return 0;
}

struct returns { /* of each host */
    struct event_index connections; /* by BERTH_CLOCK */
    struct event_index all;         /* with ends of grace, by their latest possible time */
    const struct entry **early;     /* ends of grace that a host received before it sent its claims; by address */
    size_t n_early;
};

static int compare_pointers(const void *a, const void *b) {
    const struct entry *const *x = a, *const *y = b;

    return *x < *y ? -1 : *x > *y;
}

static bool is_early(const struct returns *r, const struct entry *e) {
    return r->n_early > 0 && bsearch(&e, r->early, r->n_early, sizeof(*r->early), compare_pointers);
}

/* Returns when a host was back after another one logged that an epoch began. A connection in this epoch has a higher
 * number than those of the epoch before. */
static const struct entry *return_after_loss(const struct audit *a, const struct returns *r, const char *host,
                                             const struct entry *begun) {
    size_t at = event_index_begin(&r->all, host);
    const struct entry *e;

    while ((e = event_index_next(&r->all, host, &at, audit_hosts_time(a, begun) + 1)) &&
           (is_early(r, e) || (e->clock > 0 && e->clock <= begun->clock)))
        at++;
    return e;
}

/* Adds an absence from an event of another host. It ends with the first connection of this host after
 * that. */
static int add_of_others(struct audit *a, struct audit_host *h, const struct returns *r,
                         const struct entry *e) {
    bool expired = entry_is(e, "host-expired");
    const struct entry *back = expired ? event_index_first(&r->connections, h->name, e->clock)
                                      : return_after_loss(a, r, h->name, e);
    int k = add_absence(
        h, expired && e->clock > 0 ? e->clock : usec_sub(audit_hosts_time(a, e), a->options->tolerance),
        audit_hosts_time_latest(a, e));

    if (k == 0 && back)
        end_absence(a, &h->absences[h->n_absences - 1], back);
    return k;
}

static int compare_absences(const void *a, const void *b) {
    const struct audit_absence *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

static int sort_absences(struct audit_host *h) {
    if (maxima_make(&h->ends, h->n_absences) < 0)
        return -ENOMEM;
    if (h->n_absences > 0)
        qsort(h->absences, h->n_absences, sizeof(*h->absences), compare_absences);
    for (size_t i = 0; i < h->n_absences; i++)
        maxima_set(&h->ends, i, h->absences[i].to);
    return 0;
}

bool queue_presence_is_absent(const struct audit *a, const struct audit_run *r, uint64_t number) {
    const struct audit_host *h = r->of_host ? NULL : audit_hosts_find(a, audit_run_host(r));
    size_t n = h && h->n_absences > 0 ? index_count_below(&h->absences->from, sizeof(*h->absences), h->n_absences, number + 1) : 0;

    for (size_t i = 0; n > 0 && (i = maxima_next(&h->ends, i, number)) < n; i++)
        if (r->ticket <= h->absences[i].claimed_until)
            return true;
    return false;
}

/* --- claims --- */

/* Returns whether the claim is one of the next berthd: a waiting `berth run` claims again there, a job keeps
 * its claim. */
static bool is_of_next_berthd(const struct audit_run *r) {
    const struct entry *last = r->granted ? r->granted : r->withdrawn;

    return r->queued && last && strcmp(r->queued->process, last->process) != 0 &&
           (r->queued->uid >= 0 || !r->queued->boot || !last->boot || strcmp(r->queued->boot, last->boot) != 0);
}

static void set_until(const struct audit *a, struct audit_run *r) {
    if (!r->has_place || r->n_uses == 0 || is_of_next_berthd(r))
        return;
    if (r->granted)
        r->until = r->granted->token;
    else if (r->released && r->released->token > 0) /* granted after its withdrawal */
        r->until = r->released->token;
    else if (r->withdrawn && r->of_host)
        r->until = usec_sub(r->withdrawn->time, a->options->tolerance);
    else if (r->withdrawn)
        r->until = r->withdrawn->clock;
    if (r->revoked && !r->granted && r->revoked->clock < r->until)
        r->until = r->revoked->clock;
    /* If it was granted and reclaimed before its host received the grant, it waited again. */
    for (size_t i = 0; i < r->n_events; i++)
        if (entry_is(r->events[i], "reclaimed") && r->events[i]->token > 0 && r->events[i]->token < r->until)
            r->until = r->events[i]->token;
    if (r->until <= r->ticket)
        r->until = 0;
}

/* Reads what hosts log about themselves and about others: lost data and expired hosts. */
static int read_hosts(struct audit *a, struct returns *r) {
    _cleanup_free_ const struct entry **losses = calloc(a->n_events + 1, sizeof(*losses));
    size_t n = 0;
    int k = losses ? 0 : -ENOMEM;

    for (size_t i = 0; i < a->n_events && k == 0; i++) {
        const struct entry *e = a->events[i];
        struct audit_host *h = entry_is_of_another(e) ? NULL : audit_hosts_find(a, e->host);

        if (h && !e->run) {
            follow(h, e);
            if (h->is_away && is_return(e))
                r->early[r->n_early++] = e;
            else
                k = add_own(a, h, e);
        }
        if (h && (e->clock > h->last_number || e->token > h->last_number))
            h->last_number = e->clock > e->token ? e->clock : e->token;
        if (e->run)
            continue;
        if (entry_is(e, "host-expired") || entry_is(e, "grace-begun"))
            losses[n++] = e;
    }
    if (r->n_early > 0)
        qsort(r->early, r->n_early, sizeof(*r->early), compare_pointers);
    for (size_t j = 0; j < a->n_hosts; j++)
        for (size_t i = 0; i < n && k == 0; i++)
            if (!entry_is_of_another(losses[i]) != (strcmp(losses[i]->host, a->hosts[j].name) == 0))
                k = add_of_others(a, &a->hosts[j], r, losses[i]);
    return k;
}

int queue_presence_make(struct audit *a) {
    struct returns returns = {.early = calloc(a->n_events + 1, sizeof(*returns.early))};
    int r = !returns.early ? -ENOMEM : event_index_make(&returns.connections, a, false, is_connection, event_key_clock);

    r = r < 0 ? r : event_index_make(&returns.all, a, false, is_return, audit_hosts_time_latest);
    r = r < 0 ? r : read_hosts(a, &returns);
    for (size_t i = 0; i < a->n_hosts && r == 0; i++)
        r = sort_absences(&a->hosts[i]);
    for (size_t i = 0; i < a->n_runs; i++)
        set_until(a, &a->runs[i]);
    free(returns.early);
    event_index_done(&returns.connections);
    event_index_done(&returns.all);
    return r;
}
