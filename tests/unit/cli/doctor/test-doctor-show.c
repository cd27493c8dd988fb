/* SPDX-License-Identifier: MIT */

/* Findings of `berth doctor`: their order, the status, and each way to print them. */

#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "tests/harness/test.h"

static bool all_wanted[64];
static struct report report;
static struct facts facts;
static char *printed;

static void begin(void) {
    memset(all_wanted, true, sizeof(all_wanted));
    report = (struct report){.check = "config"};
    facts = (struct facts){.root = ""};
}

static void end(void) {
    report_done(&report);
    facts_done(&facts);
    free(printed);
    printed = NULL;
}

static void add(const char *check, enum severity severity, const char *text) {
    report.check = check;
    report_add(&report, severity, "%s", text);
}

/* Returns the printed report, which is valid until the next call. */
static const char *print(void (*show)(const struct shown *s)) {
    size_t size;
    FILE *f;

    free(printed);
    printed = NULL;
    f = open_memstream(&printed, &size);
    CU_ASSERT_FATAL(f != NULL);
    report_sort(&report);
    show(&(struct shown){&facts, &report, all_wanted, f});
    (void) fclose(f);
    return printed;
}

static void expect(const char *status, int code) {
    int got = -1;

    TEST_STRING(report_status(&report, &got), status);
    TEST_INT(got, code);
}

static void test_status(void) {
    expect("ok", 0);
    add("paused", SEVERITY_NOTE, "a note");
    expect("ok", 0);
    add("files", SEVERITY_UNKNOWN, "needs root");
    expect("unknown", 3);
    add("config", SEVERITY_WARN, "a warning"); /* worse than unknown */
    expect("warn", 1);
    add("daemon", SEVERITY_CRIT, "critical");
    expect("crit", 2);
}

/* A path of the config may have any bytes. */
static void test_bytes(void) {
    add("config", SEVERITY_WARN, "it is wrong");
    report_command(&report, "berth", "check-config", "/etc/\xff\x1b[31m.conf");
    CU_ASSERT(!report.out_of_memory);
    CU_ASSERT(strstr(print(show_text), "berth check-config '/etc/??[31m.conf'\n") != NULL);
}

static void test_order(void) {
    static const char *const order[] = {"daemon", "redis-away", "config", "files", "paused", "grace"};

    add("paused", SEVERITY_NOTE, "1");
    add("config", SEVERITY_WARN, "2");
    add("files", SEVERITY_UNKNOWN, "3");
    add("daemon", SEVERITY_CRIT, "4");
    add("grace", SEVERITY_NOTE, "5");
    add("redis-away", SEVERITY_CRIT, "6");
    report_sort(&report);
    for (size_t i = 0; i < ELEMENTSOF(order); i++)
        TEST_STRING(report.items[i].check, order[i]);
    CU_ASSERT(report_is_fine(&report, "unit") && !report_is_fine(&report, "grace"));
}

static void test_many(void) {
    for (int i = 0; i < 100; i++)
        report_add(&report, i == 50 ? SEVERITY_CRIT : SEVERITY_WARN, "%d", i);
    report_sort(&report);
    TEST_STRING(report.items[0].text, "50");
    TEST_STRING(report.items[1].text, "0");
    TEST_STRING(report.items[99].text, "99");
    TEST_INT(report_count(&report, SEVERITY_WARN), 99);
}

static void test_text(void) {
    add("redis-replicas", SEVERITY_WARN,
        "Redis has 1 replica and min-replicas-to-write is 0, which is a text longer than a line");
    report_do(&report, "on the Redis host:");
    report_command(&report, "redis-cli", "CONFIG", "SET", "x");
    report_command(&report, "berth", "limit", "db", "5", "--reason", "it's stuck", "--for",
                   "10000000000000000000000d");
    report_command(&report, "berth", "limit", "db", "5", "--reason", "it's stuck since noon, as on cow", "--for", "1d");
    TEST_STRING(print(show_text),
                "WARN redis-replicas    Redis has 1 replica and min-replicas-to-write is 0,\n"
                "                       which is a text longer than a line\n"
                "                       on the Redis host:\n"
                "                       redis-cli CONFIG SET x\n"
                "                       berth limit db 5 --reason 'it'\\''s stuck' --for \\\n"
                "                         10000000000000000000000d\n"
                "                       berth limit db 5 --reason \\\n"
                "                         'it'\\''s stuck since noon, as on cow' --for 1d\n"
                "38 checks fine\n");
}

