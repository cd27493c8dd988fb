/* SPDX-License-Identifier: MIT */
/* Journal files that are damaged in the middle. The library reads them as if they ended there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/test.h"

#define RUNS 200
#define RUN "%032d"

/* Overwrites all that comes behind the first place of the text. */
static void damage_behind(const char *path, const char *text) {
    _cleanup_free_ char *bytes = NULL;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t size = 0, at;
    char *place;

    CU_ASSERT_FATAL(fd >= 0 && file_read(path, SIZE_MAX / 2, &bytes, &size) == 0);
    place = memmem(bytes, size, text, strlen(text));
    CU_ASSERT_PTR_NOT_NULL_FATAL(place);
    at = (size_t) (place - bytes);
    memset(place, 0xff, size - at);
    TEST_INT(pwrite(fd, place, size - at, (off_t) at), size - at);
}

static bool make_journals(void) {
    struct journal_file f;
    char fields[256], path[64];

    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "ready", "BERTH_LIMITS=db:1/declared BERTH_CLOCK=1");
    for (int i = 1; i <= RUNS; i++) {
        snprintf(fields, sizeof(fields), "BERTH_RUN=" RUN " BERTH_JOB=dump BERTH_POOLS=db:1 BERTH_TOKEN=%d BERTH_TICKET=%d", i, 10 * i, 10 * i);
        journal_file_event(&f, 10L * i, "granted", fields);
        snprintf(fields, sizeof(fields), "BERTH_RUN=" RUN " BERTH_JOB=dump BERTH_POOLS=db:1 BERTH_RESULT=success BERTH_CLOCK=%d", i, 10 * i + 5);
        journal_file_event(&f, 10L * i + 5, "released", fields);
    }
    if (!journal_file_write(&f, journal_folder))
        return false;
    snprintf(fields, sizeof(fields), "BERTH_RUN=" RUN, RUNS / 2);
    snprintf(path, sizeof(path), "%s/ant.journal", journal_folder);
    damage_behind(path, fields);
    return true;
}

static void says_that_entries_are_missing(const char *verb) {
    char expected[256];

    snprintf(expected, sizeof(expected), "berth %s: %s: entries are missing: a file of it is damaged (journalctl --verify --directory %s finds it)\n",
             verb, journal_folder, journal_folder);
    TEST_STRING(berth_err, expected);
}

static void test_history(void) {
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(berth(NULL, "history --directory %s", journal_folder), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "00000001 ")); /* what can be read is shown */
    CU_ASSERT_PTR_NULL(strstr(berth_out, "00000199 "));
    says_that_entries_are_missing("history");
}

static void test_logs(void) {
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(berth(NULL, "logs --events --directory %s dump", journal_folder), 0);
    says_that_entries_are_missing("logs");
    TEST_INT(berth(NULL, "logs --events --directory %s dump 00000000000000000000000000000001", journal_folder), 0);
    says_that_entries_are_missing("logs");
}

static void test_audit(void) {
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(berth(NULL, "audit --directory %s", journal_folder), 65);
    TEST_STRING(berth_out, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "cannot be read: a file of it is damaged"));
}

static CU_TestInfo tests[] = {
    {"history", test_history},
    {"logs", test_logs},
    {"audit", test_audit},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "damaged journal", .pInitFunc = journal_folder_make, .pCleanupFunc = journal_folder_remove, .pTests = tests});
