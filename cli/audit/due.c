/* SPDX-License-Identifier: MIT */
/* Checks that each due time was begun once; lists the missed ones. */
#include <errno.h>
#include <string.h>

#include "base/schedule/schedule.h"
#include "cli/audit/model.h"

struct due_start { /* a logged start of a run that has a due time */
    const struct entry *entry;
    const char *host; /* "": one host of many takes each due time */
    int64_t due;      /* seconds since 1970 */
    size_t order;     /* index in the audit's events */
};

/* A run of a job with on = "any" holds a permit of the pool "@JOB". */
static bool is_on_any(const struct entry *e) {
    size_t length = strlen(e->job);

    for (const char *at = e->pools; at && (at = strchr(at, '@')); at++)
        if ((at == e->pools || at[-1] == ',') && strncmp(at + 1, e->job, length) == 0 &&
            at[1 + length] == ':')
            return true;
    return false;
}

/* Orders by job, host, due time and attempt: two starts that are equal in these are one too many. */
static int compare_what(const struct due_start *x, const struct due_start *y) {
    int order = strcmp(x->entry->job, y->entry->job);

    order = order != 0 ? order : strcmp(x->host, y->host);
    if (order != 0 || x->due != y->due)
        return order != 0 ? order : x->due < y->due ? -1 : 1;
    return x->entry->origin.attempt < y->entry->origin.attempt ? -1 : x->entry->origin.attempt > y->entry->origin.attempt;
}

static int compare_starts(const void *a, const void *b) {
    const struct due_start *x = a, *y = b;
    int order = compare_what(x, y);

    return order != 0 ? order : x->order < y->order ? -1 : x->order > y->order;
}

/* Returns whether the due time came again: the clock of the host was set back by more than three hours, or
 * berthd's memory of due times began while the clock was behind. */
static bool comes_again(const struct audit *a, const struct due_start *first,
                        const struct due_start *second) {
    if (!first->host[0])
        return false;
    for (size_t i = first->order + 1; i < second->order; i++) {
        const struct entry *e = a->events[i];

        if (strcmp(e->host, first->host) != 0 || entry_is_of_another(e))
            continue;
        if (entry_is(e, "clock-set"))
            return true;
        if ((entry_is(e, "ready") || entry_is(e, "config-loaded")) &&
            e->time < (usec_t) first->due * USEC_PER_SEC)
            return true;
    }
    return false;
}

static void check_pair(struct audit *a, const struct due_start *first, const struct due_start *second) {
    if (strcmp(first->entry->run, second->entry->run) == 0 || comes_again(a, first, second))
        return;
    audit_report_violation(a, AUDIT_DUE_TWICE, second->entry,
                           "%s was already begun for the due time %s: run %s on %s", second->entry->job,
                           second->entry->origin.due, first->entry->run, first->entry->host);
}

/* Returns false if the entry is not the start of a run with a due time. */
static bool read_start(struct audit *a, const struct entry *e, struct due_start *ret) {
    if (!entry_is(e, "started") || !e->origin.due || !e->job || !e->run)
        return false;
    *ret = (struct due_start){.entry = e, .host = is_on_any(e) ? "" : e->host};
    if (schedule_parse_time(e->origin.due, &ret->due) == 0)
        return true;
    audit_report_violation(a, AUDIT_MALFORMED, e, "BERTH_DUE is \"%.100s\"", e->origin.due);
    return false;
}

static int list_missed(struct audit *a, size_t n) {
    struct audit_report *r = a->report;

    r->missed = calloc(n + 1, sizeof(*r->missed));
    for (size_t i = 0; i < a->n_events && r->missed; i++)
        if (entry_is(a->events[i], "missed") && a->events[i]->time >= a->options->since)
            r->missed[r->n_missed++] = a->events[i];
    return r->missed ? 0 : -ENOMEM;
}

int due_check(struct audit *a) {
    _cleanup_free_ struct due_start *starts = calloc(a->n_events + 1, sizeof(*starts));
    size_t n = 0, n_missed = 0;

    if (!starts)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events; i++) {
        n_missed += entry_is(a->events[i], "missed");
        if (read_start(a, a->events[i], &starts[n]))
            starts[n++].order = i;
    }
    qsort(starts, n, sizeof(*starts), compare_starts);
    for (size_t i = 1; i < n; i++)
        if (compare_what(&starts[i - 1], &starts[i]) == 0)
            check_pair(a, &starts[i - 1], &starts[i]);
    return n_missed > 0 ? list_missed(a, n_missed) : 0;
}
