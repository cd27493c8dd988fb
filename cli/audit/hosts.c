/* SPDX-License-Identifier: MIT */
/* Hosts, their berthds and boots, and the offsets of their clocks from Redis's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/model.h"

static int compare_hosts(const void *a, const void *b) {
    return strcmp(((const struct audit_host *) a)->name, ((const struct audit_host *) b)->name);
}

struct audit_host *audit_hosts_find(const struct audit *a, const char *name) {
    struct audit_host key = {.name = name};

    return a->n_hosts > 0 ? bsearch(&key, a->hosts, a->n_hosts, sizeof(*a->hosts), compare_hosts) : NULL;
}

/* --- berthds --- */

static int compare_processes(const void *a, const void *b) {
    return strcmp(((const struct audit_process *) a)->process, ((const struct audit_process *) b)->process);
}

/* A process that names several hosts is reported by check_processes() in lifecycle.c. */
static int compare_berthds(const void *a, const void *b) {
    const struct audit_process *x = a, *y = b;
    int c = compare_processes(x, y);

    c = c != 0 ? c : strcmp(x->host, y->host);
    return c != 0 ? c : x->order < y->order ? -1 : x->order > y->order;
}

static const struct audit_process *find_process(const struct audit *a, const char *process) {
    struct audit_process key = {.process = process};

    return a->n_processes > 0 ? bsearch(&key, a->processes, a->n_processes, sizeof(*a->processes), compare_processes) : NULL;
}

static const struct audit_process *find_berthd(const struct audit *a, const char *process, const char *host) {
    const struct audit_process *p = find_process(a, process), *end = a->processes + a->n_processes;

    while (p && p > a->processes && strcmp(p[-1].process, process) == 0)
        p--;
    for (; p && p < end && strcmp(p->process, process) == 0; p++)
        if (strcmp(p->host, host) == 0)
            return p;
    return NULL;
}

static void process_add_event(struct audit *a, struct audit_process *p, const struct entry *e) {
    bool wiped = entry_is(e, "grace-begun");
    bool lost = wiped || entry_is(e, "redis-lost") || entry_is(e, "session-lost");

    p->last = e->time > p->last ? e->time : p->last;
    p->last_loss = lost && e->time > p->last_loss ? e->time : p->last_loss;
    a->last_wipe = wiped && e->time > a->last_wipe ? e->time : a->last_wipe;
}

/* Keeps each pair of process and host once. Events about other hosts are attributed to the host of the
 * process's first event. */
static void merge_processes(struct audit *a) {
    struct audit_process *p = a->processes;
    size_t n = 0, first = 0;

    for (size_t i = 0; i < a->n_processes; i++) {
        if (n > 0 && strcmp(p[n - 1].process, p[i].process) == 0 && strcmp(p[n - 1].host, p[i].host) == 0) {
            p[n - 1].last = p[i].last > p[n - 1].last ? p[i].last : p[n - 1].last;
            p[n - 1].last_loss = p[i].last_loss > p[n - 1].last_loss ? p[i].last_loss : p[n - 1].last_loss;
        } else {
            p[n++] = p[i];
        }
    }
    a->n_processes = n;
    for (size_t i = 0; i < n; i++) {
        const char *writer = p[i].host;
        size_t order = p[i].order;

        for (first = i; i + 1 < n && strcmp(p[i + 1].process, p[first].process) == 0; i++)
            if (p[i + 1].order < order) {
                order = p[i + 1].order;
                writer = p[i + 1].host;
            }
        for (; first <= i; first++)
            p[first].writer = writer;
    }
}

static int make_processes(struct audit *a) {
    a->processes = calloc(a->n_events + 1, sizeof(*a->processes));
    if (!a->processes)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events; i++) {
        const struct entry *e = a->events[i];
        struct audit_process *p = a->n_processes > 0 ? &a->processes[a->n_processes - 1] : NULL;

        if (entry_is_of_another(e))
            continue;
        if (!p || strcmp(p->process, e->process) != 0 || strcmp(p->host, e->host) != 0) {
            p = &a->processes[a->n_processes++];
            *p = (struct audit_process) {.process = e->process, .host = e->host, .order = i};
        }
        process_add_event(a, p, e);
    }
    qsort(a->processes, a->n_processes, sizeof(*a->processes), compare_berthds);
    merge_processes(a);
    return 0;
}

bool audit_hosts_process_goes_on(const struct audit *a, const struct entry *after) {
    const struct audit_process *p = find_berthd(a, after->process, after->host);

    return p && p->last > usec_add(after->time, AUDIT_RELEASE_USEC) && p->last_loss <= after->time;
}

/* --- events of each host, by its clock --- */

