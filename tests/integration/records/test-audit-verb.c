/* SPDX-License-Identifier: MIT */
/* `berth audit` on real journal files of two hosts. Findings are tested in tests/unit/cli/audit/test-audit.c. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/test.h"

#define RUN_A "0000000000000000000000000000000a"
#define RUN_B "0000000000000000000000000000000b"
#define TOKEN(msec) "176364000" #msec "000" /* microseconds of Redis at so many milliseconds, four digits */

/* One permit, first run a on ant, then run b on bee. cut: the entry of ant that is left out; -1: none. overlap: b does not wait.
 * silent: ant logs nothing more, and bee loses Redis. */
static bool make_journals(const char *name, int cut, bool overlap, bool silent) {
    struct journal_file ant, bee;
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", journal_folder, name);
    (void) mkdir(path, 0755);
    journal_file_begin(&ant, "ant", 1);
    ant.cut = cut;
    journal_file_event(&ant, 0, "ready", "BERTH_LIMITS=db:1");
    journal_file_event(&ant, 10, "redis-connected", "BERTH_LIMITS=db:1/declared BERTH_CLOCK=" TOKEN(0001));
    journal_file_event(&ant, 1001, "granted",
                       "BERTH_RUN=" RUN_A " BERTH_POOLS=db:1 BERTH_TICKET=" TOKEN(1000) " BERTH_TOKEN=" TOKEN(1000) " BERTH_WAIT_MS=1");
    journal_file_event(&ant, 1003, "started", "BERTH_RUN=" RUN_A " BERTH_POOLS=db:1");
    if (!silent) {
        journal_file_event(&ant, 4000, "exited", "BERTH_RUN=" RUN_A " BERTH_POOLS=db:1 BERTH_RESULT=success");
        journal_file_event(&ant, 4003, "released",
                           "BERTH_RUN=" RUN_A " BERTH_POOLS=db:1 BERTH_TOKEN=" TOKEN(1000) " BERTH_CLOCK=" TOKEN(4000));
        journal_file_event(&ant, 9000, "stopping-daemon", "");
    }
    snprintf(path, sizeof(path), "%s/%s/ant", journal_folder, name);
    if (!journal_file_write(&ant, path))
        return false;
    journal_file_begin(&bee, "bee", 2);
    journal_file_event(&bee, 0, "ready", "BERTH_LIMITS=db:1");
    journal_file_event(&bee, 10, "redis-connected", "BERTH_LIMITS=db:1/declared BERTH_CLOCK=" TOKEN(0002));
    if (silent)
        journal_file_event(&bee, 2500, "redis-lost", "BERTH_REASON=timeout");
    if (overlap)
        journal_file_event(&bee, 3002, "granted",
                           "BERTH_RUN=" RUN_B
                           " BERTH_POOLS=db:1 BERTH_TICKET=" TOKEN(2000) " BERTH_TOKEN=" TOKEN(3000) " BERTH_WAIT_MS=1002");
    else
        journal_file_event(&bee, 4002, "granted",
                           "BERTH_RUN=" RUN_B
                           " BERTH_POOLS=db:1 BERTH_TICKET=" TOKEN(2000) " BERTH_TOKEN=" TOKEN(4001) " BERTH_WAIT_MS=2002");
    snprintf(path, sizeof(path), "%s/%s/bee", journal_folder, name);
    return journal_file_write(&bee, path);
}

static int audit(const char *name, const char *options) {
    return berth(NULL, "audit --directory %s/%s/ant --directory %s/%s/bee%s", journal_folder, name, journal_folder, name, options);
}

static void test_proved(void) {
    if (!journal_file_possible() || !make_journals("good", -1, false, false))
        return;
    TEST_INT(audit("good", ""), 0);
    CU_ASSERT(strncmp(berth_out, "proved: 2 hosts, 2 starts of berthd, 10 events, 2 grants of 1 pools, 1 without an end yet\n", 80) == 0);
    CU_ASSERT(strstr(berth_out, "limits: from the journals; ") != NULL);
    CU_ASSERT(strstr(berth_out, "tolerance 100ms") != NULL);
    TEST_INT(audit("good", " --limit db=0"), 1);
    TEST_INT(audit("good", " --limit db=0 --since 2025-11-20T13:00:00Z"), 0);
    TEST_INT(audit("good", " --unit other.service"), 65);
    CU_ASSERT(strstr(berth_err, "has no events of other.service") != NULL);
    TEST_INT(audit("good", " --directory /nonexistent"), 65);
    TEST_INT(audit("good", " --limit db"), 64);
    TEST_INT(audit("good", " --limit =3"), 64);
    TEST_INT(audit("good", " --tolerance much"), 64);
    TEST_INT(audit("good", " -c /nonexistent"), 78);
}

