/* SPDX-License-Identifier: MIT */

/* Events as `berth watch` prints them: numbers, pools, lines for people, and names with control
 * characters. */

#include "cli/watch/event-line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/journal/event-ring.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"

#define RUN "0123456789abcdef0123456789abcdef"
#define TIME "2026-11-20T10:12:07.204518Z"

/* Returns the line of an event of io.berth with these fields, {'BERTH_JOB': 'a'} with ' for ". */
static json_t *line_new(const char *event, const char *fields) {
    _cleanup_free_ char *quoted = strdup(fields);
    json_t *object, *line;

    for (char *c = quoted; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    object = json_pack("{s:s, s:s, s:s, s:s, s:o}", "at", "1f2e3d4c:17", "time", TIME, "event", event,
                       "message", "a message", "fields", json_loads(quoted, 0, NULL));
    line = event_line_to_json(object);
    json_decref(object);
    return line;
}

/* --- JSON --- */

static void test_json(void) {
    json_t *line =
        line_new("granted", "{'BERTH_EVENT': 'granted', 'BERTH_JOB': '12', 'BERTH_RUN': '" RUN
                            "', 'BERTH_POOLS': 'db:2,tenant/a:1', 'BERTH_TOKEN': '1795477147120968', "
                            "'BERTH_WAIT_MS': '192000', 'BERTH_REASON': '7', 'BERTH_SEQ': '17'}");
    _cleanup_free_ char *text = json_dumps(line, 0);

    TEST_STRING(
        text,
        "{\"schema\": 1, \"time\": \"" TIME "\", \"at\": \"1f2e3d4c:17\", \"event\": \"granted\", "
        "\"message\": \"a message\", \"job\": \"12\", \"run\": \"" RUN
        "\", \"pools\": {\"db\": 2, \"tenant/a\": 1}, \"token\": 1795477147120968, \"wait_ms\": 192000, "
        "\"reason\": \"7\", \"seq\": 17}");
    json_decref(line);
}

/* The line of an event with all fields that event.c writes as numbers has no number as text. */
static void test_all_numbers(void) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    _cleanup_(events_freep) struct events *events = NULL;
    struct event_reader reader = {};
    json_t *fields = json_object(), *event, *line, *value;
    const struct kept_event *kept;
    struct capture c;
    const char *name;
    unsigned n = 0;

    TEST_INT(journal_new(&journal, "test"), 0);
    TEST_INT(events_new(&events, journal, "ant", "demo"), 0);
    reader.on_event = (void (*)(struct event_reader *)) abort;
    TEST_INT(event_ring_join(events_get_ring(events), &reader), 0);
    list_unlink(&reader.link); /* the reader is not called, and the ring is kept */
    capture_begin(&c);
    event_emit(events,
               &(struct event){.type = EVENT_EXITED,
                               .token = 1,
                               .ticket = 2,
                               .clock = 3,
                               .delay_usec = 4000,
                               .step_usec = 5000,
                               .origin = {.attempt = 6, .attempts = 7, .has_late = true, .late_usec = 8000},
                               .missed.count = 9,
                               .took = {true, true, 10000, 11000},
                               .exit = {true, true, 12, 13},
                               .caller = {.is_there = true, .has_uid = true, .uid = 14},
                               .head_start_usec = 15000,
                               .position = 16},
               "m");
    free(capture_end(&c));
    kept = event_ring_get(events_get_ring(events), 1);
    CU_ASSERT_FATAL(kept != NULL);
    for (const char *field = kept->fields; field[0]; field += strlen(field) + 1)
        json_object_setn_new(fields, field, strcspn(field, "="), json_string(strchr(field, '=') + 1));
    event = json_pack("{s:s, s:o}", "event", "exited", "fields", fields);
    line = event_line_to_json(event);
    json_object_foreach (line, name, value) {
        const char *text = json_string_value(value);

        n += json_is_integer(value);
        if (text && isdigit((unsigned char) text[0]))
            TEST_STRING(name, "no text of digits");
    }
    TEST_INT(n, 18); /* 16, seq and schema */
    json_decref(line);
    json_decref(event);
}

/* --- for people --- */

static void prints_within(json_t *line, size_t width, const char *expected) {
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    event_line_print(f, line, width);
    (void) fclose(f);
    TEST_STRING(text, expected);
    json_decref(line);
}

static void prints(json_t *line, const char *expected) {
    prints_within(line, SIZE_MAX, expected);
}

#define OF_RUN "'BERTH_JOB': 'pg-dump', 'BERTH_RUN': '" RUN "', 'BERTH_POOLS': 'db:2,net:1'"

