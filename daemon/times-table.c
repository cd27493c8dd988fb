/* SPDX-License-Identifier: MIT */

#include "daemon/times-table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/cleanup.h"
#include "base/job-name.h"
#include "base/number.h"

/* Squared deviations from no trend: below the first the trend counts for nothing, above the second in
 * full. */
#define TREND_LEAST 1.5
#define TREND_SURE 4.0

static const unsigned char percents[] = RUN_TIMES_PERCENTS;

/* --- known --- */

/* Returns the name's entry. A new name takes a free one, or that of the name that is longest without a
 * run. */
static struct times_name *find_or_add(struct times *t, const char *name) {
    struct times_name *oldest = &t->names[0];

    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(t->names[i].name, name) == 0)
            return &t->names[i];
        if (t->names[i].last < oldest->last)
            oldest = &t->names[i];
    }
    if (t->n < TIMES_NAMES_MAX)
        oldest = &t->names[t->n++];
    *oldest = (struct times_name){};
    (void) snprintf(oldest->name, sizeof(oldest->name), "%s", name);
    return oldest;
}

static uint32_t add(struct times *t, const char *name, uint32_t msec) {
    struct times_name *entry = find_or_add(t, name);

    entry->msec[entry->next] = msec;
    entry->next = (entry->next + 1) % RUN_TIMES_MAX;
    entry->n += entry->n < RUN_TIMES_MAX;
    entry->last = ++t->n_runs;
    return entry->n;
}

uint32_t times_add(struct times *t, const char *name, usec_t held_usec) {
    usec_t msec = held_usec / USEC_PER_MSEC;

    return add(t, name, msec < UINT32_MAX ? (uint32_t) msec : UINT32_MAX);
}

static int compare_msec(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

    return (x > y) - (x < y);
}

static uint32_t quantile(const uint32_t *sorted, size_t n, unsigned percent) {
    double at = percent / 100.0 * (double) (n + 1) - 1, share;
    size_t low;

    if (at <= 0)
        return sorted[0];
    low = (size_t) at;
    if (low >= n - 1)
        return sorted[n - 1];
    share = at - (double) low;
    return (uint32_t) ((1 - share) * sorted[low] + share * sorted[low + 1] + 0.5);
}

/* Copies the durations, the oldest first. */
static void copy_in_order(const struct times_name *name, uint32_t ret[static RUN_TIMES_MAX]) {
    uint32_t first = name->n < RUN_TIMES_MAX ? 0 : name->next;

    for (uint32_t i = 0; i < name->n; i++)
        ret[i] = name->msec[(first + i) % RUN_TIMES_MAX];
}

static double median(const uint32_t *msec, size_t n) {
    uint32_t sorted[RUN_TIMES_MAX];

    memcpy(sorted, msec, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_msec);
    return quantile(sorted, n, 50);
}

/* Returns how certain it is that the runs became longer or shorter, from 0 to 1 (the Mann-Kendall test:
 * pairs that grow minus pairs that shrink, against their deviation without a trend). */
static double trend_of(const uint32_t *msec, size_t n) {
    double variance = (double) (n * (n - 1) * (2 * n + 5)) / 18, pairs = 0, z2;

    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            pairs += (msec[k] > msec[i]) - (msec[k] < msec[i]);
    z2 = pairs * pairs / variance;
    return z2 <= TREND_LEAST ? 0 : z2 >= TREND_SURE ? 1 : (z2 - TREND_LEAST) / (TREND_SURE - TREND_LEAST);
}

/* If runs became longer or shorter, scales older ones to the present length, along the line through the
 * medians of both halves. */
static void follow_trend(uint32_t *msec, size_t n) {
    double trend = n >= 10 ? trend_of(msec, n) : 0, older, newer, per_run, now;
    size_t half = n / 2;

    if (trend <= 0)
        return;
    older = median(msec, half);
    newer = median(msec + n - half, half);
    per_run = (newer - older) / (double) (n - half) * trend;
    now = newer + per_run * (double) half / 2;
    for (size_t i = 0; i < n; i++) {
        double then = now - per_run * (double) (n - i);

        msec[i] =
            then > 0 && now > 0 ? (uint32_t) MIN(msec[i] * (now / then), (double) UINT32_MAX) : msec[i];
    }
}

void times_summarize(const struct times_name *name, struct times_summary *ret) {
    uint32_t sorted[RUN_TIMES_MAX];

    *ret = (struct times_summary){.n = name->n};
    memcpy(ret->name, name->name, sizeof(ret->name));
    if (name->n == 0)
        return;
    copy_in_order(name, sorted);
    follow_trend(sorted, name->n);
    qsort(sorted, name->n, sizeof(*sorted), compare_msec);
    for (size_t i = 0; i < RUN_TIMES_QUANTILES; i++)
        ret->q_msec[i] = quantile(sorted, name->n, percents[i]);
}