static int compare_moments(const void *a, const void *b) {
    const struct audit_moment *x = a, *y = b;
    int c = strcmp(x->entry->host, y->entry->host);

    return c != 0 ? c : x->time != y->time ? (x->time < y->time ? -1 : 1) : x->order < y->order ? -1 : x->order > y->order;
}

static bool is_other_boot(const struct entry *x, const struct entry *y) {
    return !x->boot || !y->boot || strcmp(x->boot, y->boot) != 0;
}

/* Sets next_boot, by the moments whose boot is known. */
static void set_next_boots(struct audit_host *h) {
    size_t next = h->n_moments; /* the next moment whose boot is known */

    for (size_t i = h->n_moments; i-- > 0;) {
        struct audit_moment *m = &h->moments[i];

        m->next_boot = next < h->n_moments && m->entry->boot && strcmp(m->entry->boot, h->moments[next].entry->boot) == 0
                           ? h->moments[next].next_boot
                           : next;
        if (m->entry->boot)
            next = i;
    }
}

static void set_moments(struct audit_host *h) {
    const struct entry *first = h->moments[0].entry, *last = h->moments[h->n_moments - 1].entry;

    set_next_boots(h);
    h->last = last;
    for (size_t i = 0; i < h->n_moments && !h->first_of_other; i++)
        if (strcmp(h->moments[i].entry->process, first->process) != 0)
            h->first_of_other = h->moments[i].entry;
    for (size_t i = h->n_moments; i-- > 0 && !h->last_of_other_boot;)
        if (is_other_boot(h->moments[i].entry, last))
            h->last_of_other_boot = h->moments[i].entry;
}

static int make_hosts(struct audit *a) {
    size_t n = 0, n_hosts = 0;

    a->moments = calloc(a->n_events + 1, sizeof(*a->moments));
    if (!a->moments)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events; i++)
        if (!entry_is_of_another(a->events[i]))
            a->moments[n++] = (struct audit_moment) {.time = a->events[i]->time, .entry = a->events[i], .order = i};
    qsort(a->moments, n, sizeof(*a->moments), compare_moments);
    for (size_t i = 0; i < n; i++)
        n_hosts += i == 0 || strcmp(a->moments[i].entry->host, a->moments[i - 1].entry->host) != 0;
    a->hosts = calloc(n_hosts + 1, sizeof(*a->hosts));
    if (!a->hosts)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(a->moments[i].entry->host, a->moments[i - 1].entry->host) != 0)
            a->hosts[a->n_hosts++] = (struct audit_host) {
                .name = a->moments[i].entry->host, .lowest = INT64_MIN, .highest = INT64_MAX, .moments = &a->moments[i]};
        a->hosts[a->n_hosts - 1].n_moments++;
    }
    for (size_t i = 0; i < a->n_hosts; i++)
        set_moments(&a->hosts[i]);
    return 0;
}

usec_t audit_hosts_next_boot(const struct audit *a, const struct entry *e) {
    const struct audit_host *h = audit_hosts_find(a, e->host);
    size_t i;

    if (!h || !e->boot)
        return 0;
    i = index_count_below(&h->moments->time, sizeof(*h->moments), h->n_moments, e->time + 1);
    if (i < h->n_moments && !h->moments[i].entry->boot)
        i = h->moments[i].next_boot;
    if (i < h->n_moments && strcmp(h->moments[i].entry->boot, e->boot) == 0)
        i = h->moments[i].next_boot;
    return i < h->n_moments ? audit_hosts_time(a, h->moments[i].entry) : 0;
}

bool audit_hosts_other_boot_goes_on(const struct audit *a, const struct entry *after) {
    const struct audit_host *h = audit_hosts_find(a, after->host);
    const struct entry *last = !h ? NULL : is_other_boot(h->last, after) ? h->last : h->last_of_other_boot;

    return last && last->time > usec_add(after->time, AUDIT_RELEASE_USEC);
}

bool audit_hosts_have_earlier_berthd(const struct audit *a, const struct entry *e) {
    const struct audit_host *h = audit_hosts_find(a, e->host);
    const struct entry *first = !h ? NULL : strcmp(h->moments->entry->process, e->process) != 0 ? h->moments->entry : h->first_of_other;

    return first && first->time < e->time;
}

/* --- boots --- */

static int compare_boots(const void *a, const void *b) {
    const struct entry *x = *(const struct entry *const *) a, *y = *(const struct entry *const *) b;
    int c = strcmp(x->host, y->host);

    return c != 0 ? c : x->boot && y->boot ? strcmp(x->boot, y->boot) : (x->boot != NULL) - (y->boot != NULL);
}

