/* SPDX-License-Identifier: MIT */
/* Verbs that show this host: jobs, runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/explain/claims.h"
#include "base/json/format.h"
#include "base/schedule/schedule.h"
#include "cli/choice.h"
#include "cli/client.h"
#include "cli/cluster-runs.h"
#include "cli/output.h"
#include "cli/verbs.h"

#define INT "%" JSON_INTEGER_FORMAT

static enum table_colour state_colour(const char *state) {
    if (strcmp(state, "running") == 0)
        return TABLE_GOOD;
    return strcmp(state, "done") == 0 || strcmp(state, "idle") == 0 ? TABLE_PLAIN : TABLE_NOTICE;
}

static enum table_colour result_colour(const char *result) {
    return strcmp(result, "success") == 0   ? TABLE_GOOD
           : strcmp(result, "stopped") == 0 ? TABLE_NOTICE
                                            : TABLE_BAD;
}

/* "failure (exit 3), broken 3x"; "success, overdue" */
static const char *add_broken(const json_t *j, const char *result, char text[static FORMAT_SIZE]) {
    json_int_t bad = format_get_number(j, "bad");

    if (!json_is_true(json_object_get(j, "broken")))
        return result;
    if (bad == 0)
        snprintf(text, FORMAT_SIZE, "%.100s%soverdue", result, result[0] ? ", " : "");
    else
        snprintf(text, FORMAT_SIZE, "%.100s%sbroken " INT "x", result, result[0] ? ", " : "", bad);
    return text;
}

/* Formats "in 12s" within a minute, "02:30 in 5h42m" within a day, else "Nov 27 02:30 in 1d5h", in local
 * time. */
static const char *add_time(const json_t *j, usec_t now, const char *when, char text[static FORMAT_SIZE]) {
    char copy[FORMAT_SIZE], time[32] = "";
    time_t seconds;
    struct tm tm;
    int64_t at;

    if (schedule_parse_time(format_get_text(j, "next"), &at) < 0 || (usec_t) at * USEC_PER_SEC < now + 60 * USEC_PER_SEC)
        return when;
    seconds = (time_t) at;
    snprintf(copy, sizeof(copy), "%s", when);
    if (!localtime_r(&seconds, &tm) ||
        strftime(time, sizeof(time), (usec_t) at * USEC_PER_SEC < now + 86400 * USEC_PER_SEC ? "%H:%M" : "%b %e %H:%M", &tm) == 0)
        return when;
    snprintf(text, FORMAT_SIZE, "%s %.100s", time, copy);
    return text;
}

static const char *format_next(const json_t *j, usec_t now, char text[static FORMAT_SIZE]) {
    if (json_is_true(json_object_get(j, "drained")))
        return "drained";
    return *format_get_text(j, "zone_error") ? "no zone" : add_time(j, now, format_when(j, "next", now, text), text);
}

static void print_zone_errors(const json_t *jobs) {
    const json_t *j;
    size_t i;

    json_array_foreach (jobs, i, j)
        if (*format_get_text(j, "zone_error"))
            fprintf(stderr, "berth: %s is not due by its schedule: zone \"%s\" %s\n",
                    format_get_text(j, "name"), format_get_text(j, "zone"),
                    format_get_text(j, "zone_error"));
}

static void add_job(struct table *t, const json_t *j) {
    usec_t now = clock_realtime();
    char text[FORMAT_SIZE], result[FORMAT_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", format_get_text(j, "name"));
    table_cell(t, state_colour(format_get_text(j, "state")), "%s", format_get_text(j, "state"));
    table_cell(t, TABLE_PLAIN, INT, format_get_number(j, "runs"));
    table_cell(t, TABLE_PLAIN, "%s", format_pools(j, "pools", text));
    table_cell(
        t, result_colour(format_get_text(j, "last_result")), "%s",
        add_broken(j, format_result(j, "last_result", "last_exit_code", "last_signal", result), text));
    table_cell(t, TABLE_PLAIN, "%s", format_when(j, "last_ended", now, text));
    table_cell(t, TABLE_PLAIN, "%s", format_next(j, now, text));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(j, "description"));
}

static int print_jobs(const json_t *answer) {
    static const struct table_column columns[] = {
        {.name = "JOB"},
        {.name = "STATE"},
        {.name = "RUNS", .right = true, .drop = 2},
        {.name = "POOLS", .drop = 3},
        {.name = "LAST RESULT"},
        {.name = "ENDED", .drop = 4},
        {.name = "NEXT"},
        {.name = "DESCRIPTION", .drop = 1},
    };

    output_caveats(answer);
    print_zone_errors(json_object_get(answer, "jobs"));
    return output_items(json_object_get(answer, "jobs"), columns, ELEMENTSOF(columns), add_job,
                        "no jobs are defined");
}