/* --- for the next berthd: "NAME MSEC MSEC ...", oldest first; names in the order of their last runs --- */

static int compare_last(const void *a, const void *b) {
    const struct times_name *x = *(const struct times_name *const *) a,
                            *y = *(const struct times_name *const *) b;

    return (x->last > y->last) - (x->last < y->last);
}

/* Stores the names in the order of their last runs. */
static void sort_names(const struct times *t, const struct times_name *ret[static TIMES_NAMES_MAX]) {
    for (size_t i = 0; i < t->n; i++)
        ret[i] = &t->names[i];
    if (t->n > 0)
        qsort(ret, t->n, sizeof(*ret), compare_last);
}

char *times_save(const struct times *t) {
    const struct times_name *names[TIMES_NAMES_MAX];
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    sort_names(t, names);
    for (size_t i = 0; i < t->n; i++) {
        uint32_t msec[RUN_TIMES_MAX];

        copy_in_order(names[i], msec);
        fputs(names[i]->name, f);
        for (uint32_t k = 0; k < names[i]->n; k++)
            fprintf(f, " %" PRIu32, msec[k]);
        fputc('\n', f);
    }
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static int load_line(struct times *t, char *line) {
    char *name = strsep(&line, " "), *word;
    uint64_t msec;

    if (!job_name_is_runnable(name))
        return -EBADMSG;
    while ((word = strsep(&line, " "))) {
        if (number_parse(word, UINT32_MAX, &msec) < 0)
            return -EBADMSG;
        add(t, name, (uint32_t) msec);
    }
    return 0;
}

int times_load(struct times *t, const char *text) {
    _cleanup_free_ char *copy = strdup(text);
    char *rest = copy, *line;
    int k = copy ? 0 : -ENOMEM;

    while (k == 0 && (line = strsep(&rest, "\n")) && *line != '\0')
        k = load_line(t, line);
    return k;
}

/* --- for other hosts: a line "NAME RUNS CAP Q Q Q Q Q Q Q Q"; CAP 0: none --- */

static int format_line(const struct times_name *name, usec_t cap_usec, char *buffer, size_t size) {
    struct times_summary s;
    int n;

    times_summarize(name, &s);
    n = snprintf(buffer, size, "%s %" PRIu32 " %" PRIu64, s.name, s.n,
                 cap_usec == USEC_INFINITY ? 0 : cap_usec / USEC_PER_MSEC);
    for (size_t i = 0; i < RUN_TIMES_QUANTILES; i++)
        n += snprintf(buffer + n, size - (size_t) n, " %" PRIu32, s.q_msec[i]);
    return n + snprintf(buffer + n, size - (size_t) n, "\n");
}

char *times_format(const struct times *t, size_t max, usec_t (*cap_usec)(const char *name, void *userdata),
                 void *userdata) {
    const struct times_name *names[TIMES_NAMES_MAX];
    char *text = calloc(1, max), line[NAME_MAX_LENGTH + 200];
    size_t size = 0;

    if (!text)
        return NULL;
    sort_names(t, names);
    for (size_t i = t->n; i-- > 0;) {
        int n = format_line(names[i], cap_usec(names[i]->name, userdata), line, sizeof(line));

        if (size + (size_t) n >= max)
            break;
        memcpy(text + size, line, (size_t) n + 1);
        size += (size_t) n;
    }
    return text;
}

static int read_words(char *line, struct times_summary *ret) {
    char *word = strsep(&line, " ");
    uint64_t numbers[2 + RUN_TIMES_QUANTILES];

    if (!job_name_is_runnable(word))
        return -EBADMSG;
    (void) snprintf(ret->name, sizeof(ret->name), "%s", word);
    for (size_t i = 0; i < 2 + RUN_TIMES_QUANTILES; i++) {
        word = strsep(&line, " ");
        if (!word || number_parse(word, i == 1 ? NUMBER_MAX : UINT32_MAX, &numbers[i]) < 0)
            return -EBADMSG;
        if (i >= 2)
            ret->q_msec[i - 2] = (uint32_t) numbers[i];
        if (i > 2 && numbers[i] < numbers[i - 1])
            return -EBADMSG;
    }
    if (line || numbers[0] == 0 || numbers[0] > RUN_TIMES_MAX)
        return -EBADMSG;
    ret->n = (uint32_t) numbers[0];
    ret->cap_msec = numbers[1];
    return 0;
}

const char *times_read(const char *text, struct times_summary *ret) {
    size_t length = strcspn(text, "\n");
    char line[NAME_MAX_LENGTH + 200];

    if (text[length] != '\n' || length >= sizeof(line))
        return NULL;
    memcpy(line, text, length);
    line[length] = '\0';
    return read_words(line, ret) == 0 ? text + length + 1 : NULL;
}