static void test_violated(void) {
    json_t *document;

    if (!journal_file_possible() || !make_journals("bad", -1, true, false))
        return;
    TEST_INT(audit("bad", " --json"), 1);
    document = json_loads(berth_out, 0, NULL);
    CU_ASSERT(json_is_false(json_object_get(document, "proved")));
    TEST_INT(json_array_size(json_object_get(document, "findings")), 1);
    AT_STRING(document, "findings.0.kind", "above-limit");
    AT_STRING(document, "findings.0.host", "bee");
    AT_STRING(document, "findings.0.run", RUN_B);
    AT_INT(document, "findings.0.seq", 3);
    TEST_INT(strncmp(json_string_value(berth_at(document, "findings.0.time")), "2025-11-20T12:00:03.0", 21), 0);
    CU_ASSERT(strstr(json_string_value(berth_at(document, "findings.0.cursor")), "s=") != NULL);
    json_decref(document);
    TEST_INT(audit("bad", ""), 1);
    CU_ASSERT(strstr(berth_out,
                     "granted of bee, run " RUN_B ": 2 permits of pool db in use, its limit is 1; held before: " RUN_A " on ant") != NULL);
    CU_ASSERT(strstr(berth_out, "--cursor='s=") != NULL);
    CU_ASSERT(strstr(berth_out, "\nNOT proved: ") != NULL);
    TEST_INT(audit("bad", " --limit db=2"), 0);
}

/* Unproved rules are named like violated ones. */
static void test_unproved(void) {
    json_t *document, *doubt;

    if (!journal_file_possible() || !make_journals("silent", -1, true, true))
        return;
    TEST_INT(audit("silent", " --json"), 0);
    document = json_loads(berth_out, 0, NULL);
    CU_ASSERT(json_is_false(json_object_get(document, "proved")));
    TEST_INT(json_array_size(json_object_get(document, "findings")), 0);
    TEST_INT(json_integer_value(json_object_get(document, "unproved")), 1);
    TEST_INT(json_array_size(json_object_get(document, "doubts")), 1);
    doubt = json_array_get(json_object_get(document, "doubts"), 0);
    TEST_STRING(json_string_value(json_object_get(doubt, "kind")), "above-limit");
    TEST_STRING(json_string_value(json_object_get(doubt, "run")), RUN_B);
    CU_ASSERT(strstr(json_string_value(json_object_get(doubt, "cursor")), "s=") != NULL);
    json_decref(document);
    TEST_INT(audit("silent", ""), 0);
    CU_ASSERT(strncmp(berth_out, "unproved above-limit: ", 22) == 0);
    CU_ASSERT(strstr(berth_out, "granted of bee, run " RUN_B ": 2 permits of pool db in use, its limit is 1, unless these were over: " RUN_A
                                " on ant (its host has been silent since, and") != NULL);
    CU_ASSERT(strstr(berth_out, "\nNOT proved: ") != NULL);
}

#define DUE "BERTH_JOB=dump BERTH_DUE=2025-11-20T13:00:00+01:00"

/* A due time that was begun twice is a violation; a missed one is listed. */
static void test_due_times(void) {
    struct journal_file ant;
    char path[128];
    json_t *document;

    if (!journal_file_possible())
        return;
    snprintf(path, sizeof(path), "%s/due", journal_folder);
    (void) mkdir(path, 0755);
    journal_file_begin(&ant, "ant", 1);
    journal_file_event(&ant, 0, "ready", "BERTH_LIMITS=own:1/host");
    journal_file_event(&ant, 10, "started", DUE " BERTH_RUN=" RUN_A);
    journal_file_event(&ant, 20, "started", DUE " BERTH_RUN=" RUN_B);
    journal_file_event(&ant, 30, "missed", DUE " BERTH_UNTIL=2025-11-20T15:00:00+01:00 BERTH_COUNT=3 BERTH_REASON=late");
    journal_file_event(&ant, 40, "missed", DUE " BERTH_COUNT=1 BERTH_REASON=drained");
    snprintf(path, sizeof(path), "%s/due/ant", journal_folder);
    if (!journal_file_write(&ant, path))
        return;
    TEST_INT(berth(NULL, "audit --directory %s", path), 1);
    CU_ASSERT(strstr(berth_out, "due-twice: ") != NULL);
    CU_ASSERT(strstr(berth_out, "\nmissed: dump on ant was not begun 3 times: it was due from 2025-11-20T13:00:00+01:00 to "
                                "2025-11-20T15:00:00+01:00 (late)\nmissed: dump on ant was not begun: it was due at "
                                "2025-11-20T13:00:00+01:00 (drained)\n") != NULL);
    TEST_INT(berth(NULL, "audit --directory %s --json", path), 1);
    document = json_loads(berth_out, 0, NULL);
    AT_STRING(document, "findings.0.kind", "due-twice");
    AT_STRING(document, "findings.0.run", RUN_B);
    TEST_INT(json_array_size(json_object_get(document, "missed")), 2);
    AT_INT(document, "missed.0.count", 3);
    AT_STRING(document, "missed.0.last", "2025-11-20T15:00:00+01:00");
    AT_NULL(document, "missed.1.last");
    json_decref(document);
}

