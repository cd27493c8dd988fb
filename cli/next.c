/* SPDX-License-Identifier: MIT */
/* berth next: when jobs begin, from berthd (daemon/jobs/coming.c), or when an entry of `schedule` is due
 * (-e), computed here by the same function. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json/format.h"
#include "base/json/next-item.h"
#include "base/number.h"
#include "base/schedule/civil.h"
#include "base/schedule/schedule.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/verbs.h"

#define COUNT_DEFAULT 10
#define COUNT_MAX 10000
#define HOSTS_SHOWN 3 /* one more if it is the last */
#define VERB "next"

struct question {
    struct string_list entries, excepts;
    const char *zone, *count_text, *from_text;
    uint64_t count;
    usec_t from; /* µs since 1970 */
    bool json;
};

/* ---- the table ---- */

/* Formats a time by the clock of this host. */
static void format_local(const char *begin, char text[static FORMAT_SIZE]) {
    struct tm tm;
    int64_t at;
    time_t seconds;
    size_t n;

    snprintf(text, FORMAT_SIZE, "-");
    if (schedule_parse_time(begin, &at) < 0)
        return;
    seconds = (time_t) at;
    if (!localtime_r(&seconds, &tm))
        return;
    n = strftime(text, FORMAT_SIZE, "%Y-%m-%d %H:%M:%S %z", &tm);
    if (n > 2 && strcmp(text + n - 2, "00") == 0)
        text[n - 2] = '\0'; /* "+01" */
}

/* Formats the begin with the offset of `due`: "2027-03-28 03:04:12 +02". */
static void format_begin(const json_t *item, char text[static FORMAT_SIZE]) {
    const char *due = format_get_text(item, "due"), *begin = format_get_text(item, "begin");
    size_t n = strlen(due);
    int hours, minutes;
    int64_t at;
    char sign;
    struct civil c;

    if (n < 6 || schedule_parse_time(begin, &at) < 0 ||
        sscanf(due + n - 6, "%c%2d:%2d", &sign, &hours, &minutes) != 3) {
        format_local(begin, text);
        return;
    }
    civil_from_seconds(at + (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60), &c);
    n = (size_t) snprintf(text, FORMAT_SIZE, "%04lld-%02u-%02u %02u:%02u:%02u %c%02d", (long long) c.year,
                          c.month, c.day, c.hour, c.minute, c.second, sign, hours);
    if (minutes != 0)
        snprintf(text + n, FORMAT_SIZE - n, ":%02d", minutes);
}

static void add_note(char text[static FORMAT_SIZE], const char *format, ...) _printf_(2, 3);
static void add_note(char text[static FORMAT_SIZE], const char *format, ...) {
    size_t n = strlen(text);
    va_list arguments;

    if (n > 0 && n < FORMAT_SIZE - 2)
        n += (size_t) snprintf(text + n, FORMAT_SIZE - n, ", ");
    va_start(arguments, format);
    (void) vsnprintf(text + n, FORMAT_SIZE - n, format, arguments);
    va_end(arguments);
}

/* "ant, bee or cat" */
static void add_hosts(char text[static FORMAT_SIZE], const json_t *hosts) {
    size_t n = json_array_size(hosts), shown = n > HOSTS_SHOWN + 1 ? HOSTS_SHOWN : n;
    char list[FORMAT_SIZE] = "";

    for (size_t i = 0, used = 0; i < shown && used < sizeof(list); i++) {
        const char *host = json_string_value(json_array_get(hosts, i));

        used += (size_t) snprintf(list + used, sizeof(list) - used, "%s%.64s", i == 0 ? "" : i + 1 == n ? " or " : ", ",
                                  host ? host : "-");
    }
    if (shown < n)
        add_note(text, "%.300s or %zu others", list, n - shown);
    else if (n > 0)
        add_note(text, "%.300s", list);
    else if (json_is_array(hosts))
        add_note(text, "no host");
}

