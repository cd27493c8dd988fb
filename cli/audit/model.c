/* SPDX-License-Identifier: MIT */
/* From events to runs, and to the permits that they held. */
#include <errno.h>
#include <string.h>

#include "base/demand.h"
#include "cli/audit/model.h"

/* --- runs --- */

const char *audit_run_host(const struct audit_run *r) {
    const struct entry *e = r->granted ? r->granted : r->queued ? r->queued : r->events[0];

    return e->host;
}

uint32_t audit_run_permits(const struct audit_run *r, size_t pool) {
    for (size_t i = 0; i < r->n_uses; i++)
        if (r->uses[i].pool == pool)
            return r->uses[i].permits;
    return 0;
}

int audit_compare_cluster_pools(const struct audit_run *x, const struct audit_run *y) {
    if (x->n_cluster != y->n_cluster)
        return x->n_cluster < y->n_cluster ? -1 : 1;
    for (size_t i = 0; i < x->n_cluster; i++)
        if (x->uses[i].pool != y->uses[i].pool)
            return x->uses[i].pool < y->uses[i].pool ? -1 : 1;
    return 0;
}

bool audit_event_gives_back(const struct entry *e) {
    return entry_is(e, "released") && e->result && strcmp(e->result, "not-started") == 0;
}

bool audit_run_gave_back(const struct audit_run *r, uint64_t token) {
    for (size_t i = 0; i < r->n_events; i++)
        if (r->events[i]->token == token && audit_event_gives_back(r->events[i]))
            return true;
    return false;
}

bool audit_run_waits_again(const struct audit_run *r) {
    for (size_t i = r->n_events; i-- > 0;)
        if (entry_is(r->events[i], "granted"))
            return audit_run_gave_back(r, r->events[i]->token);
    return false;
}

static int compare_uses(const void *a, const void *b) {
    const struct audit_use *x = a, *y = b;

    return x->of_host != y->of_host ? x->of_host - y->of_host : x->pool < y->pool ? -1 : x->pool > y->pool;
}

static int compare_by_run(const void *a, const void *b) {
    const struct entry *const *x = *(const struct entry *const *const *) a, *const *y = *(const struct entry *const *const *) b;
    int c = strcmp((*x)->run, (*y)->run);

    return c != 0 ? c : x < y ? -1 : x > y; /* else in log order */
}

static void run_add_event(struct audit_run *r, const struct entry *e, size_t order) {
    static const struct {
        const char *event;
        size_t offset;
    } firsts[] = {{"queued", offsetof(struct audit_run, queued)},       {"granted", offsetof(struct audit_run, granted)},
                  {"started", offsetof(struct audit_run, started)},     {"exited", offsetof(struct audit_run, exited)},
                  {"released", offsetof(struct audit_run, released)},   {"reclaimed", offsetof(struct audit_run, reclaimed)},
                  {"withdrawn", offsetof(struct audit_run, withdrawn)}, {"revoked", offsetof(struct audit_run, revoked)},
                  {"fenced", offsetof(struct audit_run, fenced)}};

    if (r->n_events++ == 0)
        r->first_order = order;
    for (size_t i = 0; i < ELEMENTSOF(firsts); i++) {
        const struct entry **at = (const struct entry **) ((char *) r + firsts[i].offset);

        if (*at || strcmp(e->event, firsts[i].event) != 0 || audit_event_gives_back(e))
            continue;
        *at = e;
        if (at == &r->granted)
            r->order = order;
        else if (at == &r->exited || (at == &r->released && r->end_order == 0))
            r->end_order = order;
    }
    r->continues |= e->continues;
}

static int run_set_uses(struct audit *a, struct audit_run *r) {
    const struct entry *e = r->granted ? r->granted : r->queued ? r->queued : r->events[0];
    /* A claim keeps its scopes over a reload. A berthd that finds it waiting claims again, by its config. */
    size_t claimed = r->granted && strcmp(r->granted->process, r->events[0]->process) != 0 ? r->order : r->first_order;
    struct demands demands;
    int k = 0;

    if (!e->pools || entry_is_of_another(e))
        return 0;
    if (demands_parse(e->pools, &demands) != 0) {
        audit_report_violation(a, AUDIT_MALFORMED, e, "BERTH_POOLS is \"%.100s\"", e->pools);
        return 0;
    }
    r->uses = calloc(demands.n + 1, sizeof(*r->uses));
    if (!r->uses)
        return -ENOMEM;
    for (size_t i = 0; i < demands.n; i++) {
        k = audit_pools_find_or_add(a, demands.items[i].pool, e->host, claimed, &r->uses[i].pool);
        if (k < 0)
            break;
        r->uses[i].permits = demands.items[i].permits;
        r->uses[i].of_host = a->pools[r->uses[i].pool].host;
        r->n_cluster += !r->uses[i].of_host;
        r->n_uses = i + 1;
    }
    qsort(r->uses, r->n_uses, sizeof(*r->uses), compare_uses);
    return k;
}