static void test_lines(void) {
    prints(line_new("granted", "{" OF_RUN ", 'BERTH_WAIT_MS': '192000'}"),
           "10:12:07.204 granted       pg-dump 01234567 db:2,net:1 after 3m12s\n");
    prints(line_new("exited", "{" OF_RUN ", 'BERTH_WAIT_MS': '7', 'BERTH_RUN_MS': '1100', 'BERTH_RESULT': "
                                         "'failure', 'BERTH_EXIT_CODE': '3'}"),
           "10:12:07.204 exited        pg-dump 01234567 db:2,net:1 failure (exit 3) after 1.1s\n");
    prints(line_new("withdrawn",
                    "{" OF_RUN
                    ", 'BERTH_RESULT': 'stopped', 'BERTH_REASON': 'stopped', 'BERTH_WAIT_MS': '5'}"),
           "10:12:07.204 withdrawn     pg-dump 01234567 db:2,net:1 stopped after 5ms\n");
    prints(line_new("withdrawn", "{" OF_RUN ", 'BERTH_RESULT': 'not-started', 'BERTH_REASON': 'drained'}"),
           "10:12:07.204 withdrawn     pg-dump 01234567 db:2,net:1 not-started (drained)\n");
    prints(line_new("queued", "{" OF_RUN ", 'BERTH_POSITION': '3'}"),
           "10:12:07.204 queued        pg-dump 01234567 db:2,net:1 place 3\n");
    prints(line_new("started", "{'BERTH_JOB': 'plain', 'BERTH_RUN': '" RUN "'}"),
           "10:12:07.204 started       plain 01234567\n");
    prints(line_new("namespace-differs", "{'BERTH_REASON': 'x'}"),
           "10:12:07.204 namespace-differs a message\n");
    prints(line_new("limit-changed", "{'BERTH_POOLS': 'db'}"), "10:12:07.204 limit-changed a message\n");
}

/* On a terminal: no word is cut, and none is lost. */
static void test_wrapped(void) {
    prints_within(line_new("granted", "{" OF_RUN ", 'BERTH_WAIT_MS': '192000'}"), 64,
                  "10:12:07.204 granted       pg-dump 01234567 db:2,net:1 after\n"
                  "                           3m12s\n");
    prints_within(line_new("granted", "{" OF_RUN ", 'BERTH_WAIT_MS': '192000'}"), 66,
                  "10:12:07.204 granted       pg-dump 01234567 db:2,net:1 after 3m12s\n");
    prints_within(line_new("granted", "{" OF_RUN "}"), 10,
                  "10:12:07.204 granted       pg-dump\n"
                  "                           01234567\n"
                  "                           db:2,net:1\n");
}

static void test_own(void) {
    usec_t time = 1763633527204518; /* 2025-11-20T10:12:07.204518Z */

    prints(event_line_gap("1f2e3d4c:17", 17, time), "10:12:07.204 gap           17 events missed\n");
    prints(event_line_gap("1f2e3d4c:17", 1, time), "10:12:07.204 gap           1 event missed\n");
    prints(event_line_gap("1f2e3d4c:17", -1, time),
           "10:12:07.204 gap           another berthd runs now; an unknown number of events is missing\n");
    prints(event_line_reconnected("1f2e3d4c:17", time), "10:12:07.204 reconnected   to berthd\n");
}

/* Malformed fields, from other hosts or from another program at berthd's socket. */
static void test_malformed(void) {
    prints(
        line_new("granted", "{'BERTH_JOB': 'a\\u001b[2J\\nb', 'BERTH_RUN': 'x', 'BERTH_POOLS': ',:,db:x'}"),
        "10:12:07.204 granted       a?[2J?b x :0,db:0\n");
    prints(event_line_to_json(NULL), "              \n");
}

/* --- which events --- */

static void test_pools_and_jobs(void) {
    json_t *line = line_new("granted", "{'BERTH_JOB': 'backup@a', 'BERTH_POOLS': 'db:2,tenant/acme:1'}"),
           *about = line_new("limit-changed", "{'BERTH_POOLS': 'db'}"), *bare = line_new("ready", "{}");

    CU_ASSERT(event_line_has_pool(line, "db") && event_line_has_pool(line, "tenant/acme"));
    CU_ASSERT(event_line_has_pool(line, "tenant/*") && event_line_has_pool(about, "db"));
    CU_ASSERT(!event_line_has_pool(line, "d") && !event_line_has_pool(line, "tenant/b") &&
              !event_line_has_pool(bare, "db"));
    CU_ASSERT(json_is_null(json_object_get(json_object_get(about, "pools"), "db")));
    CU_ASSERT(event_line_has_job(line, "backup@a") && event_line_has_job(line, "backup@"));
    CU_ASSERT(!event_line_has_job(line, "backup") && !event_line_has_job(about, "backup@a"));
    json_decref(line);
    json_decref(about);
    json_decref(bare);
}

int main(int argc, char **argv) {
    static CU_TestInfo tests[] = {
        {"fields as JSON", test_json},
        {"each number is a number", test_all_numbers},
        {"lines for people", test_lines},
        {"a narrow terminal", test_wrapped},
        {"lines of berth itself", test_own},
        {"malformed events", test_malformed},
        {"pools and jobs", test_pools_and_jobs},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {{.pName = "event-line", .pTests = tests}, CU_SUITE_INFO_NULL};

    setenv("TZ", "UTC", 1);
    return test_main(argc, argv, suites);
}