/* Removes the jobs that the words do not name. Returns 0, or an exit status whose reason was printed. */
static int choose_jobs(json_t *jobs, char **words, size_t n) {
    _cleanup_json_ json_t *all = json_copy(jobs);
    json_t *job;
    size_t i, k;

    if (!all)
        return output_error(-ENOMEM);
    if (n > 0)
        (void) json_array_clear(jobs);
    for (k = 0; k < n; k++) {
        size_t n_before = json_array_size(jobs);

        json_array_foreach (all, i, job)
            if (choice_is_name(words[k], format_get_text(job, "name")) && json_array_append(jobs, job) < 0)
                return output_error(-ENOMEM);
        if (json_array_size(jobs) == n_before) {
            fprintf(stderr, "berth: no such job: %s (`berth jobs` lists them)\n", words[k]);
            return EXIT_UNKNOWN_NAME;
        }
    }
    return 0;
}

int verb_jobs(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false;
    const struct verb_option options[] = {OPTION_FLAG("--json", &json)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    status = 0;
    for (int i = 1; i <= words && status == 0; i++)
        status = options_check_job("jobs", "job", argv[i]);
    if (status == 0)
        status = client_call("io.berth.Jobs", NULL, &answer);
    if (status == 0)
        status = choose_jobs(json_object_get(answer, "jobs"), argv + 1, (size_t) words);
    if (status != 0)
        return status;
    return json ? output_json(answer) : print_jobs(answer);
}

/* "2/4"; "" for a job without retries. */
static const char *format_try(const json_t *run, char buffer[static FORMAT_SIZE]) {
    json_int_t attempt = format_get_number(run, "attempt"), attempts = format_get_number(run, "attempts");

    buffer[0] = '\0';
    if (attempts > 1)
        snprintf(buffer, FORMAT_SIZE, INT "/" INT, attempt, attempts);
    else if (attempt > 1) /* the job has no retry any more */
        snprintf(buffer, FORMAT_SIZE, INT, attempt);
    return buffer;
}

static void add_run(struct table *t, const json_t *run) {
    const char *state = format_get_text(run, "state"), *why = format_get_text(run, "blocked_by");
    const char *stuck = format_get_text(run, "stuck");
    bool is_job = strcmp(format_get_text(run, "kind"), "job") == 0;
    char text[FORMAT_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", format_get_text(run, "run"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(run, "name"));
    table_cell(t, TABLE_PLAIN, "%s", is_job ? format_get_text(run, "trigger") : "berth run");
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(run, "due"));
    table_cell(t, TABLE_PLAIN, "%s", format_try(run, text));
    table_cell(t, state_colour(state), "%s", state);
    table_cell(t, TABLE_PLAIN, "%s", format_pools(run, "pools", text));
    table_cell(t, TABLE_PLAIN, "%s", format_pools(run, "position", text));
    table_cell(t, TABLE_PLAIN, "%s", format_duration(run, "wait_ms", text));
    table_cell(t, TABLE_PLAIN, "%s", format_duration(run, "run_ms", text));
    table_cell(t, result_colour(format_get_text(run, "result")), "%s",
               format_result(run, "result", "exit_code", "signal", text));
    if (*stuck)
        table_cell(t, TABLE_BAD, "stuck: %s", stuck);
    else
        table_cell(t, TABLE_NOTICE, "%s", why[0] ? why : format_get_text(run, "reason"));
}

static int print_runs(const json_t *answer, bool all) {
    static const struct table_column columns[] = {
        {.name = "RUN", .digits = 8},
        {.name = "NAME"},
        {.name = "TRIGGER", .drop = 3},
        {.name = "DUE", .drop = 1},
        {.name = "TRY", .right = true, .drop = 5},
        {.name = "STATE"},
        {.name = "POOLS", .drop = 4},
        {.name = "POSITION", .drop = 2},
        {.name = "WAITED", .right = true},
        {.name = "RAN", .right = true},
        {.name = "RESULT", .drop = 6},
        {.name = "WHY"},
    };

    output_caveats(answer);
    return output_items(json_object_get(answer, "runs"), columns, ELEMENTSOF(columns), add_run,
                        all ? "nothing has run yet" : "nothing waits or runs (--all shows finished runs)");
}

/* Removes the runs that the words do not name. Returns 0, or an exit status whose reason was printed. */
static int choose_runs(json_t *runs, char **words, size_t n) {
    _cleanup_(choice_done) struct choice choice = {};
    const char *missing;
    size_t i = 0;
    json_t *run;

    if (choice_new(&choice, words, n) < 0)
        return output_error(-ENOMEM);
    json_array_foreach (runs, i, run)
        choice_see(&choice, format_get_text(run, "run"), format_get_text(run, "name"));
    missing = choice_missing(&choice);
    if (missing) {
        fprintf(stderr, "berth: no such run: %s (`berth runs --all` and `berth history` list them)\n",
                missing);
        return EXIT_UNKNOWN_NAME;
    }
    for (i = json_array_size(runs); i-- > 0;) {
        run = json_array_get(runs, i);
        if (!choice_has(&choice, format_get_text(run, "run"), format_get_text(run, "name")))
            (void) json_array_remove(runs, i);
    }
    return 0;
}

/* --- runs of all hosts --- */

static void add_cluster_run(struct table *t, const json_t *run) {
    const char *state = format_get_text(run, "state");
    char text[FORMAT_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", format_get_text(run, "run"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(run, "name"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(run, "host"));
    table_cell(t, strcmp(state, "holding") == 0 ? TABLE_GOOD : TABLE_NOTICE, "%s", state);
    table_cell(t, TABLE_PLAIN, "%s", format_pools(run, "pools", text));
    table_cell(t, TABLE_PLAIN, "%s", format_pools(run, "position", text));
    table_cell(t, TABLE_PLAIN, "%s", format_duration(run, "wait_ms", text));
    table_cell(t, TABLE_PLAIN, "%s", format_when(run, "since", clock_realtime(), text));
}

static int print_cluster_runs(const json_t *answer, const json_t *runs, bool is_complete) {
    static const struct table_column columns[] = {
        {.name = "RUN", .digits = 8},
        {.name = "NAME"},
        {.name = "HOST"},
        {.name = "STATE"},
        {.name = "POOLS", .drop = 2},
        {.name = "POSITION", .drop = 1},
        {.name = "WAITED", .right = true},
        {.name = "GRANTED"},
    };

    output_caveats(answer);
    if (!is_complete)
        fprintf(stderr,
                "berth: not all runs are listed: of each pool berthd shows 100 that hold permits and 100 "
                "that wait\n");
    return output_items(runs, columns, ELEMENTSOF(columns), add_cluster_run,
                        "no run holds permits or waits for them");
}

static int show_cluster_runs(char **words, size_t n, bool json) {
    _cleanup_json_ json_t *answer = NULL, *runs = NULL, *document = NULL;
    const json_t *pools;
    bool is_complete;
    int status = cluster_runs_ask(NULL, &answer);

    if (status != 0)
        return status;
    pools = json_object_get(answer, "pools");
    runs = claims_as_runs(pools);
    if (!runs)
        return output_error(-ENOMEM);
    status = choose_runs(runs, words, n);
    if (status != 0)
        return status;
    if (!json)
        return print_cluster_runs(answer, runs, claims_are_complete(pools));
    is_complete = claims_are_complete(pools) && format_get_number(json_object_get(answer, "redis"), "grace_ms") <= 0;
    document =
        json_pack("{s:i, s:O, s:O, s:b, s:O}", "schema", 1, "host", json_object_get(answer, "host"), "stale",
                  json_object_get(answer, "stale"), "complete", is_complete, "runs", runs);
    return document ? output_json(document) : output_error(-ENOMEM);
}

int verb_runs(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false, all = false, cluster = false;
    const struct verb_option options[] = {OPTION_FLAG("--json", &json), OPTION_FLAG("--all", &all),
                                          OPTION_FLAG("--cluster", &cluster)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    if (cluster && all)
        return options_wrong_usage("runs",
                                   "--all shows this host alone, --cluster shows all hosts: give one");
    if (cluster)
        return show_cluster_runs(argv + 1, (size_t) words, json);
    status = client_call("io.berth.Runs", json_pack("{s:b}", "all", all), &answer);
    if (status == 0)
        status = choose_runs(json_object_get(answer, "runs"), argv + 1, (size_t) words);
    if (status != 0)
        return status;
    return json ? output_json(answer) : print_runs(answer, all);
}
