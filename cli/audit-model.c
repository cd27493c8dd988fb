/* SPDX-License-Identifier: MIT */
/* From events to runs, hosts and pools. */
#include <errno.h>
#include <string.h>

#include "base/demand.h"
#include "base/number.h"
#include "cli/audit-model.h"

/* --- hosts and their clocks --- */

struct audit_host *audit_find_host(const struct audit *a, const char *name) {
    for (size_t i = 0; i < a->n_hosts; i++)
        if (strcmp(a->hosts[i].name, name) == 0)
            return &a->hosts[i];
    return NULL;
}

/* These name another host than the one that writes. */
static bool is_of_another(const struct entry *e) {
    return strcmp(e->event, "reclaimed") == 0 || strcmp(e->event, "host-buried") == 0;
}

/* Who wrote it: the process's other events tell. */
static const char *writer(const struct audit *a, const struct entry *e) {
    if (!is_of_another(e))
        return e->host;
    for (size_t i = 0; i < a->n_events; i++)
        if (!is_of_another(a->events[i]) && strcmp(a->events[i]->process, e->process) == 0)
            return a->events[i]->host;
    return "";
}

usec_t audit_time(const struct audit *a, const struct entry *e) {
    const struct audit_host *h = audit_find_host(a, writer(a, e));
    int64_t time = (int64_t) e->time - (h ? h->offset : 0);

    return time > 0 ? (usec_t) time : 0;
}