static void run_set_place(struct audit *a, struct audit_run *r) {
    const struct entry *e = r->granted ? r->granted : r->queued;

    r->of_host = r->n_cluster == 0 ? audit_run_host(r) : NULL;
    if (!r->of_host && r->granted && r->granted->token == 0)
        audit_report_violation(a, AUDIT_MALFORMED, r->granted, "a grant without a token");
    if (!e || e->ticket == 0 || (r->n_cluster > 0 && r->n_cluster < r->n_uses && !r->granted))
        return; /* the ticket may be that of a host pool, while the run also waits for cluster pools */
    r->has_place = true;
    r->ticket = e->ticket;
}

static int make_runs(struct audit *a) {
    _cleanup_free_ const struct entry ***sorted = calloc(a->n_events + 1, sizeof(*sorted));
    size_t n = 0;
    int k = 0;

    a->runs = calloc(a->n_events + 1, sizeof(*a->runs));
    a->of_runs.events = calloc(a->n_events + 1, sizeof(*a->of_runs.events));
    if (!sorted || !a->runs || !a->of_runs.events)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events; i++)
        if (a->events[i]->run && !audit_event_is_move(a->events[i]))
            sorted[n++] = &a->events[i];
    qsort(sorted, n, sizeof(*sorted), compare_by_run);
    for (size_t i = 0; i < n; i++) {
        a->of_runs.events[i] = *sorted[i];
        if (i == 0 || strcmp((*sorted[i])->run, (*sorted[i - 1])->run) != 0)
            a->runs[a->n_runs++] = (struct audit_run) {.id = (*sorted[i])->run, .events = &a->of_runs.events[i]};
        run_add_event(&a->runs[a->n_runs - 1], *sorted[i], (size_t) (sorted[i] - a->events) + 1);
    }
    for (size_t i = 0; i < a->n_runs && k == 0; i++) {
        k = run_set_uses(a, &a->runs[i]);
        if (k == 0 && a->runs[i].n_uses > 0)
            run_set_place(a, &a->runs[i]);
    }
    return k;
}

/* --- permits --- */

/* Returns when the command was started, by its host's clock. A hung berthd may log the start late; the
 * logged wait gives the exact time. */
static usec_t run_start(const struct audit *a, const struct audit_run *r) {
    usec_t start = audit_hosts_time(a, r->started), exact;
    int64_t after;

    if (!r->granted || r->granted->took.wait_ms < 0 || r->started->took.wait_ms < r->granted->took.wait_ms)
        return start;
    after = r->started->took.wait_ms - r->granted->took.wait_ms;
    exact = audit_hosts_time(a, r->granted) + (usec_t) (after + 1) * USEC_PER_MSEC;
    return exact < start ? exact : start;
}

/* Returns when the processes were gone, by the host's clock; 0: not logged. If the entry is late, the logged
 * run time gives the exact time. */
static usec_t run_end(const struct audit *a, const struct audit_run *r) {
    usec_t end = r->exited     ? audit_hosts_time(a, r->exited)
                 : r->released ? audit_hosts_time(a, r->released)
                               : 0,
           exact;

    if (r->exited && r->started && r->exited->took.run_ms >= 0) {
        exact = run_start(a, r) + (usec_t) (r->exited->took.run_ms + 1) * USEC_PER_MSEC;
        end = exact < end ? exact : end;
    }
    return end;
}

/* Returns whether the entry has the exact time of the end; it has not if the next berthd only found the run
 * ended. */
static bool knows_end(const struct audit_run *r) {
    return strcmp(r->exited->process, r->started->process) == 0 || r->fenced ||
           (r->exited->uid < 0 && r->exited->result && strcmp(r->exited->result, "guard-died") != 0 &&
            strcmp(r->exited->result, "host-lost") != 0);
}

static int compare_ends(const void *a, const void *b) {
    const struct audit_end *x = a, *y = b;

    return x->clock != y->clock ? (x->clock < y->clock ? -1 : 1) : x->order < y->order ? -1 : x->order > y->order;
}

static int make_ends(struct audit *a) {
    size_t n = 0;

    a->of_runs.ends = calloc(a->n_events + 1, sizeof(*a->of_runs.ends));
    if (!a->of_runs.ends)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_runs; i++) {
        struct audit_run *r = &a->runs[i];

        r->ends = &a->of_runs.ends[n];
        for (size_t k = 0; k < r->n_events; k++)
            if (entry_is(r->events[k], "released") || entry_is(r->events[k], "reclaimed"))
                r->ends[r->n_ends++] = (struct audit_end) {.clock = r->events[k]->clock, .order = k, .entry = r->events[k]};
        qsort(r->ends, r->n_ends, sizeof(*r->ends), compare_ends);
        n += r->n_ends;
    }
    return 0;
}

/* Returns the entry that ended this grant, with this or a later token; NULL: none. */
static const struct entry *find_end(const struct audit_hold *h) {
    const struct audit_run *r = h->run;

    for (size_t i = index_count_below(&r->ends->clock, sizeof(*r->ends), r->n_ends, h->token); i < r->n_ends; i++)
        if (r->ends[i].entry->token >= h->token)
            return r->ends[i].entry;
    return NULL;
}

