/* SPDX-License-Identifier: MIT */
/* berth logs: the output of jobs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/name.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/cluster-runs.h"
#include "cli/logs/log-event.h"
#include "cli/logs/log-index.h"
#include "cli/logs/log-target.h"
#include "cli/logs/log-writer.h"
#include "cli/sources.h"
#include "cli/verbs.h"
#include "cli/when.h"

#define FOLLOW_LINES 10   /* shown first with -f */
#define LINES_MAX 1000000 /* of -n */
#define RUN_SHOWN 8       /* digits */
#define LAST_LINES_TIME USEC_PER_SEC /* after the end of a run, in which its last lines may reach the journal */

struct logs {
    struct journal_reader *reader;
    struct log_targets targets;
    bool utc;    /* of the lines' times */
    bool events; /* among the lines */
    usec_t since;
    struct log_index runs;
    bool is_survey; /* nothing is printed */
    char **last;    /* a ring of the last lines; NULL: lines are printed at once */
    size_t n_last, next, n_lines;
};

struct line {
    char run[ID_TEXT_SIZE], job[NAME_MAX_LENGTH + 1];
};

static bool ends_run(const char *event) {
    return strcmp(event, "exited") == 0 || strcmp(event, "refused") == 0 || strcmp(event, "withdrawn") == 0;
}

/* Notes the job and the end of a run from an event of berthd. Returns whether the run is wanted. ret: its
 * run and job. */
static int note_event(struct logs *l, const char *event, struct line *ret) {
    _cleanup_free_ char *run = NULL, *job = NULL;
    struct log_run *known;
    int k = journal_reader_get(l->reader, "BERTH_RUN", &run);

    k = k < 0 ? k : journal_reader_get(l->reader, "BERTH_JOB", &job);
    if (k < 0 || !run || !job || !id_is_valid(run))
        return k < 0 ? k : 0;
    known = log_index_add(&l->runs, run);
    if (!known)
        return -ENOMEM;
    snprintf(known->job, sizeof(known->job), "%s", job);
    snprintf(ret->job, sizeof(ret->job), "%s", job);
    snprintf(ret->run, sizeof(ret->run), "%s", run);
    known->is_wanted |= log_targets_have_run(&l->targets, run);
    known->is_wanted |= log_targets_have_job(&l->targets, job);
    if (ends_run(event))
        log_targets_end_run(&l->targets, run);
    return known->is_wanted;
}

/* Returns whether to print the current entry. ret: its run and job. */
static int is_wanted(struct logs *l, struct line *ret) {
    _cleanup_free_ char *identifier = NULL;
    const struct log_run *known;
    int k = log_writer_find(l->reader, ret->run);

    if (k <= 0)
        return k;
    known = log_index_find(&l->runs, ret->run);
    snprintf(ret->job, sizeof(ret->job), "%s", known ? known->job : "?");
    if (known || log_targets_have_run(&l->targets, ret->run))
        return !known || known->is_wanted;
    /* Its events are no longer in the journal. */
    k = journal_reader_get(l->reader, "SYSLOG_IDENTIFIER", &identifier);
    if (k < 0 || !identifier || !log_targets_have_job(&l->targets, identifier))
        return k < 0 ? k : 0;
    snprintf(ret->job, sizeof(ret->job), "%s", identifier);
    return 1;
}

/* --- lines --- */

/* Prints text. Bytes of control characters, which a terminal might obey, and bytes that are not UTF-8 are escaped. */
static void put_escaped(FILE *f, const char *text) {
    for (size_t n; *text; text += n) {
        n = *text == '\t' ? 1 : text_character(text);
        if (n > 0) {
            (void) fwrite(text, 1, n, f);
        } else {
            n = 1;
            fprintf(f, "\\x%02x", (unsigned char) *text);
        }
    }
}