static int make_hosts(struct audit *a) {
    for (size_t i = 0; i < a->n_events; i++) {
        struct audit_host *grown;

        if (is_of_another(a->events[i]) || audit_find_host(a, a->events[i]->host))
            continue;
        grown = reallocarray(a->hosts, a->n_hosts + 1, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        a->hosts = grown;
        a->hosts[a->n_hosts++] = (struct audit_host) {.name = a->events[i]->host, .lowest = INT64_MIN, .highest = INT64_MAX};
    }
    return 0;
}

/* A grant was logged after its token was drawn; one that was made at once was asked for before that. */
static void learn_clock(struct audit_host *h, const struct audit_run *r) {
    int64_t after = (int64_t) r->granted->time - (int64_t) r->token, before = after - (r->granted->wait_ms + 1) * 1000;

    if (after < h->highest)
        h->highest = after;
    if (r->token == r->ticket && r->granted->wait_ms >= 0 && before > h->lowest)
        h->lowest = before;
}

static void settle_clock(struct audit *a, struct audit_host *h) {
    int64_t doubt;

    if (h->highest == INT64_MAX)
        return;
    h->offset = h->lowest > h->highest ? h->lowest : h->highest; /* lowest above highest: the clock was moved meanwhile */
    doubt = h->lowest == INT64_MIN ? 0 : h->lowest > h->highest ? h->lowest - h->highest : h->highest - h->lowest;
    if ((usec_t) doubt > a->report->doubt)
        a->report->doubt = (usec_t) doubt;
}

/* --- pools --- */

static int add_pool(struct audit *a, const char *name, const char *host, size_t *ret) {
    struct audit_pool *grown = reallocarray(a->pools, a->n_pools + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    a->pools = grown;
    grown = &a->pools[a->n_pools];
    *grown = (struct audit_pool) {.host = host};
    snprintf(grown->name, sizeof(grown->name), "%s", name);
    for (size_t i = 0; i < a->options->n_limits; i++)
        if (strcmp(a->options->limits[i].pool, name) == 0 && (!grown->given || a->options->limits[i].fixed))
            grown->given = &a->options->limits[i];
    *ret = a->n_pools++;
    return 0;
}

size_t audit_find_pool(const struct audit *a, const char *name, const char *host) {
    for (size_t i = 0; i < a->n_pools; i++) {
        const struct audit_pool *p = &a->pools[i];

        if (strcmp(p->name, name) == 0 && (!p->host || !host || strcmp(p->host, host) == 0) && !!p->host == !!host)
            return i;
    }
    return SIZE_MAX;
}

/* "db:4" or "db:4/host" or "db:-" of BERTH_LIMITS; what follows it, or NULL at the end. */
static const char *next_limit(const char *text, char name[static NAME_MAX_LENGTH + 1], bool *ret_host, bool *ret_none,
                              uint32_t *ret_limit) {
    size_t length = strcspn(text, ","), colon = strcspn(text, ":");
    char number[16];
    uint64_t limit = 0;

    *ret_host = length > 5 && strncmp(text + length - 5, "/host", 5) == 0;
    name[0] = '\0';
    if (colon < length && colon <= NAME_MAX_LENGTH) {
        snprintf(name, NAME_MAX_LENGTH + 1, "%.*s", (int) colon, text);
        snprintf(number, sizeof(number), "%.*s", (int) (length - colon - 1 - (*ret_host ? 5 : 0)), text + colon + 1);
        *ret_none = strcmp(number, "-") == 0;
        if (!*ret_none && number_parse(number, UINT32_MAX, &limit) < 0)
            name[0] = '\0';
    }
    *ret_limit = (uint32_t) limit;
    return text[length] == ',' ? text + length + 1 : NULL;
}

/* Whether a pool is of scope host on this host: as its journal says, else as the user does. */
static bool is_host_pool(const struct audit *a, const char *pool, const char *host) {
    char name[NAME_MAX_LENGTH + 1];
    bool of_host, none;
    uint32_t limit;

    for (size_t i = a->n_events; i-- > 0;) {
        const struct entry *e = a->events[i];

        if (!e->limits || strcmp(e->host, host) != 0)
            continue;
        for (const char *at = e->limits; at;) {
            at = next_limit(at, name, &of_host, &none, &limit);
            if (strcmp(name, pool) == 0)
                return of_host;
        }
    }
    for (size_t i = 0; i < a->options->n_limits; i++)
        if (strcmp(a->options->limits[i].pool, pool) == 0 && a->options->limits[i].host)
            return true;
    return false;
}

static int find_or_add_pool(struct audit *a, const char *name, const char *host, size_t *ret) {
    size_t cluster = audit_find_pool(a, name, NULL), own = audit_find_pool(a, name, host);

    if (cluster == SIZE_MAX && own == SIZE_MAX)
        return add_pool(a, name, is_host_pool(a, name, host) ? host : NULL, ret);
    *ret = own != SIZE_MAX ? own : cluster;
    return 0;
}

static int add_change(struct audit *a, const char *name, const char *pool_host, const struct audit_change *change) {
    size_t i = audit_find_pool(a, name, pool_host);
    struct audit_change *grown;

    if (i == SIZE_MAX)
        return 0; /* nobody uses it */
    grown = reallocarray(a->pools[i].changes, a->pools[i].n_changes + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    a->pools[i].changes = grown;
    grown[a->pools[i].n_changes++] = *change;
    return 0;
}

static int add_changes(struct audit *a, const struct entry *e) {
    bool declares = strcmp(e->event, "ready") == 0 || strcmp(e->event, "config-loaded") == 0;
    struct audit_change change = {.time = audit_time(a, e), .host = declares ? e->host : NULL, .anew = strcmp(e->event, "ready") == 0};
    char name[NAME_MAX_LENGTH + 1];
    bool host;
    int k = 0;

    for (const char *at = e->limits; at && k == 0;) {
        at = next_limit(at, name, &host, &change.none, &change.limit);
        if (name[0])
            k = add_change(a, name, host ? e->host : NULL, &change);
    }
    return k;
}

/* A host that is gone declares nothing. */
static int end_declarations(struct audit *a, const struct entry *e) {
    struct audit_change change = {.time = audit_time(a, e), .host = e->host, .none = true};
    int k = 0;

    for (size_t i = 0; i < a->n_pools && k == 0; i++)
        if (!a->pools[i].host)
            k = add_change(a, a->pools[i].name, NULL, &change);
    return k;
}

static int compare_changes(const void *a, const void *b) {
    const struct audit_change *x = a, *y = b;

    return x->time < y->time ? -1 : x->time > y->time;
}

static int make_changes(struct audit *a) {
    int k = 0;

    for (size_t i = 0; i < a->n_events && k == 0; i++) {
        const struct entry *e = a->events[i];

        if (e->limits)
            k = add_changes(a, e);
        else if (strcmp(e->event, "host-buried") == 0 || strcmp(e->event, "stopping-daemon") == 0)
            k = end_declarations(a, e);
    }
    for (size_t i = 0; i < a->n_pools; i++)
        if (a->pools[i].n_changes > 0)
            qsort(a->pools[i].changes, a->pools[i].n_changes, sizeof(struct audit_change), compare_changes);
    return k;
}

/* --- runs --- */

static int compare_by_run(const void *a, const void *b) {
    const struct entry *const *x = *(const struct entry *const *const *) a, *const *y = *(const struct entry *const *const *) b;
    int c = strcmp((*x)->run, (*y)->run);

    return c != 0 ? c : x < y ? -1 : x > y; /* else as they stand */
}

static void run_hear(struct audit_run *r, const struct entry *e, size_t order) {
    static const struct {
        const char *event;
        size_t offset;
    } firsts[] = {{"queued", offsetof(struct audit_run, queued)},       {"granted", offsetof(struct audit_run, granted)},
                  {"started", offsetof(struct audit_run, started)},     {"exited", offsetof(struct audit_run, exited)},
                  {"released", offsetof(struct audit_run, released)},   {"reclaimed", offsetof(struct audit_run, reclaimed)},
                  {"withdrawn", offsetof(struct audit_run, withdrawn)}};

    for (size_t i = 0; i < ELEMENTSOF(firsts); i++) {
        const struct entry **at = (const struct entry **) ((char *) r + firsts[i].offset);

        if (!*at && strcmp(e->event, firsts[i].event) == 0) {
            *at = e;
            if (at == &r->granted)
                r->order = order;
            else if (at == &r->exited || (at == &r->released && r->end_order == 0))
                r->end_order = order;
        }
    }
    r->parked |= strcmp(e->event, "parked") == 0;
    r->continues |= e->continues;
}

static int run_set_uses(struct audit *a, struct audit_run *r) {
    const struct entry *e = r->granted ? r->granted : r->queued;
    struct demands demands;
    int k = 0;

    if (!e || !e->pools)
        return 0;
    if (demands_parse(e->pools, &demands) != 0) {
        audit_find(a, AUDIT_MALFORMED, e, "BERTH_POOLS is \"%.100s\"", e->pools);
        return 0;
    }
    r->uses = calloc(demands.n + 1, sizeof(*r->uses));
    if (!r->uses)
        return -ENOMEM;
    for (size_t i = 0; i < demands.n && k == 0; i++) {
        k = find_or_add_pool(a, demands.items[i].pool, e->host, &r->uses[i].pool);
        r->uses[i].permits = demands.items[i].permits;
        r->n_uses = i + 1;
    }
    return k;
}

static void run_set_place(struct audit *a, struct audit_run *r) {
    const struct entry *e = r->granted ? r->granted : r->queued;
    bool of_cluster = false;

    for (size_t i = 0; i < r->n_uses; i++)
        of_cluster |= !a->pools[r->uses[i].pool].host;
    if (!of_cluster)
        return; /* its host draws other numbers */
    for (size_t i = 0; i < r->n_uses && !r->granted; i++)
        if (a->pools[r->uses[i].pool].host)
            return; /* the ticket that was told may be its host's */
    r->ticket = e->ticket;
    r->token = r->granted ? r->granted->token : 0;
    if (r->granted && r->token == 0)
        audit_find(a, AUDIT_MALFORMED, r->granted, "a grant without a token");
    r->score = usec_sub(r->ticket, e->head_start_ms > 0 ? (usec_t) e->head_start_ms * USEC_PER_MSEC : 0);
}

static int make_runs(struct audit *a) {
    _cleanup_free_ const struct entry ***sorted = calloc(a->n_events + 1, sizeof(*sorted));
    size_t n = 0;
    int k = 0;

    a->runs = calloc(a->n_events + 1, sizeof(*a->runs));
    a->granted = calloc(a->n_events + 1, sizeof(*a->granted));
    if (!sorted || !a->runs || !a->granted)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events; i++)
        if (a->events[i]->run)
            sorted[n++] = &a->events[i];
    qsort(sorted, n, sizeof(*sorted), compare_by_run);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp((*sorted[i])->run, (*sorted[i - 1])->run) != 0)
            a->runs[a->n_runs++] = (struct audit_run) {.id = (*sorted[i])->run, .end = USEC_INFINITY};
        run_hear(&a->runs[a->n_runs - 1], *sorted[i], (size_t) (sorted[i] - a->events));
    }
    for (size_t i = 0; i < a->n_runs && k == 0; i++) {
        k = run_set_uses(a, &a->runs[i]);
        if (k == 0 && a->runs[i].n_uses > 0)
            run_set_place(a, &a->runs[i]);
    }
    return k;
}