static void test_text_unknown(void) {
    add("files", SEVERITY_UNKNOWN, "needs root");
    add("unit", SEVERITY_UNKNOWN, "no systemctl");
    add("stray-process", SEVERITY_UNKNOWN, "needs root");
    TEST_STRING(
        print(show_text),
        "36 checks fine, 3 not possible (files, stray-process: needs root; unit: no\n    systemctl)\n");
}

static void test_nagios(void) {
    TEST_STRING(print(show_nagios), "BERTH OK - 39 checks fine | checks=39 crit=0 warn=0\n");
    add("paused", SEVERITY_NOTE, "db: a|b");
    TEST_STRING(print(show_nagios),
                "BERTH OK - 38 checks fine | checks=39 crit=0 warn=0\nNOTE paused: db: a/b\n");
    add("files", SEVERITY_UNKNOWN, "needs root");
    CU_ASSERT_PTR_EQUAL(strstr(print(show_nagios), "BERTH UNKNOWN - files |"), printed);
    add("limits-differ", SEVERITY_WARN, "db");
    CU_ASSERT_PTR_EQUAL(
        strstr(print(show_nagios), "BERTH WARNING - limits-differ, files | checks=39 crit=0 warn=1\n"),
        printed);
    add("limits-differ", SEVERITY_WARN, "net"); /* named once */
    add("redis-policy", SEVERITY_CRIT, "evicts");
    CU_ASSERT_PTR_EQUAL(
        strstr(print(show_nagios),
               "BERTH CRITICAL - redis-policy, limits-differ, files | checks=39 crit=1 warn=2\n"),
        printed);
    CU_ASSERT(
        strstr(printed, "\nCRIT redis-policy: evicts\nWARN limits-differ: db\nWARN limits-differ: net\n") !=
        NULL);
}

static void test_figures(void) {
    facts.redis = json_loads("{\"rtt_ms\": 0.3, \"lease_ms\": 30000, \"heartbeat_ms\": 5000}", 0, NULL);
    facts.metrics = json_loads(
        "{\"metrics\": {\"berth_heartbeat_age_seconds\": [{\"labels\": {}, \"value\": 1.03}]}}", 0, NULL);
    TEST_STRING(print(show_nagios), "BERTH OK - 39 checks fine | checks=39 crit=0 warn=0 redis_rtt=0.0003s "
                                    "heartbeat_age=1.03s;12.5;20\n");
}

static void test_json(void) {
    struct shown shown = {&facts, &report, all_wanted, NULL};
    _cleanup_free_ char *text = NULL;
    json_t *json;

    facts.version = json_loads("{\"host\": \"ant\"}", 0, NULL);
    add("paused", SEVERITY_WARN, "db: bad");
    report_about(&report, NULL, "db", NULL);
    report_measure(&report, 3, 2);
    report_do(&report, "end it:");
    report_command(&report, "berth", "resume", "db");
    all_wanted[0] = false; /* not checked: neither fine nor a finding */
    json = show_as_json(&shown);
    TEST_INT(json_array_size(json_object_get(json, "fine")), doctor_n_checks - 2);
    json_object_del(json, "fine");
    text = json_dumps(json, JSON_COMPACT);
    TEST_STRING(text, "{\"schema\":1,\"host\":\"ant\",\"status\":\"warn\",\"findings\":[{\"check\":"
                      "\"paused\",\"severity\":\"warn\","
                      "\"text\":\"db: bad\",\"do\":[\"end "
                      "it:\"],\"commands\":[[\"berth\",\"resume\",\"db\"]],\"host\":null,"
                      "\"pool\":\"db\",\"run\":null,\"value\":3.0,\"bound\":2.0}]}");
    json_decref(json);
}

/* Names from Redis or a config must neither control a terminal nor break JSON. */
static void test_printable(void) {
    add("config", SEVERITY_WARN, "a\033[2Jb\377c");
    report_do(&report, "%s", "x\ny");
    TEST_STRING(report.items[0].text, "a?[2Jb?c");
    TEST_STRING(json_string_value(json_array_get(report.items[0].remedies, 0)), "x?y");
}

static CU_TestInfo tests[] = {
    {"the worst finding is the status", test_status},
    {"findings are sorted, the worst first", test_order},
    {"a path of any bytes", test_bytes},
    {"many findings", test_many},
    {"text has lines of 79 columns", test_text},
    {"text names what could not be checked", test_text_unknown},
    {"a line for Nagios", test_nagios},
    {"figures for Nagios", test_figures},
    {"JSON", test_json},
    {"texts are printable", test_printable},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor-show", .pSetUpFunc = begin, .pTearDownFunc = end, .pTests = tests});