/* Runs of a job that hosts share overlap. */
static void test_due_overlap(void) {
    struct journal_file ant;
    char path[128];

    if (!journal_file_possible())
        return;
    snprintf(path, sizeof(path), "%s/overlap", journal_folder);
    (void) mkdir(path, 0755);
    journal_file_begin(&ant, "ant", 1);
    journal_file_event(&ant, 0, "ready", "");
    journal_file_event(&ant, 10, "redis-connected",
                       "BERTH_LIMITS=@dump:1/declared BERTH_CLOCK=" TOKEN(0001));
    journal_file_event(&ant, 1001, "granted",
                       "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_POOLS=@dump:1 BERTH_TICKET=" TOKEN(
                           1000) " BERTH_TOKEN=" TOKEN(1000));
    journal_file_event(&ant, 2001, "granted",
                       "BERTH_RUN=" RUN_B " BERTH_JOB=dump BERTH_POOLS=@dump:1 BERTH_TICKET=" TOKEN(
                           2000) " BERTH_TOKEN=" TOKEN(2000));
    snprintf(path, sizeof(path), "%s/overlap/ant", journal_folder);
    if (!journal_file_write(&ant, path))
        return;
    TEST_INT(berth(NULL, "audit --directory %s", path), 1);
    CU_ASSERT(strncmp(berth_out, "due-overlap: ", 13) == 0);
    CU_ASSERT(strstr(berth_out, "pool @dump in use, its limit is 1; held before: " RUN_A) != NULL);
    TEST_INT(berth(NULL, "audit --directory %s --limit @dump=2", path), 0);
}

static void test_cut(void) {
    char name[16];

    if (!journal_file_possible())
        return;
    for (int cut = 0; cut < 6; cut++) { /* the last leaves no trace */
        snprintf(name, sizeof(name), "cut-%d", cut);
        if (!make_journals(name, cut, false, false))
            return;
        TEST_INT(audit(name, ""), 1);
        CU_ASSERT(strstr(berth_out, "seq-gap: ") != NULL);
    }
}

/* Anybody may have written a journal that is collected: its texts must not control the terminal, nor be left out. */
static void test_controls(void) {
    struct journal_file ant;
    char path[128];

    snprintf(path, sizeof(path), "%s/controls", journal_folder);
    if (!journal_file_possible())
        return;
    journal_file_begin(&ant, "ant", 1);
    journal_file_event(&ant, 0, "ready", "BERTH_LIMITS=db:1");
    journal_file_event(&ant, 10, "missed", "BERTH_JOB=a\033[2J\377b BERTH_COUNT=1 BERTH_DUE=2025-11-20T12:00:00Z BERTH_REASON=asleep");
    if (!journal_file_write(&ant, path))
        return;
    TEST_INT(berth(NULL, "audit --directory %s", path), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "missed: a?[2J?b on ant was not begun"));
    TEST_INT(berth(NULL, "audit --json --directory %s", path), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\"job\":\"a?[2J?b\""));
}

static CU_TestInfo tests[] = {
    {"proved", test_proved}, {"violated", test_violated}, {"unproved", test_unproved}, {"due times", test_due_times},
    {"due overlap", test_due_overlap}, {"cut", test_cut}, {"control characters", test_controls},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "audit-verb", .pInitFunc = journal_folder_make, .pCleanupFunc = journal_folder_remove,
             .pTests = tests});