/* When its processes were gone. What was logged later than it happened (by the next berthd) is told by the run's length. */
static void run_set_end(const struct audit *a, struct audit_run *r) {
    usec_t told;

    if (r->exited)
        r->end = audit_time(a, r->exited);
    if (r->exited && r->started && r->exited->run_ms >= 0) {
        told = audit_time(a, r->started) + (usec_t) (r->exited->run_ms + 1) * USEC_PER_MSEC;
        r->end = told < r->end ? told : r->end;
    }
    if (!r->exited && r->released)
        r->end = audit_time(a, r->released);
    /* Its host is gone: others heard it with a heartbeat's answer. If it came back as another berthd, that tells too late. */
    if (r->reclaimed && (!r->exited || !r->granted || strcmp(r->exited->process, r->granted->process) != 0)) {
        told = usec_sub(audit_time(a, r->reclaimed), AUDIT_CHANGE_USEC);
        r->end = told < r->end ? told : r->end;
    }
}

static int compare_tokens(const void *a, const void *b) {
    const struct audit_run *x = *(struct audit_run *const *) a, *y = *(struct audit_run *const *) b;

    return x->token < y->token ? -1 : x->token > y->token;
}

int audit_model_make(struct audit *a) {
    int k = make_hosts(a);

    k = k < 0 ? k : make_runs(a);
    if (k < 0)
        return k;
    for (size_t i = 0; i < a->n_runs; i++)
        if (a->runs[i].token > 0) {
            struct audit_host *h = audit_find_host(a, a->runs[i].granted->host);

            a->granted[a->n_granted++] = &a->runs[i];
            if (h)
                learn_clock(h, &a->runs[i]);
        }
    qsort(a->granted, a->n_granted, sizeof(struct audit_run *), compare_tokens);
    for (size_t i = 0; i < a->n_hosts; i++)
        settle_clock(a, &a->hosts[i]);
    for (size_t i = 0; i < a->n_runs; i++)
        run_set_end(a, &a->runs[i]);
    return make_changes(a);
}

void audit_model_done(struct audit *a) {
    for (size_t i = 0; i < a->n_runs; i++)
        free(a->runs[i].uses);
    for (size_t i = 0; i < a->n_pools; i++)
        free(a->pools[i].changes);
    free(a->runs);
    free(a->granted);
    free(a->pools);
    free(a->hosts);
    free(a->events);
}