static void format_note(const json_t *item, char text[static FORMAT_SIZE]) {
    const char *wanted = format_get_text(item, "wanted"), *trigger = format_get_text(item, "trigger"), *name;
    json_int_t attempt = format_get_number(item, "attempt"), splay = format_get_number(item, "splay_ms");
    json_t *set = json_object_get(item, "set"), *value;
    char duration[FORMAT_SIZE];

    text[0] = '\0';
    if (strlen(wanted) >= 16)
        add_note(text, "for %.5s, which the clock leaves out", wanted + 11);
    if (strcmp(format_get_text(item, "shift"), "fold") == 0)
        add_note(text, "the first of two");
    if (splay > 0)
        add_note(text, "+%s splay", format_msec(splay, duration));
    if (attempt > 0 && format_get_number(item, "attempts") > 0)
        add_note(text, "attempt %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT, attempt, format_get_number(item, "attempts"));
    else if (attempt > 0 && strcmp(trigger, "restart") != 0)
        add_note(text, "attempt %" JSON_INTEGER_FORMAT, attempt);
    else if (strcmp(trigger, "schedule") != 0)
        add_note(text, "%s", trigger);
    add_hosts(text, json_object_get(item, "hosts"));
    json_object_foreach (set, name, value)
        add_note(text, "%s=%.60s", name, json_string_value(value) ? json_string_value(value) : "");
}

static void add_line(struct table *t, const json_t *item) {
    char text[FORMAT_SIZE];

    format_begin(item, text);
    table_cell(t, TABLE_PLAIN, "%s", text);
    table_cell(t, TABLE_PLAIN, "%s", format_duration(item, "in_ms", text));
    if (json_is_string(json_object_get(item, "job"))) {
        table_cell(t, TABLE_PLAIN, "%s", format_get_text(item, "job"));
        table_cell(t, TABLE_PLAIN, "%s", format_get_text(item, "on"));
    }
    format_note(item, text);
    table_cell(t, TABLE_PLAIN, "%s", text);
}

static int print_next(const json_t *answer, bool of_jobs) {
    static const struct table_column jobs[] = {
        {.name = "WHEN"}, {.name = "IN", .right = true}, {.name = "JOB"}, {.name = "ON"},
        {.name = "NOTE"},
    };
    static const struct table_column entries[] = {
        {.name = "WHEN"}, {.name = "IN", .right = true}, {.name = "NOTE"},
    };

    if (json_is_true(json_object_get(answer, "drained")))
        fputs("berth: this host is drained and begins nothing until `berth undrain`\n", stderr);
    return output_items(json_object_get(answer, "next"), of_jobs ? jobs : entries,
                        of_jobs ? ELEMENTSOF(jobs) : ELEMENTSOF(entries), add_line, "nothing is due");
}

/* ---- expressions ---- */

static int refuse_entry(const char *option, const char *text, int r, const char *error) {
    if (r == -ENOMEM)
        return output_error(r);
    fprintf(stderr, "berth next: %s \"%.200s\": %s\n", option, text, error);
    return EXIT_UNKNOWN_NAME;
}

static int read_schedule(const struct question *q, struct schedule *schedule) {
    char error[CRON_ERROR_SIZE] = "";
    int r;

    for (size_t i = 0; i < q->entries.n; i++)
        if ((r = schedule_add(schedule, q->entries.items[i], error)) < 0)
            return refuse_entry("schedule", q->entries.items[i], r, error);
    for (size_t i = 0; i < q->excepts.n; i++)
        if ((r = schedule_add_except(schedule, q->excepts.items[i], error)) < 0)
            return refuse_entry("except", q->excepts.items[i], r, error);
    return 0;
}

static int read_zone(const char *name, struct zone **ret) {
    char why[ZONE_EXPLAIN_SIZE];
    int r = zone_load(ZONE_DIRECTORY, name, ret);

    if (r == 0)
        return 0;
    if (r == -ENOMEM)
        return output_error(r);
    fprintf(stderr, "berth next: zone \"%.64s\" %s\n", name, zone_explain(ZONE_DIRECTORY, name, r, why));
    return EXIT_UNKNOWN_NAME;
}

static int list_due(const struct question *q) {
    _cleanup_(schedule_done) struct schedule schedule = {};
    _cleanup_(zone_freep) struct zone *zone = NULL;
    _cleanup_json_ json_t *answer =
        json_pack("{s:i, s:n, s:b, s:[]}", "schema", 1, "host", "drained", 0, "next");
    const char *name = q->zone ? q->zone : "local";
    int64_t after = (int64_t) (q->from / USEC_PER_SEC);
    usec_t now = clock_realtime();
    struct next_item item;
    struct schedule_due due;
    int status = read_schedule(q, &schedule);

    if (status == 0)
        status = read_zone(name, &zone);
    if (status != 0)
        return status;
    item = (struct next_item){
        .trigger = "schedule", .due = &due, .schedule = &schedule, .zone = zone, .zone_name = name};
    for (uint64_t i = 0; i < q->count && schedule_next(&schedule, zone, after, &due); i++) {
        item.begin_realtime = (usec_t) due.at * USEC_PER_SEC;
        if (json_array_append_new(json_object_get(answer, "next"), next_item_to_json(&item, now)) < 0)
            return output_error(-ENOMEM);
        after = due.at;
    }
    if (schedule.n_excepts > 0 && json_array_size(json_object_get(answer, "next")) == 0) {
        fprintf(stderr, "berth next: " SCHEDULE_NONE_LEFT "\n"); /* the config refuses it, too */
        return EXIT_UNKNOWN_NAME;
    }
    return q->json ? output_json(answer) : print_next(answer, false);
}

/* ---- jobs ---- */

static int ask_berthd(const struct question *q, char **jobs, int n) {
    _cleanup_json_ json_t *answer = NULL;
    char from[CLOCK_TEXT_SIZE];
    json_t *params = json_pack("{s:I}", "count", (json_int_t) q->count), *names = json_array();
    int status;

    for (int i = 0; i < n; i++)
        (void) json_array_append_new(names, json_string(jobs[i]));
    if (n > 0)
        (void) json_object_set(params, "jobs", names);
    json_decref(names);
    if (q->from_text)
        (void) json_object_set_new(params, "from", json_string(clock_format(q->from, from)));
    status = client_call("io.berth.Next", params, &answer);
    if (status != 0)
        return status;
    return q->json ? output_json(answer) : print_next(answer, true);
}

int verb_next(int argc, char **argv) {
    struct question q = {.count = COUNT_DEFAULT};
    const struct verb_option options[] = {
        OPTION_LIST("-e", &q.entries),        OPTION_LIST("--except", &q.excepts),
        OPTION_VALUE("-z", &q.zone),          OPTION_VALUE("--count", &q.count_text),
        OPTION_VALUE("--from", &q.from_text), OPTION_FLAG("--json", &q.json)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    if (q.entries.n > 0 && words > 0)
        return options_wrong_usage(VERB, "JOB and -e exclude each other");
    if (q.entries.n == 0 && (q.zone || q.excepts.n > 0))
        return options_wrong_usage(VERB, "%s needs -e; a job has its own in the config",
                                   q.zone ? "-z" : "--except");
    if (q.count_text && (number_parse(q.count_text, COUNT_MAX, &q.count) < 0 || q.count == 0))
        return options_wrong_usage(VERB, "--count %.40s: must be 1 to %d", q.count_text, COUNT_MAX);
    for (int i = 1; i <= words; i++)
        if ((status = options_check_job(VERB, "job", argv[i])) != 0)
            return status;
    q.from = clock_realtime();
    if (options_parse_when(VERB, "--from", q.from_text, &q.from) != 0)
        return EXIT_USAGE;
    return q.entries.n > 0 ? list_due(&q) : ask_berthd(&q, argv + 1, words);
}
