/* SPDX-License-Identifier: MIT */
#include "cli/logs/log-target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/job-name.h"
#include "base/journal/journal-stream.h"
#include "cli/logs/log-writer.h"

int log_targets_new(struct log_targets *ret, char **names, size_t n, const char *unit) {
    *ret = (struct log_targets) {.items = calloc(n, sizeof(*ret->items)), .n = n, .unit = unit};
    if (!ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        bool is_run = id_is_valid(names[i]);

        ret->items[i].name = names[i];
        ret->items[i].run = is_run ? names[i] : NULL;
        ret->items[i].is_undecided = !is_run && id_prefix_is_valid(names[i]);
    }
    return 0;
}

void log_targets_done(struct log_targets *t) {
    free(t->items);
    *t = (struct log_targets) {0};
}

/* --- which entries --- */

/* is_first: begins a group of matches. */
static int match(struct journal_reader *reader, bool is_first, const char *begin, const char *name,
                 const char *end) {
    _cleanup_free_ char *text = NULL;

    if (asprintf(&text, "%s%s%s", begin, name, end) < 0) {
        text = NULL;
        return -ENOMEM;
    }
    return is_first ? journal_reader_match_also(reader, text) : journal_reader_match(reader, text);
}

/* The jobs come last, because log_targets_match_instances() adds to their group. */
int log_targets_match(const struct log_targets *t, struct journal_reader *reader) {
    bool is_first = true;
    int k = 0;

    for (size_t i = 0; i < t->n && k >= 0; i++)
        if (t->items[i].run)
            k = match(reader, true, "_SYSTEMD_UNIT=" JOURNAL_STREAM_UNIT_BEGIN, t->items[i].run,
                      JOURNAL_STREAM_UNIT_END);
    for (size_t i = 0; i < t->n && k >= 0; i++)
        if (!t->items[i].run) {
            k = match(reader, is_first, "SYSLOG_IDENTIFIER=", t->items[i].name, "");
            is_first = false;
        }
    return k;
}

static bool is_instance(const char *identifier, void *userdata) {
    const struct log_targets *t = userdata;

    for (size_t i = 0; i < t->n; i++)
        if (!t->items[i].run && job_name_matches(t->items[i].name, identifier))
            return true;
    return false;
}

int log_targets_match_instances(struct log_targets *t, struct journal_reader *reader) {
    for (size_t i = 0; i < t->n; i++)
        if (!t->items[i].run && job_name_parse(t->items[i].name) == JOB_NAME_TEMPLATE)
            return journal_reader_match_values(reader, "SYSLOG_IDENTIFIER", is_instance, t);
    return 0;
}

/* --- the meaning of names --- */

static bool has_undecided(const struct log_targets *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].is_undecided)
            return true;
    return false;
}

static void note_candidate(struct log_targets *t, const char *run, const char *job) {
    for (size_t i = 0; i < t->n; i++) {
        struct log_target *target = &t->items[i];

        if (target->is_undecided && strcmp(job, target->name) == 0)
            target->is_undecided = false; /* a job's name takes precedence */
        else if (target->is_undecided && id_begins_with(run, target->name))
            candidates_add(&target->candidates, run, job);
    }
}

/* Notes a run from an event of berthd or from a line of its output. */
static int note_entry(struct log_targets *t, struct journal_reader *reader) {
    _cleanup_free_ char *run = NULL, *job = NULL, *unit = NULL;
    char writer[ID_TEXT_SIZE];
    int k = log_writer_find(reader, writer);

    if (k < 0)
        return k;
    if (k > 0)
        note_candidate(t, writer, "");
    k = journal_reader_get(reader, "_SYSTEMD_UNIT", &unit);
    if (k < 0 || !unit || strcmp(unit, t->unit) != 0)
        return k;
    k = journal_reader_get(reader, "BERTH_RUN", &run);
    k = k < 0 ? k : journal_reader_get(reader, "BERTH_JOB", &job);
    if (k >= 0 && run && job && id_is_valid(run))
        note_candidate(t, run, job);
    return k;
}

int log_targets_decide(struct log_targets *t, struct journal_reader *reader) {
    bool is_run = false;
    int k = 0;

    while (has_undecided(t) && (k = journal_reader_next(reader)) > 0) {
        k = note_entry(t, reader);
        if (k < 0)
            return k;
    }
    journal_reader_rewind(reader);
    for (size_t i = 0; i < t->n && k >= 0; i++) {
        struct log_target *target = &t->items[i];

        if (!target->is_undecided || target->candidates.n == 0)
            continue;
        if (target->candidates.n > 1)
            return candidates_explain(&target->candidates, target->name);
        target->run = target->candidates.items[0].run;
        is_run = true;
    }
    return k < 0 ? k : is_run ? log_targets_match(t, reader) : 0;
}

/* --- what the journal has --- */

bool log_targets_have_run(struct log_targets *t, const char *run) {
    bool has = false;

    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].run && strcmp(t->items[i].run, run) == 0)
            has = t->items[i].has_any = true;
    return has;
}

bool log_targets_have_job(struct log_targets *t, const char *job) {
    bool has = false;

    for (size_t i = 0; i < t->n; i++)
        if (!t->items[i].run && choice_is_name(t->items[i].name, job))
            has = t->items[i].has_any = true;
    return has;
}

void log_targets_end_run(struct log_targets *t, const char *run) {
    for (size_t i = 0; i < t->n; i++)
        t->items[i].is_over |= t->items[i].run && strcmp(t->items[i].run, run) == 0;
}

bool log_targets_are_over(const struct log_targets *t) {
    for (size_t i = 0; i < t->n; i++)
        if (!t->items[i].is_over)
            return false;
    return true;
}

const struct log_target *log_targets_missing(const struct log_targets *t) {
    for (size_t i = 0; i < t->n; i++)
        if (!t->items[i].has_any)
            return &t->items[i];
    return NULL;
}
