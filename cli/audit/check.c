/* SPDX-License-Identifier: MIT */
/* Checks that the event log is complete, then calls all other checks. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "cli/audit/model.h"

const char *audit_kind_name(enum audit_kind kind) {
    switch (kind) {
    case AUDIT_SEQ_GAP:
        return "seq-gap";
    case AUDIT_SEQ_TWICE:
        return "seq-twice";
    case AUDIT_SEQ_ORDER:
        return "seq-order";
    case AUDIT_ABOVE_LIMIT:
        return "above-limit";
    case AUDIT_NO_LIMIT:
        return "no-limit";
    case AUDIT_OVERTAKEN:
        return "overtaken";
    case AUDIT_TOKEN_TWICE:
        return "token-twice";
    case AUDIT_TOKEN_ORDER:
        return "token-order";
    case AUDIT_NOT_ENDED:
        return "not-ended";
    case AUDIT_NOT_GRANTED:
        return "not-granted";
    case AUDIT_DIFFERS:
        return "differs";
    case AUDIT_MOVED:
        return "moved";
    case AUDIT_DUE_TWICE:
        return "due-twice";
    case AUDIT_DUE_OVERLAP:
        return "due-overlap";
    case AUDIT_NO_JOURNAL:
        return "no-journal";
    case AUDIT_MALFORMED:
        return "malformed";
    }
    return "?";
}

static _printf_(4, 0) bool note(struct audit_finding *f, enum audit_kind kind, const struct entry *entry, const char *format,
                                va_list arguments) {
    *f = (struct audit_finding) {.kind = kind, .entry = entry};
    return vasprintf(&f->text, format, arguments) >= 0;
}

void audit_report_violation(struct audit *a, enum audit_kind kind, const struct entry *entry,
                            const char *format, ...) {
    struct audit_report *r = a->report;
    va_list arguments;

    if (entry->time < a->options->since)
        return;
    if (!array_grow(r->findings, r->n_findings)) {
        r->out_of_memory = true;
        return;
    }
    va_start(arguments, format);
    if (note(&r->findings[r->n_findings], kind, entry, format, arguments))
        r->n_findings++;
    else
        r->out_of_memory = true;
    va_end(arguments);
}

void audit_report_unproved(struct audit *a, enum audit_kind kind, const struct entry *entry,
                           const char *format, ...) {
    struct audit_report *r = a->report;
    va_list arguments;

    if (entry->time < a->options->since)
        return;
    r->n_unproved++;
    r->n_no_journal += kind == AUDIT_NO_JOURNAL;
    if (r->n_doubts == AUDIT_DOUBTS_MAX)
        return;
    if (!r->doubts)
        r->doubts = calloc(AUDIT_DOUBTS_MAX, sizeof(*r->doubts));
    va_start(arguments, format);
    if (r->doubts && note(&r->doubts[r->n_doubts], kind, entry, format, arguments))
        r->n_doubts++;
    else
        r->out_of_memory = true;
    va_end(arguments);
}

/* --- BERTH_SEQ --- */

struct place { /* an event in the log */
    const struct entry *entry;
    size_t start; /* index of its berthd, in the order of first entries */
    size_t at;
};

struct start {
    usec_t time; /* of its first entry */
    bool has_first;
    size_t before; /* of the same process; SIZE_MAX: none */
};

struct starts {
    struct start *items;
    size_t n;
    struct audit_names processes; /* the last start of each */
};

static int compare_places(const void *a, const void *b) {
    const struct place *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->entry->seq != y->entry->seq)
        return x->entry->seq < y->entry->seq ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Finds the berthd that wrote the entry. Each berthd counts from 1, a pid may be reused, and a journal may
 * be given twice. -ENOMEM. */
static int find_start(struct starts *s, const struct entry *e, size_t *ret) {
    struct audit_name *process = audit_names_add(&s->processes, e->process, NULL);
    size_t found;

    if (!process)
        return -ENOMEM;
    found = process->index;
    for (size_t i = e->seq == 1 ? found : SIZE_MAX; i != SIZE_MAX; i = s->items[i].before)
        if (s->items[i].has_first && s->items[i].time == e->time) {
            *ret = i;
            return 0;
        }
    if (found == SIZE_MAX || (e->seq == 1 && s->items[found].has_first)) {
        process->index = s->n++;
        s->items[process->index] = (struct start) {.time = e->time, .before = found};
        found = process->index;
    }
    if (e->seq == 1) {
        s->items[found].has_first = true;
        s->items[found].time = e->time;
    }
    *ret = found;
    return 0;
}

/* Journals number their entries (systemd.journal-fields(7)): __CURSOR begins with "s=SOURCE;i=HEX;". Returns
 * false if the two entries have different sources. */
static bool compare_numbers(const struct entry *x, const struct entry *y, int *ret) {
    size_t length = strcspn(x->cursor, ";");
    unsigned long long first, second;

    if (strncmp(x->cursor, y->cursor, length) != 0 || sscanf(x->cursor + length, ";i=%llx", &first) != 1 ||
        sscanf(y->cursor + length, ";i=%llx", &second) != 1)
        return false;
    *ret = first < second ? -1 : first > second;
    return true;
}

