/* SPDX-License-Identifier: MIT */
#include "cli/history/stats.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/demand.h"

/* --- durations --- */

static int compare_durations(const void *a, const void *b) {
    int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

    return x < y ? -1 : x > y;
}

static int64_t percentile(const int64_t *sorted, size_t n, size_t percent) {
    return sorted[(percent * n + 99) / 100 - 1];
}

struct figures figures_make(int64_t *durations, size_t n) {
    struct figures f = {.n = n};

    if (n == 0)
        return f;
    qsort(durations, n, sizeof(*durations), compare_durations);
    f.p50 = percentile(durations, n, 50);
    f.p90 = percentile(durations, n, 90);
    f.p95 = percentile(durations, n, 95);
    f.p99 = percentile(durations, n, 99);
    f.max = durations[n - 1];
    for (size_t i = 0; i < n; i++)
        f.sum += durations[i];
    return f;
}

/* --- results --- */

static bool is_one_of(const char *result, const char *const *results, size_t n) {
    for (size_t i = 0; result && i < n; i++)
        if (strcmp(result, results[i]) == 0)
            return true;
    return false;
}

static bool has_failed(const struct past *p) {
    static const char *const failures[] = {"failure", "timeout", "not-started", "queue-timeout"};

    return is_one_of(p->result, failures, ELEMENTSOF(failures));
}

static bool is_lost(const struct past *p) {
    static const char *const losses[] = {"lease-lost", "guard-died", "reclaimed", "host-lost"};

    return is_one_of(p->result, losses, ELEMENTSOF(losses));
}

bool past_ended_with_boot(const struct past *p, const struct history_hosts *hosts) {
    const struct history_host *host = past_is_open(p) && p->boot ? history_hosts_find(hosts, p->host) : NULL;

    return host && host->boot && strcmp(host->boot, p->boot) != 0;
}

/* --- lines --- */

struct sample {       /* a run in a line */
    const char *name; /* not terminated */
    size_t length;
    const struct past *past;
};

struct samples {
    struct sample *items;
    size_t n;
};

static int add_sample(struct samples *s, const char *name, size_t length, const struct past *p) {
    if (!array_grow(s->items, s->n))
        return -ENOMEM;
    s->items[s->n++] = (struct sample){.name = name, .length = length, .past = p};
    return 0;
}

static int add_sample_of_pools(struct samples *s, const struct past *p) {
    struct demands demands;
    int k = 0;

    if (demands_parse(p->pools, &demands) != 0)
        return 0;
    for (const char *at = p->pools; *at && k == 0; at += strcspn(at, ","), at += *at == ',')
        k = add_sample(s, at, strcspn(at, ":,"), p);
    return k;
}

static int add_samples(struct samples *s, const struct past *p, enum stats_by by) {
    switch (by) {
    case STATS_BY_JOB:
        return add_sample(s, p->name, strlen(p->name), p);
    case STATS_BY_POOL:
        return add_sample_of_pools(s, p);
    case STATS_BY_HOST:
        return add_sample(s, p->host, strlen(p->host), p);
    }
    return 0;
}

static int compare_names(const struct sample *x, const struct sample *y) {
    int c = strncmp(x->name, y->name, MIN(x->length, y->length));

    return c != 0 ? c : x->length < y->length ? -1 : x->length > y->length;
}

static int compare_samples(const void *a, const void *b) {
    return compare_names(a, b);
}

static size_t cell_of(const struct stats *s, usec_t time) {
    return MIN((size_t) ((time - s->since) * STATS_CELLS / MAX(s->until - s->since, (usec_t) 1)),
               STATS_CELLS - 1);
}

/* durations: room for n. */
static int add_line(struct stats *s, const struct sample *samples, size_t n, int64_t *durations) {
    struct stats_line *line = &s->lines[s->n];
    size_t n_waits = 0, n_held = 0;

    line->name = strndup(samples->name, samples->length);
    if (!line->name)
        return -ENOMEM;
    s->n++;
    line->runs = n;
    for (size_t i = 0; i < n; i++) {
        line->failed += has_failed(samples[i].past);
        line->lost += is_lost(samples[i].past);
        line->cells[cell_of(s, past_end_time(samples[i].past))]++;
        if (past_waited_ms(samples[i].past) >= 0)
            durations[n_waits++] = past_waited_ms(samples[i].past);
    }
    line->wait = figures_make(durations, n_waits);
    for (size_t i = 0; i < n; i++)
        if (past_held_ms(samples[i].past) >= 0)
            durations[n_held++] = past_held_ms(samples[i].past);
    line->held = figures_make(durations, n_held);
    return 0;
}

static int make_lines(struct stats *s, struct samples *samples) {
    _cleanup_free_ int64_t *durations = calloc(samples->n + 1, sizeof(*durations));
    int k = 0;

    s->lines = calloc(samples->n + 1, sizeof(*s->lines));
    if (!durations || !s->lines)
        return -ENOMEM;
    if (samples->n > 0)
        qsort(samples->items, samples->n, sizeof(*samples->items), compare_samples);
    for (size_t i = 0, next; i < samples->n && k == 0; i = next) {
        for (next = i + 1;
             next < samples->n && compare_names(&samples->items[i], &samples->items[next]) == 0;)
            next++;
        k = add_line(s, &samples->items[i], next - i, durations);
    }
    return k;
}

int stats_make(const struct past *pasts, size_t n, const struct history_hosts *hosts, enum stats_by by,
               usec_t since, usec_t until, struct stats *ret) {
    struct stats s = {.by = by, .since = since, .until = until};
    struct samples samples = {};
    int k = 0;

    for (size_t i = 0; i < n && k == 0; i++) {
        if (past_ended_with_boot(&pasts[i], hosts))
            s.unlogged++;
        else if (past_is_running(&pasts[i]))
            s.running++;
        else if (past_is_open(&pasts[i]))
            s.waiting++;
        else if (past_end_time(&pasts[i]) >= since && past_end_time(&pasts[i]) <= until)
            k = add_samples(&samples, &pasts[i], by);
    }
    if (k == 0)
        k = make_lines(&s, &samples);
    free(samples.items);
    if (k < 0)
        stats_done(&s);
    else
        *ret = s;
    return k;
}

void stats_done(struct stats *s) {
    for (size_t i = 0; i < s->n; i++)
        free(s->lines[i].name);
    free(s->lines);
    *s = (struct stats){};
}
