/* SPDX-License-Identifier: MIT */

/* `berth logs` of several jobs and runs, and berthd's events among the lines, on real journal files. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define RUN_A "0000000000000000000000000000000a"
#define RUN_B "1000000000000000000000000000000b"
#define RUN_C "2000000000000000000000000000000c"
#define RUN_D "3000000000000000000000000000000d"
#define CGROUP(run) "_TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner.service _SYSTEMD_CGROUP=/berth.slice/berth-runner.service/" run
#define ENDED(run) "_TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner@" run ".service" /* the process had ended */

static bool make_journals(void) {
    struct journal_file f;

    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_WAIT_MS=192000");
    journal_file_entry(&f, 10, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_A), "a1");
    journal_file_event(&f, 20, "granted", "BERTH_RUN=" RUN_B " BERTH_JOB=copy BERTH_WAIT_MS=5");
    journal_file_entry(&f, 21, "SYSLOG_IDENTIFIER=copy " CGROUP(RUN_B), "b1");
    journal_file_event(&f, 30, "exited", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_RESULT=failure BERTH_EXIT_CODE=3 BERTH_RUN_MS=2000");
    journal_file_entry(&f, 31, "SYSLOG_IDENTIFIER=berthd BERTH_EVENT=exited BERTH_RUN=" RUN_A " BERTH_JOB=dump " CGROUP(RUN_A), "forged");
    journal_file_event(&f, 40, "granted", "BERTH_RUN=" RUN_C " BERTH_JOB=dump");
    journal_file_entry(&f, 41, "SYSLOG_IDENTIFIER=dump " ENDED(RUN_C), "c1");
    journal_file_entry(&f, 42, "SYSLOG_IDENTIFIER=each@x " ENDED(RUN_D), "d1, its events are gone");
    return journal_file_write(&f, journal_folder);
}

/* Checks the lines without time and host. */
static void shows(const char *words, const char *expected) {
    char found[1024] = "";

    TEST_INT(berth(NULL, "logs --utc --directory=%s %s", journal_folder, words), 0);
    for (char *line = strtok(berth_out, "\n"); line; line = strtok(NULL, "\n"))
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s\n", strlen(line) > 32 ? line + 32 : "");
    TEST_STRING(found, expected);
}

#define A1 "dump[00000000]: a1\n"
#define B1 "copy[10000000]: b1\n"
#define C1 "dump[20000000]: c1\n"
#define D1 "each@x[30000000]: d1, its events are gone\n"

/* The lines of all are in one order of time. */
static void test_several(void) {
    if (!journal_files_once(make_journals))
        return;
    shows(RUN_C " copy", B1 C1);
    shows("copy 2000", B1 C1); /* of a run: known only after the journal was read */
    shows("2000 each@ copy", B1 C1 D1);
    shows("each@ 2000 " RUN_B, B1 C1 D1);
    shows("dump copy -n 2", "dump[00000000]: forged\n" C1);
    shows("copy copy", B1);
}

/* If one name is wrong, nothing is shown. */
static void test_wrong(void) {
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(berth(NULL, "logs copy nothing --directory %s", journal_folder), 65);
    TEST_STRING(berth_out, "");
    TEST_STRING(berth_err, "berth logs: the journal has no job or run nothing; `berth jobs` and `berth history` list them\n");
    TEST_INT(berth(NULL, "logs copy a:b --directory %s", journal_folder), 64);
    TEST_STRING(berth_out, "");
}

/* Events of these runs and of no others; what a job calls an event is a line. */
static void test_events(void) {
    if (!journal_files_once(make_journals))
        return;
    shows("--events " RUN_A, "dump[00000000]: -- granted after 3m12s\n" A1
                             "dump[00000000]: -- exited failure (exit 3) after 2.0s\ndump[00000000]: forged\n");
    shows("--events copy", "copy[10000000]: -- granted after 5ms\n" B1);
    shows("--events -n 2 copy 2000", "dump[20000000]: -- granted\n" C1);
    shows(RUN_A, A1 "dump[00000000]: forged\n");
}

/* -f of runs ends when all are over. */
static void test_follow(void) {
    usec_t until = clock_boottime() + 20 * USEC_PER_SEC;
    struct journal_file f;
    struct child *c;
    char folder[64];

    if (!journal_file_possible())
        return;
    snprintf(folder, sizeof(folder), "%s-live", journal_folder);
    if (!journal_file_open(&f, "bee", 2, folder))
        return;
    journal_file_event(&f, 0, "exited", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_RESULT=success");
    journal_file_event(&f, 1, "granted", "BERTH_RUN=" RUN_B " BERTH_JOB=copy");
    journal_file_flush(&f);
    while ((berth(NULL, "logs --events --directory=%s " RUN_B, folder) != 0 || !strstr(berth_out, "granted")) && clock_boottime() < until)
        continue; /* until the file can be read */
    c = berth_start(NULL, "logs -f --events --directory=%s " RUN_A " " RUN_B, folder);
    while (!strstr(child_text(c, 1), "-- granted\n") && !c->ended && clock_boottime() < until)
        child_turn(until);
    CU_ASSERT(!child_await(c, 2 * USEC_PER_SEC)); /* longer than it waits for last lines */
    journal_file_event(&f, 2, "exited", "BERTH_RUN=" RUN_B " BERTH_JOB=copy BERTH_RESULT=success");
    journal_file_flush(&f);
    CU_ASSERT(child_await(c, 20 * USEC_PER_SEC));
    CU_ASSERT(strstr(child_text(c, 1), "copy[10000000]: -- exited success\n") != NULL);
    TEST_INT(berth_end(c), 0);
    journal_file_close(&f);
    place_remove(folder);
}

static CU_TestInfo tests[] = {
    {"several", test_several}, {"wrong", test_wrong}, {"events", test_events}, {"follow", test_follow}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "logs-several", .pInitFunc = journal_folder_make,
             .pCleanupFunc = journal_folder_remove, .pTests = tests});