/* Returns the entry of a release that has no number: the session was lost, or a sync made it. Redis may have lost it since, because
 * it was restored from older data, and another host then reclaims the permits. NULL: none. */
static const struct entry *find_release_without_number(const struct audit_hold *h, const struct entry *ended) {
    bool has_end = ended && ended->token == h->token;
    bool is_reclaimed = ended && entry_is(ended, "reclaimed");

    for (size_t i = 0; i < h->run->n_ends; i++) {
        const struct entry *e = h->run->ends[i].entry;

        if (e->token != h->token || !entry_is(e, "released"))
            continue;
        if ((!has_end && audit_event_gives_back(e)) || (is_reclaimed && e->clock == 0 && e->time < ended->time))
            return e;
    }
    return NULL;
}

/* Sets the end of a grant: by Redis's number if there is one, else by its host's clock. */
static void hold_set_end(struct audit *a, struct audit_hold *h) {
    const struct audit_run *r = h->run;
    const struct entry *ended = find_end(h), *released = find_release_without_number(h, ended);
    bool taken = ended && entry_is(ended, "reclaimed");
    usec_t end;

    if (released) {
        h->end = usec_sub(audit_hosts_time(a, released),
                          usec_add(a->options->tolerance, a->report->doubt));
        a->report->n_by_clock++;
        return;
    }
    /* A release under a later token does not end this grant: the next berthd was granted the permits again.
     */
    if (!(ended && ended->token == h->token) && lost_answers_is_unused(a, h, &h->end))
        return;
    h->end = ended ? ended->clock : UINT64_MAX;
    if (taken && r->started && r->exited && knows_end(r) && (r->exited->token == h->token || r->continues))
        h->there = usec_sub(run_end(a, r), usec_add(a->options->tolerance, a->report->doubt));
    if (h->end < UINT64_MAX)
        return;
    lost_answers_set_unlogged_end(a, h);
    if (h->unlogged_after == 0 && r->started && r->exited && !knows_end(r)) {
        h->unlogged_after = audit_hosts_time(a, r->started);
        h->why = "its end was noticed later";
    }
    end = r->exited || r->released ? run_end(a, r) : audit_hosts_next_boot(a, h->entry);
    if (end > 0) {
        h->end = usec_sub(end, usec_add(a->options->tolerance, a->report->doubt));
        a->report->n_by_clock++;
    }
}

static void add_hold(struct audit *a, const struct audit_run *r, const struct entry *e, size_t first) {
    for (size_t i = first; i < a->n_holds; i++)
        if (a->holds[i].token == e->token)
            return; /* logged again by the next berthd */
    if (e->token > 0)
        a->holds[a->n_holds++] = (struct audit_hold) {.run = r, .entry = e, .token = e->token};
}

/* A grant that its host never received is logged only by its end. */
static void add_holds(struct audit *a, const struct audit_run *r) {
    size_t first = a->n_holds, i;

    for (i = 0; i < r->n_events; i++)
        if (entry_is(r->events[i], "granted"))
            add_hold(a, r, r->events[i], first);
    for (size_t k = first + 1; k < a->n_holds; k++) {
        bool is_same = strcmp(a->holds[k].entry->process, a->holds[first].entry->process) == 0;

        a->holds[k].renewed = r->continues || (is_same && !audit_run_gave_back(r, a->holds[k - 1].token));
        a->holds[k].again = !a->holds[k].renewed && !is_same;
    }
    for (i = 0; i < r->n_events; i++)
        if (entry_is(r->events[i], "reclaimed") || (!r->granted && entry_is(r->events[i], "released")))
            add_hold(a, r, r->events[i], first);
}

static int compare_holds(const void *a, const void *b) {
    const struct audit_hold *x = a, *y = b;

    return x->token != y->token ? (x->token < y->token ? -1 : 1) : strcmp(x->run->id, y->run->id);
}

static int make_holds(struct audit *a) {
    a->holds = calloc(a->n_events + 1, sizeof(*a->holds));
    if (!a->holds)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].n_uses > 0 && !a->runs[i].of_host)
            add_holds(a, &a->runs[i]);
    qsort(a->holds, a->n_holds, sizeof(*a->holds), compare_holds);
    audit_hosts_learn_clocks(a);
    if (lost_answers_make(a) < 0 || make_ends(a) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_holds; i++)
        hold_set_end(a, &a->holds[i]);
    return 0;
}

int audit_model_make(struct audit *a) {
    int k = audit_hosts_make(a);

    k = k < 0 ? k : audit_pools_read_names(a);
    k = k < 0 ? k : make_runs(a);
    k = k < 0 ? k : audit_moves_make(a);
    k = k < 0 ? k : make_holds(a);
    k = k < 0 ? k : audit_limits_make(a);
    return k < 0 ? k : queue_presence_make(a);
}

void audit_model_done(struct audit *a) {
    for (size_t i = 0; i < a->n_runs; i++)
        free(a->runs[i].uses);
    audit_hosts_done(a);
    lost_answers_done(a);
    audit_pools_done(a);
    free(a->runs);
    free(a->of_runs.events);
    free(a->of_runs.ends);
    free(a->stands.items);
    free(a->holds);
    free(a->events);
}