/* Finds the last moment of each boot of each host. */
static int make_boots(struct audit *a) {
    size_t n = 0, kept = 0;

    a->boots = calloc(a->n_events + 1, sizeof(*a->boots));
    if (!a->boots)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_hosts; i++) {
        const struct audit_host *h = &a->hosts[i];

        for (size_t k = 0; k < h->n_moments; k++)
            if (k + 1 == h->n_moments || compare_boots(&h->moments[k].entry, &h->moments[k + 1].entry) != 0)
                a->boots[n++] = h->moments[k].entry;
    }
    qsort(a->boots, n, sizeof(*a->boots), compare_boots);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || compare_boots(&a->boots[kept - 1], &a->boots[i]) != 0)
            a->boots[kept++] = a->boots[i];
        else if (a->boots[i]->time > a->boots[kept - 1]->time)
            a->boots[kept - 1] = a->boots[i];
    }
    a->n_boots = kept;
    return 0;
}

static const struct entry *last_of_boot(const struct audit *a, const char *host, const char *boot) {
    struct entry key = {.host = (char *) host, .boot = (char *) boot};
    const struct entry *wanted = &key, **found = bsearch(&wanted, a->boots, a->n_boots, sizeof(*a->boots), compare_boots);

    return found ? *found : NULL;
}

const struct entry *audit_hosts_last_of_boot(const struct audit *a, const struct entry *e) {
    const struct entry *of_boot = last_of_boot(a, e->host, e->boot), *unknown = last_of_boot(a, e->host, NULL);

    if (!e->boot)
        return audit_hosts_find(a, e->host)->last;
    return unknown && unknown->time > of_boot->time ? unknown : of_boot;
}

/* --- clocks --- */

/* Returns the host that wrote the entry, known from the process's other events. */
static const char *writer(const struct audit *a, const struct entry *e) {
    const struct audit_process *p = entry_is_of_another(e) ? find_process(a, e->process) : NULL;

    return p ? p->writer : entry_is_of_another(e) ? "" : e->host;
}

usec_t audit_hosts_time(const struct audit *a, const struct entry *e) {
    const struct audit_host *h = audit_hosts_find(a, writer(a, e));
    int64_t time = (int64_t) e->time - (h ? h->offset : 0);

    return time > 0 ? (usec_t) time : 0;
}

usec_t audit_hosts_time_latest(const struct audit *a, const struct entry *e) {
    return usec_add(audit_hosts_time(a, e), usec_add(a->lead, usec_add(a->report->doubt, a->options->tolerance)));
}

/* A grant is logged after its token was drawn; if it did not wait, it was claimed shortly before. The token
 * may have been ahead of Redis's time, by its own lead. */
static void learn_clock(struct audit_host *h, const struct entry *granted) {
    int64_t drawn = (int64_t) granted->token - granted->took.lead_ms * (int64_t) USEC_PER_MSEC;
    int64_t after = (int64_t) granted->time - drawn;
    int64_t before = after - (granted->took.wait_ms + 1) * (int64_t) USEC_PER_MSEC;

    if (after < h->highest)
        h->highest = after;
    if (granted->token == granted->ticket && granted->took.wait_ms >= 0 && before > h->lowest)
        h->lowest = before;
}

static void settle_clock(struct audit *a, struct audit_host *h) {
    int64_t doubt;

    if (h->highest == INT64_MAX)
        return;
    h->offset = h->lowest > h->highest ? h->lowest
                                       : h->highest; /* lowest above highest: the clock was set meanwhile */
    doubt = h->lowest == INT64_MIN ? 0 : h->lowest > h->highest ? h->lowest - h->highest : h->highest - h->lowest;
    if ((usec_t) doubt > a->report->doubt)
        a->report->doubt = (usec_t) doubt;
}

void audit_hosts_learn_clocks(struct audit *a) {
    for (size_t i = 0; i < a->n_holds; i++) {
        struct audit_host *h = audit_hosts_find(a, a->holds[i].entry->host);

        if (!h || !entry_is(a->holds[i].entry, "granted"))
            continue;
        if ((usec_t) a->holds[i].entry->took.lead_ms * USEC_PER_MSEC > a->lead)
            a->lead = (usec_t) a->holds[i].entry->took.lead_ms * USEC_PER_MSEC;
        if (!a->holds[i].renewed)
            learn_clock(h, a->holds[i].entry);
    }
    for (size_t i = 0; i < a->n_hosts; i++)
        settle_clock(a, &a->hosts[i]);
}

int audit_hosts_make(struct audit *a) {
    int k = make_processes(a);

    k = k < 0 ? k : make_hosts(a);
    return k < 0 ? k : make_boots(a);
}

void audit_hosts_done(struct audit *a) {
    for (size_t i = 0; i < a->n_hosts; i++) {
        free(a->hosts[i].absences);
        maxima_done(&a->hosts[i].ends);
    }
    free(a->hosts);
    free(a->moments);
    free(a->boots);
    free(a->processes);
}
