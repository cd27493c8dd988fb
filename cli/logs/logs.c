/* SPDX-License-Identifier: MIT */
/* berth logs: the output of jobs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/job-name.h"
#include "base/journal/journal-stream.h"
#include "base/name.h"
#include "base/number.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/cluster.h"
#include "cli/logs/log-index.h"
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
    const char *unit; /* of berthd */
    const char *run;  /* requested; NULL: all of the job */
    const char *word; /* a job's name or the first digits of a run, while not decided; else NULL */
    struct candidates candidates;
    bool utc;                      /* of the lines' times */
    char job[NAME_MAX_LENGTH + 1]; /* requested, or of the run; "": not known yet */
    usec_t since;
    struct log_index runs;
    bool has_any; /* the journal has an event or a line of the job or run */
    bool is_over; /* the requested run */
    char **last;  /* a ring of the last lines; NULL: lines are printed at once */
    size_t n_last, next, n_lines;
};

static bool ends_run(const char *event) {
    return strcmp(event, "exited") == 0 || strcmp(event, "refused") == 0 || strcmp(event, "withdrawn") == 0;
}

/* Notes the job and the end of a run from an event of berthd. */
static int note_event(struct logs *l, const char *event) {
    _cleanup_free_ char *run = NULL, *job = NULL;
    struct log_run *known;
    int k = journal_reader_get(l->reader, "BERTH_RUN", &run);

    k = k < 0 ? k : journal_reader_get(l->reader, "BERTH_JOB", &job);
    if (k < 0 || !run || !job || !id_is_valid(run))
        return k;
    if (l->run && strcmp(run, l->run) == 0)
        snprintf(l->job, sizeof(l->job), "%s", job);
    known = log_index_add(&l->runs, run);
    if (!known)
        return -ENOMEM;
    known->is_wanted |= choice_is_name(l->job, job);
    snprintf(known->job, sizeof(known->job), "%s", job);
    l->is_over |= l->run && strcmp(run, l->run) == 0 && ends_run(event);
    l->has_any |= l->run ? strcmp(run, l->run) == 0 : known->is_wanted;
    return 0;
}

struct line {
    char run[ID_TEXT_SIZE], job[NAME_MAX_LENGTH + 1];
};

/* Returns whether to print the current entry. ret: its run and job. */
static int is_wanted(struct logs *l, struct line *ret) {
    _cleanup_free_ char *identifier = NULL;
    const struct log_run *known;
    int k = log_writer_find(l->reader, ret->run);

    if (k <= 0)
        return k;
    snprintf(ret->job, sizeof(ret->job), "%s", l->job[0] ? l->job : "?");
    if (l->run)
        return strcmp(ret->run, l->run) == 0;
    known = log_index_find(&l->runs, ret->run);
    if (known) {
        snprintf(ret->job, sizeof(ret->job), "%s", known->job);
        return known->is_wanted;
    }
    /* Its events are no longer in the journal. */
    k = journal_reader_get(l->reader, "SYSLOG_IDENTIFIER", &identifier);
    if (k < 0 || !identifier || !choice_is_name(l->job, identifier))
        return k;
    snprintf(ret->job, sizeof(ret->job), "%s", identifier);
    return 1;
}

/* --- lines --- */

/* Prints text with control characters escaped, also those of two bytes (C1), which could control the
 * terminal. */
static void put_escaped(FILE *f, const char *text) {
    for (const unsigned char *c = (const unsigned char *) text; *c; c++)
        if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
            fprintf(f, "\\x%02x", c[1]);
            c++;
        } else if ((*c < ' ' && *c != '\t') || *c == 0x7f) {
            fprintf(f, "\\x%02x", *c);
        } else {
            fputc(*c, f);
        }
}

static int make_line(struct logs *l, const struct line *line, char **ret) {
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
    fprintf(f, " %s[%.*s]: ", line->job, RUN_SHOWN, line->run);
    put_escaped(f, message ? message : "");
    return fclose(f) == 0 ? 0 : -ENOMEM;
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
    if (strcmp(unit, l->unit) == 0) {
        k = journal_reader_get(l->reader, "BERTH_EVENT", &event);
        return k < 0 || !event ? k : note_event(l, event);
    }
    k = is_wanted(l, &line);
    if (k <= 0)
        return k;
    l->has_any = true;
    k = make_line(l, &line, &text);
    if (k >= 0 && text)
        add_line(l, steal_pointer(&text));
    return k;
}

/* --- the first pass: the meaning of the word --- */

static void note_candidate(struct logs *l, const char *run, const char *job) {
    if (strcmp(job, l->word) == 0)
        l->word = NULL; /* a job's name takes precedence */
    else if (id_begins_with(run, l->word))
        candidates_add(&l->candidates, run, job);
}