/* event: of berthd, instead of a line; or NULL. */
static int make_line(struct logs *l, const struct line *line, const char *event, char **ret) {
    _cleanup_free_ char *message = NULL, *host = NULL;
    char time_text[2 * WHEN_TEXT_SIZE];
    size_t size;
    usec_t time = 0;
    FILE *f;
    int k = journal_reader_time(l->reader, &time);

    k = k < 0 ? k : journal_reader_get(l->reader, "MESSAGE", &message);
    k = k < 0 ? k : journal_reader_get(l->reader, "_HOSTNAME", &host);
    *ret = NULL;
    if (k < 0 || time < l->since)
        return k;
    f = open_memstream(ret, &size);
    if (!f)
        return -ENOMEM;
    fprintf(f, "%s ", when_format_exactly(time, l->utc, time_text));
    put_escaped(f, host ? host : "");
    fputc(' ', f);
    put_escaped(f, line->job);
    fprintf(f, "[%.*s]: ", RUN_SHOWN, line->run);
    if (event)
        k = log_event_print(f, l->reader, event);
    else
        put_escaped(f, message ? message : "");
    return fclose(f) == 0 ? k : -ENOMEM;
}

/* Prints a line, or keeps it among the last ones. line: stolen. */
static void add_line(struct logs *l, char *line) {
    if (!l->last) {
        puts(line);
        free(line);
        return;
    }
    free(l->last[l->next]);
    l->last[l->next] = line;
    l->next = (l->next + 1) % l->n_last;
    l->n_lines += l->n_lines < l->n_last;
}

static void flush_last(struct logs *l) {
    for (size_t i = 0; l->last && i < l->n_lines; i++) {
        size_t at = (l->next + l->n_last - l->n_lines + i) % l->n_last;

        puts(l->last[at]);
        free(l->last[at]);
    }
    free(l->last);
    l->last = NULL;
}

static int take_entry(struct logs *l) {
    _cleanup_free_ char *unit = NULL, *event = NULL, *text = NULL;
    struct line line;
    int k = journal_reader_get(l->reader, "_SYSTEMD_UNIT", &unit);

    if (k < 0 || !unit)
        return k;
    if (strcmp(unit, l->targets.unit) == 0) {
        k = journal_reader_get(l->reader, "BERTH_EVENT", &event);
        if (k < 0 || !event)
            return k;
        k = note_event(l, event, &line);
        if (k >= 0 && !l->events)
            k = 0;
    } else {
        k = is_wanted(l, &line);
    }
    if (k <= 0 || l->is_survey)
        return k;
    k = make_line(l, &line, event, &text);
    if (k >= 0 && text)
        add_line(l, steal_pointer(&text));
    return k;
}

static int read_all(struct logs *l) {
    int k = log_targets_match_instances(&l->targets, l->reader);

    while (k >= 0 && (k = journal_reader_next(l->reader)) > 0)
        k = take_entry(l);
    return k;
}

/* Reads the journal once before a line is printed, because a verb does nothing if one of several names is
 * wrong. */
static int survey(struct logs *l) {
    int k;

    l->is_survey = true;
    k = read_all(l);
    l->is_survey = false;
    journal_reader_rewind(l->reader);
    return k;
}

/* Prints new lines until the reader of standard output is gone or all runs have ended. */
static int follow(struct logs *l) {
    int k = 1;

    while (fflush(stdout) == 0 && !ferror(stdout) && (k > 0 || !log_targets_are_over(&l->targets))) {
        usec_t wait = log_targets_are_over(&l->targets) ? LAST_LINES_TIME : USEC_INFINITY;
        int n;

        k = journal_reader_wait(l->reader, wait, STDOUT_FILENO);
        if (k == -EPIPE)
            return 0;
        n = k < 0 ? k : read_all(l);
        if (n < 0)
            return n;
    }
    return 0;
}

/* --- the verb --- */

static int logs_open(struct logs *l, const struct sources *s) {
    _cleanup_free_ char *berthd = NULL;
    int k = journal_reader_new(&l->reader, s->directories.n > 0 ? s->directories.items[0] : NULL, s->merged);

    if (k < 0)
        return k;
    if (asprintf(&berthd, "_SYSTEMD_UNIT=%s", l->targets.unit) < 0) {
        berthd = NULL;
        return -ENOMEM;
    }
    k = journal_reader_match(l->reader, berthd);
    return k < 0 ? k : journal_reader_match(l->reader, "_SYSTEMD_UNIT=" RUNNER_UNIT);
}

