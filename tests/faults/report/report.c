/* SPDX-License-Identifier: MIT */
#include "tests/faults/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct report_row *find_row(struct report *r, const char *name) {
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->rows[i].name, name) == 0)
            return &r->rows[i];
    if (r->n == ELEMENTSOF(r->rows))
        abort();
    snprintf(r->rows[r->n].name, sizeof(r->rows[r->n].name), "%s", name);
    return &r->rows[r->n++];
}

static uint64_t number(const char *line, const char *key) {
    char search[32];
    const char *at;

    snprintf(search, sizeof(search), " %s ", key);
    at = strstr(line, search);
    return at ? strtoull(at + strlen(search), NULL, 10) : 0;
}

static void read_result(struct report *r, struct report_row *row, const char *line) {
    row->injected += (unsigned) number(line, "injected");
    row->hits += (unsigned) number(line, "hits");
    row->runs += number(line, "runs");
    row->overlaps += number(line, "overlaps");
    if (number(line, "overlap_us") > row->worst_overlap)
        row->worst_overlap = number(line, "overlap_us");
    if (number(line, "idle_us") > row->longest_idle)
        row->longest_idle = number(line, "idle_us");
    r->doubled += number(line, "doubled");
    r->lost += number(line, "lost") + number(line, "unrecorded");
    r->jobs += number(line, "jobs");
}

static void read_margin(struct report *r, const char *line) {
    if (r->n_margins % 256 == 0) {
        usec_t *grown = realloc(r->margins, (r->n_margins + 256) * sizeof(*grown));

        if (!grown)
            abort();
        r->margins = grown;
    }
    r->margins[r->n_margins++] = strtoull(line, NULL, 10);
}

static struct report_doubt *find_doubt(struct report *r, const char *name, const char *why, size_t length) {
    for (size_t i = 0; i < r->n_doubts; i++)
        if (strcmp(r->doubts[i].name, name) == 0 && strncmp(r->doubts[i].why, why, length) == 0 && r->doubts[i].why[length] == '\0')
            return &r->doubts[i];
    if (r->n_doubts == ELEMENTSOF(r->doubts) || length >= sizeof(r->doubts[0].why))
        abort();
    snprintf(r->doubts[r->n_doubts].name, sizeof(r->doubts[0].name), "%s", name);
    snprintf(r->doubts[r->n_doubts].why, sizeof(r->doubts[0].why), "%.*s", (int) length, why);
    return &r->doubts[r->n_doubts++];
}

/* Reads a line "unproved: KIND: ... (WHY)", or "...: WHY". */
static void read_doubt(struct report *r, const char *name, const char *line, bool first) {
    const char *open = strrchr(line, '('), *colon = strrchr(line, ':'), *why = open ? open + 1 : colon ? colon + 2 : line;
    struct report_doubt *d = find_doubt(r, name, why, strcspn(why, ")\n"));

    d->n++;
    d->cases += first;
}

void report_expect(struct report *r, const char *name) {
    (void) find_row(r, name);
}

void report_add(struct report *r, const char *name, bool ok, const char *text) {
    struct report_row *row = find_row(r, name);
    char *copy = strdup(text), *rest = copy;
    bool unproved = false;

    row->cases++;
    row->failed += !ok;
    row->broken += strstr(text, "audit, as expected: ") != NULL;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "result ", 7) == 0)
            read_result(r, row, line);
        else if (strncmp(line, "margin ", 7) == 0)
            read_margin(r, line + 7);
        else if (strncmp(line, "unproved: ", 10) == 0) {
            read_doubt(r, name, line, !unproved);
            unproved = true;
        }
    row->unproved += unproved;
    free(copy);
}

void report_print(const struct report *r) {
    for (size_t i = 0; i < r->n; i++) {
        const struct report_row *row = &r->rows[i];

        printf("%-26s %3u cases %3u failed %3u injected %4u hit %6" PRIu64 " runs, overlap %" PRIu64 " us, longest idle %" PRIu64 " ms\n",
               row->name, row->cases, row->failed, row->injected, row->hits, row->runs, row->worst_overlap,
               row->longest_idle / USEC_PER_MSEC);
    }
}

void report_done(struct report *r) {
    free(r->margins);
    *r = (struct report) {0};
}