/* Returns whether both are the same entry, from two files or from one that was read twice. */
static bool is_copy(const struct entry *x, const struct entry *y) {
    int order;

    return x->seq == y->seq && x->time == y->time && strcmp(x->event, y->event) == 0 && (!compare_numbers(x, y, &order) || order == 0);
}

static void check_place(struct audit *a, const struct place *before, const struct place *p) {
    bool first = !before || before->start != p->start;
    uint64_t expected = first ? 1 : before->entry->seq + 1;
    int order;

    a->report->n_starts += first;
    if (!first && p->entry->seq > before->entry->seq && compare_numbers(p->entry, before->entry, &order) && order < 0)
        audit_report_violation(a, AUDIT_SEQ_ORDER, p->entry,
                               "the journal has it before BERTH_SEQ %" PRIu64 ", which berthd wrote earlier",
                               before->entry->seq);
    if (p->entry->seq == expected)
        return;
    if (!first && p->entry->seq < expected)
        audit_report_violation(a, AUDIT_SEQ_TWICE, p->entry, "a second entry with BERTH_SEQ %" PRIu64,
                               p->entry->seq);
    else if (first)
        audit_report_violation(a, AUDIT_SEQ_GAP, p->entry,
                               "the log of this berthd begins with BERTH_SEQ %" PRIu64
                               ": earlier entries are missing; if they were rotated away, the time after "
                               "them can be proved (--since)",
                               p->entry->seq);
    else
        audit_report_violation(a, AUDIT_SEQ_GAP, p->entry,
                               "BERTH_SEQ %" PRIu64 " follows %" PRIu64 ": %" PRIu64 " missing",
                               p->entry->seq, before->entry->seq, p->entry->seq - expected);
}

static int find_places(struct audit *a, const struct entries *entries, struct place *places, size_t *ret_n) {
    struct starts starts = {.items = calloc(entries->n + 1, sizeof(*starts.items))};
    int k = starts.items ? 0 : -ENOMEM;
    size_t n = 0;

    for (size_t i = 0; i < entries->n && k == 0; i++) {
        const struct entry *e = &entries->items[i];

        if (strcmp(e->namespace ? e->namespace : "", a->options->namespace) != 0)
            continue;
        if (e->seq == 0) {
            audit_report_violation(a, AUDIT_MALFORMED, e, "an event without BERTH_SEQ");
            continue;
        }
        places[n] = (struct place) {.entry = e, .at = i};
        k = find_start(&starts, e, &places[n++].start);
    }
    *ret_n = n;
    free(starts.items);
    audit_names_done(&starts.processes);
    return k;
}

/* Sorts the events and checks their numbers. */
static int order_events(struct audit *a, const struct entries *entries) {
    _cleanup_free_ struct place *places = calloc(entries->n + 1, sizeof(*places));
    const struct place *before = NULL;
    size_t n = 0;

    a->events = calloc(entries->n + 1, sizeof(*a->events));
    if (!places || !a->events || find_places(a, entries, places, &n) < 0)
        return -ENOMEM;
    qsort(places, n, sizeof(*places), compare_places);
    for (size_t i = 0; i < n; i++) {
        const struct place *p = &places[i];

        if (before && before->start == p->start && is_copy(before->entry, p->entry))
            continue;
        check_place(a, before, p);
        a->events[a->n_events++] = p->entry;
        before = p;
    }
    return 0;
}

/* --- all checks --- */

static int compare_findings(const void *a, const void *b) {
    const struct audit_finding *x = a, *y = b;

    return x->entry->time != y->entry->time ? (x->entry->time < y->entry->time ? -1 : 1) : (int) x->kind - (int) y->kind;
}

int audit_check(const struct entries *entries, const struct audit_options *options, struct audit_report *ret) {
    _cleanup_(audit_model_done) struct audit a = {.options = options, .report = ret};
    int k;

    *ret = (struct audit_report) {};
    k = order_events(&a, entries);
    k = k < 0 ? k : audit_model_make(&a);
    k = k < 0 ? k : limits_check(&a);
    k = k < 0 ? k : order_check(&a);
    k = k < 0 ? k : missing_hosts_check(&a);
    k = k < 0 ? k : due_check(&a);
    if (k == 0)
        lifecycle_check(&a);
    ret->n_events = a.n_events;
    ret->n_hosts = a.n_hosts;
    ret->n_pools = a.n_pools;
    if (ret->n_findings > 0)
        qsort(ret->findings, ret->n_findings, sizeof(*ret->findings), compare_findings);
    if (ret->n_doubts > 0)
        qsort(ret->doubts, ret->n_doubts, sizeof(*ret->doubts), compare_findings);
    return k < 0 || ret->out_of_memory ? -ENOMEM : 0;
}

void audit_report_done(struct audit_report *report) {
    for (size_t i = 0; i < report->n_findings; i++)
        free(report->findings[i].text);
    for (size_t i = 0; i < report->n_doubts; i++)
        free(report->doubts[i].text);
    free(report->findings);
    free(report->doubts);
    free(report->missed);
    free(report->moves);
    *report = (struct audit_report) {};
}