/* Returns EXIT_UNKNOWN_NAME, after it printed which name the journal does not have; or 0. */
static int explain_missing(const struct logs *l, bool is_machine) {
    const struct log_target *missing = log_targets_missing(&l->targets);

    if (!missing)
        return 0;
    if (!is_machine || !cluster_runs_say_where(missing->name))
        fprintf(stderr,
                "berth logs: the journal has no job or run %s; `berth jobs` and `berth history` list them\n",
                missing->name);
    return EXIT_UNKNOWN_NAME;
}

static int logs_show(struct logs *l, const struct sources *s, bool wants_follow) {
    const char *directory = s->directories.n > 0 ? s->directories.items[0] : NULL;
    bool needs_survey = l->targets.n > 1 && !wants_follow;
    int k = logs_open(l, s);

    k = k < 0 ? k : log_targets_match(&l->targets, l->reader);
    k = k < 0 ? k : log_targets_decide(&l->targets, l->reader);
    if (k > 0)
        return k;
    if (k >= 0 && needs_survey) {
        k = survey(l);
        k = k < 0 ? k : sources_warn("logs", directory, l->reader);
        if (k >= 0 && explain_missing(l, !directory) != 0)
            return EXIT_UNKNOWN_NAME;
    }
    k = k < 0 ? k : read_all(l);
    k = k < 0 || needs_survey ? k : sources_warn("logs", directory, l->reader);
    if (k < 0)
        return sources_explain("logs", directory, k);
    flush_last(l);
    if (!wants_follow)
        return explain_missing(l, !directory);
    k = follow(l);
    return k < 0 ? sources_explain("logs", directory, k) : 0;
}

static void logs_done(struct logs *l) {
    flush_last(l);
    log_index_done(&l->runs);
    log_targets_done(&l->targets);
    l->reader = journal_reader_free(l->reader);
}

/* 0 or an exit status. */
static int set_lines(struct logs *l, const char *lines, bool wants_follow) {
    uint64_t n = FOLLOW_LINES;

    if (lines && (number_parse(lines, LINES_MAX, &n) < 0 || n == 0))
        return options_wrong_usage("logs", "-n %.100s: must be 1 to %d", lines, LINES_MAX);
    if (!lines && !wants_follow)
        return 0;
    l->n_last = (size_t) n;
    l->last = calloc(l->n_last, sizeof(*l->last));
    return l->last ? 0 : sources_explain("logs", NULL, -ENOMEM);
}

int verb_logs(int argc, char **argv) {
    _cleanup_(logs_done) struct logs l = {};
    struct sources sources = {};
    const char *lines = NULL, *since = NULL;
    bool wants_follow = false;
    const struct verb_option options[] = {OPTION_FLAG("-f", &wants_follow), OPTION_VALUE("-n", &lines),
                                          OPTION_VALUE("--since", &since), OPTION_FLAG("--utc", &l.utc),
                                          OPTION_FLAG("--events", &l.events),
                                          SOURCES_OPTIONS(&sources)};
    int status = 0, n = options_parse(argc, argv, options, ELEMENTSOF(options), &status);

    if (n < 0)
        return status;
    for (int i = 1; i <= n && status == 0; i++)
        status = options_check_job("logs", "job or run", argv[i]);
    if (status == 0 && (sources.directories.n > 1 || (sources.merged && sources.directories.n > 0)))
        status = options_wrong_usage("logs", "--directory can be given once, and not with -m");
    if (status == 0)
        status = options_parse_when("logs", "--since", since, &l.since);
    if (status == 0)
        status = set_lines(&l, lines, wants_follow);
    if (status != 0)
        return status;
    if (log_targets_new(&l.targets, argv + 1, (size_t) n, sources.unit ? sources.unit : ENTRIES_UNIT_DEFAULT) < 0)
        return sources_explain("logs", NULL, -ENOMEM);
    return logs_show(&l, &sources, wants_follow);
}
