/* SPDX-License-Identifier: MIT */
/* `berth logs` on real journal files. */
#include <stdio.h>
#include <string.h>

#include "tests/harness/host.h"
#include "tests/harness/journal-file.h"
#include "tests/harness/test.h"

#define RUN_A "0000000000000000000000000000000a"
#define RUN_B "1000000000000000000000000000000b"
#define RUN_C "2000000000000000000000000000000c"
#define CGROUP(run) "_TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner.service _SYSTEMD_CGROUP=/berth.slice/berth-runner.service/" run
#define PLAIN "_TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner.service _SYSTEMD_CGROUP=/berth.slice/berth-runner.service"

static bool make_journals(void) {
    struct journal_file f;

    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=dump");
    journal_file_entry(&f, 10, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_A), "a1");
    journal_file_entry(&f, 11, "SYSLOG_IDENTIFIER=other " CGROUP(RUN_A) "/below", "a2 \033[31m \xc2\x9b \xc3\xa4"); /* it may call itself so */
    journal_file_entry(&f, 12, "SYSLOG_IDENTIFIER=dump _TRANSPORT=stdout _SYSTEMD_UNIT=evil.service", "forged");
    journal_file_event(&f, 20, "granted", "BERTH_RUN=" RUN_B " BERTH_JOB=copy");
    journal_file_entry(&f, 21, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_B), "b1 of copy");
    journal_file_entry(&f, 22, "SYSLOG_IDENTIFIER=berth-runner _TRANSPORT=journal _SYSTEMD_UNIT=berth-runner.service", "runner");
    journal_file_event(&f, 30, "released", "BERTH_RUN=" RUN_A " BERTH_JOB=dump");
    journal_file_event(&f, 40, "granted", "BERTH_RUN=" RUN_C " BERTH_JOB=dump");
    journal_file_entry(&f, 41, "SYSLOG_IDENTIFIER=dump " PLAIN, "c1 without a cgroup");
    journal_file_event(&f, 50, "released", "BERTH_RUN=" RUN_C " BERTH_JOB=dump");
    return journal_file_write(&f, journal_folder);
}

/* The lines without time and host. */
static void shows(const char *words, const char *expected) {
    char found[1024] = "";

    TEST_INT(berth(NULL, "logs --directory=%s %s", journal_folder, words), 0);
    for (char *line = strtok(berth_out, "\n"); line; line = strtok(NULL, "\n")) {
        CU_ASSERT(strncmp(line, "2025-11-20T12:00:00.", 20) == 0 && strncmp(line + 27, " ant ", 5) == 0);
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s\n", strlen(line) > 32 ? line + 32 : "");
    }
    TEST_STRING(found, expected);
}

static void test_lines(void) {
    if (!journal_files_once(make_journals))
        return;
    shows("dump", "dump[00000000]: a1\ndump[00000000]: a2 \\x1b[31m \\x9b \xc3\xa4\n"
                  "dump[20000000]: c1 without a cgroup\n"); /* what a run of copy calls dump is none of it */
    shows(RUN_A, "dump[00000000]: a1\ndump[00000000]: a2 \\x1b[31m \\x9b \xc3\xa4\n");
    shows(RUN_C, "dump[20000000]: c1 without a cgroup\n");
    shows("copy", "copy[10000000]: b1 of copy\n");
    shows("-n 1 " RUN_A, "dump[00000000]: a2 \\x1b[31m \\x9b \xc3\xa4\n");
    shows("copy --since -1h", "");
}

static void test_follow(void) {
    struct child *c;
    usec_t until = clock_boottime() + 20 * USEC_PER_SEC;

    if (!journal_files_once(make_journals))
        return;
    c = berth_start(NULL, "logs -f --directory=%s " RUN_A, journal_folder);
    while (!strstr(child_text(c, 1), "a2") && clock_boottime() < until)
        child_turn(until);
    CU_ASSERT(strstr(child_text(c, 1), ": a1\n") != NULL);
    CU_ASSERT(!c->ended); /* it goes on */
    child_free(c);
}

static void test_refused(void) {
    TEST_INT(berth(NULL, "logs"), 64);
    TEST_INT(berth(NULL, "logs dump -n 0"), 64);
    TEST_INT(berth(NULL, "logs dump -m --directory /tmp"), 64);
    TEST_INT(berth(NULL, "logs dump --directory /nonexistent"), 65);
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(berth(NULL, "logs nothing --directory %s", journal_folder), 65);
    TEST_STRING(berth_err, "berth logs: the journal knows no job and no run nothing; `berth jobs` and `berth history` list them\n");
}

static CU_TestInfo tests[] = {{"lines", test_lines}, {"follow", test_follow}, {"refused", test_refused}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "logs", .pInitFunc = journal_folder_make, .pCleanupFunc = journal_folder_remove, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