/* Notes a run from an event of berthd or from a line of its output. */
static int note_entry(struct logs *l) {
    _cleanup_free_ char *run = NULL, *job = NULL, *unit = NULL;
    char writer[ID_TEXT_SIZE];
    int k = log_writer_find(l->reader, writer);

    if (k < 0)
        return k;
    if (k > 0)
        note_candidate(l, writer, "");
    k = journal_reader_get(l->reader, "_SYSTEMD_UNIT", &unit);
    if (k < 0 || !l->word || !unit || strcmp(unit, l->unit) != 0)
        return k;
    k = journal_reader_get(l->reader, "BERTH_RUN", &run);
    k = k < 0 ? k : journal_reader_get(l->reader, "BERTH_JOB", &job);
    if (k >= 0 && run && job && id_is_valid(run))
        note_candidate(l, run, job);
    return k;
}

/* Also matches the lines of processes that had ended. */
static int match_ended(struct logs *l) {
    _cleanup_free_ char *match = NULL;
    int n = l->run
                ? asprintf(&match, "_SYSTEMD_UNIT=" JOURNAL_STREAM_UNIT_BEGIN "%s" JOURNAL_STREAM_UNIT_END,
                           l->run)
                : asprintf(&match, "SYSLOG_IDENTIFIER=%s", l->job);

    if (n < 0) {
        match = NULL;
        return -ENOMEM;
    }
    return journal_reader_match_also(l->reader, match);
}

/* Reads entries until the meaning of the word is known. */
static int decide_word(struct logs *l) {
    int k = 0;

    while (l->word && (k = journal_reader_next(l->reader)) > 0) {
        k = note_entry(l);
        if (k < 0)
            return k;
    }
    journal_reader_rewind(l->reader);
    if (!l->word || l->candidates.n != 1)
        return k;
    l->run = l->candidates.items[0].run;
    l->job[0] = '\0';
    return match_ended(l);
}

static bool is_instance(const char *identifier, void *userdata) {
    return job_name_matches(userdata, identifier);
}

/* Matches the instances of a template that the journal has. More may come with -f. */
static int match_instances(struct logs *l) {
    if (l->run || job_name_parse(l->job) != JOB_NAME_TEMPLATE)
        return 0;
    return journal_reader_match_values(l->reader, "SYSLOG_IDENTIFIER", is_instance, l->job);
}

static int read_all(struct logs *l) {
    int k = match_instances(l);

    while (k >= 0 && (k = journal_reader_next(l->reader)) > 0)
        k = take_entry(l);
    return k;
}

/* Prints new lines until the reader of standard output is gone or the run has ended. */
static int follow(struct logs *l) {
    int k = 1;

    while (fflush(stdout) == 0 && !ferror(stdout) && (k > 0 || !l->is_over)) {
        int n;

        k = journal_reader_wait(l->reader, l->is_over ? LAST_LINES_TIME : USEC_INFINITY, STDOUT_FILENO);
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
    if (asprintf(&berthd, "_SYSTEMD_UNIT=%s", l->unit) < 0) {
        berthd = NULL;
        return -ENOMEM;
    }
    k = journal_reader_match(l->reader, berthd);
    return k < 0 ? k : journal_reader_match(l->reader, "_SYSTEMD_UNIT=" RUNNER_UNIT);
}

static int logs_show(struct logs *l, const struct sources *s, const char *name, bool wants_follow) {
    const char *directory = s->directories.n > 0 ? s->directories.items[0] : NULL;
    int k = logs_open(l, s);

    k = k < 0 ? k : match_ended(l);
    k = k < 0 ? k : decide_word(l);
    if (k >= 0 && l->word && l->candidates.n > 1)
        return candidates_explain(&l->candidates, l->word);
    k = k < 0 ? k : read_all(l);
    if (k < 0)
        return sources_explain("logs", directory, k);
    flush_last(l);
    if (wants_follow) {
        k = follow(l);
        return k < 0 ? sources_explain("logs", directory, k) : 0;
    }
    if (l->has_any)
        return 0;
    if (!directory && cluster_say_where(name))
        return EXIT_UNKNOWN_NAME;
    fprintf(stderr,
            "berth logs: the journal has no job or run %s; `berth jobs` and `berth history` list them\n",
            name);
    return EXIT_UNKNOWN_NAME;
}

static void logs_done(struct logs *l) {
    flush_last(l);
    log_index_done(&l->runs);
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
                                          SOURCES_OPTIONS(&sources)};
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    status = options_check_job("logs", "job or run", argv[1]);
    if (status == 0 && (sources.directories.n > 1 || (sources.merged && sources.directories.n > 0)))
        status = options_wrong_usage("logs", "--directory can be given once, and not with -m");
    if (status == 0)
        status = options_parse_when("logs", "--since", since, &l.since);
    if (status == 0)
        status = set_lines(&l, lines, wants_follow);
    if (status != 0)
        return status;
    l.unit = sources.unit ? sources.unit : ENTRIES_UNIT_DEFAULT;
    if (id_is_valid(argv[1]))
        l.run = argv[1];
    else
        snprintf(l.job, sizeof(l.job), "%s", argv[1]);
    if (!l.run && id_prefix_is_valid(argv[1]))
        l.word = argv[1];
    return logs_show(&l, &sources, argv[1], wants_follow);
}
