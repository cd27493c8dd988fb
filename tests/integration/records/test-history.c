/* SPDX-License-Identifier: MIT */
/* `berth history` on real journal files. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define RUN_A "0000000000000000000000000000000a"
#define RUN_B "0000000000000000000000000000000b"
#define RUN_C "0000000000000000000000000000000c"
#define RUN_D "0000000000000000000000000000000d"

/* Two boots of host ant; run c of host bee, whose end ant logged. */
static bool make_journals(void) {
    struct journal_file ant, bee;
    char path[64];

    journal_file_begin(&ant, "ant", 1);
    journal_file_event(&ant, 0, "ready", "");
    journal_file_event(&ant, 10, "queued", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_POOLS=db:2,net:1 BERTH_TICKET=5");
    journal_file_event(&ant, 1010, "granted",
                       "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_POOLS=db:2,net:1 BERTH_TOKEN=7 BERTH_WAIT_MS=1000");
    journal_file_event(&ant, 1020, "started",
                       "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_POOLS=db:2,net:1 BERTH_WAIT_MS=1000 BERTH_DUE=2025-11-20T13:00:00+01:00 "
                       "BERTH_TRIGGER=retry BERTH_ATTEMPT=2 BERTH_FIRST_RUN=" RUN_C);
    /* Any user can write this entry; it is not from berthd. */
    journal_file_entry(&ant, 1500, "BERTH_EVENT=exited BERTH_RUN=" RUN_A " BERTH_RESULT=failure _SYSTEMD_UNIT=evil.service", "forged");
    /* The first value of a field counts; a malformed number counts as absent. */
    journal_file_event(&ant, 3520, "exited", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_RESULT=success BERTH_RESULT=failed BERTH_EXIT_CODE=0 "
                                             "BERTH_RUN_MS=2500 BERTH_RUN_MS=77 BERTH_SIGNAL=9a BERTH_SIGNAL=9 BERTH_WAIT_MS=-3");
    /* Of the attempt after it. */
    journal_file_event(&ant, 3530, "retry", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_ATTEMPT=3");
    journal_file_restart(&ant, true);
    journal_file_event(&ant, 60000, "ready", "");
    journal_file_event(&ant, 60010, "granted", "BERTH_RUN=" RUN_B " BERTH_JOB=copy BERTH_POOLS=net:1 BERTH_TOKEN=9 BERTH_WAIT_MS=0");
    journal_file_event(&ant, 60020, "started", "BERTH_RUN=" RUN_B " BERTH_JOB=copy BERTH_POOLS=net:1");
    journal_file_event(&ant, 60030, "refused", "BERTH_RUN=" RUN_D " BERTH_JOB=dump BERTH_POOLS=db:2 BERTH_REASON=busy");
    journal_file_event(&ant, 90000, "reclaimed", "BERTH_RUN=" RUN_C " BERTH_JOB=dump BERTH_POOLS=db:2 BERTH_HOST=bee BERTH_TOKEN=8");
    snprintf(path, sizeof(path), "%s/ant", journal_folder);
    if (!journal_file_write(&ant, path))
        return false;
    journal_file_begin(&bee, "bee", 2);
    journal_file_event(&bee, 30000, "granted", "BERTH_RUN=" RUN_C " BERTH_JOB=dump BERTH_POOLS=db:2 BERTH_TOKEN=8 BERTH_WAIT_MS=0");
    journal_file_event(&bee, 30010, "started", "BERTH_RUN=" RUN_C " BERTH_JOB=dump BERTH_POOLS=db:2");
    snprintf(path, sizeof(path), "%s/bee", journal_folder);
    return journal_file_write(&bee, path);
}

static json_t *history(const char *options) {
    return berth_json(NULL, "history --directory=%s %s", journal_folder, options);
}

static void test_runs(void) {
    json_t *document;

    if (!journal_files_once(make_journals))
        return;
    document = history("");
    TEST_INT(json_array_size(berth_at(document, "runs")), 4);
    AT_STRING(document, "runs.0.run", RUN_A);
    AT_STRING(document, "runs.0.name", "dump");
    AT_STRING(document, "runs.0.host", "ant");
    AT_STRING(document, "runs.0.result", "success");
    AT_INT(document, "runs.0.exit_code", 0);
    AT_INT(document, "runs.0.wait_ms", 1000);
    AT_INT(document, "runs.0.run_ms", 2500);
    AT_INT(document, "runs.0.token", 7);
    AT_STRING(document, "runs.0.due", "2025-11-20T13:00:00+01:00");
    AT_INT(document, "runs.0.attempt", 2);
    AT_STRING(document, "runs.0.first_run", RUN_C);
    AT_STRING(document, "runs.0.trigger", "retry");
    AT_NULL(document, "runs.1.first_run");
    AT_NULL(document, "runs.1.trigger");
    AT_NULL(document, "runs.1.due");
    AT_NULL(document, "runs.1.attempt");
    AT_INT(document, "runs.0.pools.db", 2);
    AT_STRING(document, "runs.1.run", RUN_C);
    AT_STRING(document, "runs.1.host", "bee");
    AT_STRING(document, "runs.1.result", "reclaimed");
    AT_STRING(document, "runs.2.run", RUN_B);
    AT_NULL(document, "runs.2.result");
    CU_ASSERT(strncmp(json_string_value(berth_at(document, "runs.2.started")), "2025-11-20T12:01:00.", 20) == 0);
    AT_NULL(document, "runs.2.ended");
    AT_STRING(document, "runs.3.result", "not-started");
    json_decref(document);
}

static void chooses(const char *options, const char *expected) {
    json_t *document = history(options), *run;
    char found[16] = "";
    size_t i;

    json_array_foreach(json_object_get(document, "runs"), i, run)
        strncat(found, json_string_value(json_object_get(run, "run")) + 31, 1);
    TEST_STRING(found, expected);
    json_decref(document);
}

static void test_filters(void) {
    if (!journal_files_once(make_journals))
        return;
    chooses("dump", "acd");
    chooses("copy dump", "acbd");
    chooses(RUN_B, "b");
    chooses("0000", "acbd"); /* all that begin so */
    chooses("copy " RUN_A, "ab");
    chooses("--pool net", "ab");
    chooses("dump --pool db --until 2025-11-20T12:00:20Z", "a");
    chooses("--since 2025-11-20T12:00:10Z", "cbd");
    chooses("--since 2025-11-20T13:00:10+01:00 --until 2025-11-20T12:01:00Z", "c");
    chooses("--since -1m", "b"); /* it has not ended */
    chooses("--unit evil.service", "a");
}

static void test_table(void) {
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(setenv("TZ", "UTC0", 1), 0);
    TEST_INT(berth(NULL, "history --directory %s/ant --pool net", journal_folder), 0);
    TEST_INT(unsetenv("TZ"), 0);
    CU_ASSERT(strstr(berth_out, "2025-11-20 12:00:01 " RUN_A " dump ant  db:2,net:1 retry   2025-11-20T13:00:00+01:00   2   1.0s 2.5s success") != NULL);
    CU_ASSERT(strstr(berth_out, "2025-11-20 12:01:00 " RUN_B " copy ant  net:1") != NULL);
    CU_ASSERT(strstr(berth_out, "running") != NULL);
    TEST_INT(berth(NULL, "history --directory %s --pool nothing", journal_folder), 0);
    TEST_STRING(berth_out, "");
    TEST_STRING(berth_err, "the journal has no such run\n");
    TEST_INT(berth(NULL, "history --directory %s dump nothing", journal_folder), 65);
    TEST_STRING(berth_out, "");
    TEST_STRING(berth_err, "berth history: the journal has no job or run nothing\n");
}

/* What --stats has of the journals above: three runs of dump ended in that time, one of copy goes on. */
static void test_stats(void) {
    static const char window[] = "--since 2025-11-20T11:59:00Z --until 2025-11-20T12:15:00Z";
    char options[256];
    json_t *document;

    if (!journal_files_once(make_journals))
        return;
    snprintf(options, sizeof(options), "--stats %s", window);
    document = history(options);
    AT_STRING(document, "since", "2025-11-20T11:59:00.000000Z");
    TEST_INT(json_array_size(berth_at(document, "stats")), 1);
    AT_STRING(document, "stats.0.by", "job");
    AT_STRING(document, "stats.0.name", "dump");
    AT_INT(document, "stats.0.runs", 3);
    AT_INT(document, "stats.0.failed", 1);
    AT_INT(document, "stats.0.lost", 1);
    AT_INT(document, "stats.0.wait_ms.n", 2);
    AT_INT(document, "stats.0.wait_ms.p50", 0);
    AT_INT(document, "stats.0.wait_ms.max", 1000);
    AT_INT(document, "stats.0.held_ms.p50", 2510);
    AT_INT(document, "stats.0.cells.1", 1);
    AT_INT(document, "stats.0.cells.2", 2);
    AT_STRING(document, "hosts.0", "ant");
    AT_STRING(document, "hosts.1", "bee");
    TEST_INT(json_array_size(berth_at(document, "hosts_missing")), 0);
    AT_INT(document, "open.waiting", 0);
    AT_INT(document, "open.running", 1);
    AT_INT(document, "open.unlogged", 0);
    json_decref(document);
    snprintf(options, sizeof(options), "--stats --by pool dump %s", window);
    document = history(options);
    AT_STRING(document, "stats.0.name", "db");
    AT_INT(document, "stats.0.runs", 3);
    AT_STRING(document, "stats.1.name", "net");
    AT_INT(document, "stats.1.runs", 1);
    json_decref(document);
    document = history("--stats --by host"); /* the last 24 hours */
    TEST_INT(json_array_size(berth_at(document, "stats")), 0);
    AT_INT(document, "open.running", 1);
    json_decref(document);
}

/* What --use has of these journals: none names a limit, so there are no shares. */
static void test_use(void) {
    static const char window[] = "--since 2025-11-20T11:59:00Z --until 2025-11-20T12:15:00Z";
    char options[256];
    json_t *document;

    if (!journal_files_once(make_journals))
        return;
    snprintf(options, sizeof(options), "--use %s", window);
    document = history(options);
    TEST_INT(json_array_size(berth_at(document, "use")), 2);
    AT_STRING(document, "use.0.pool", "db");
    AT_NULL(document, "use.0.limit_min");
    AT_NULL(document, "use.0.use");
    AT_INT(document, "use.0.peak", 2);
    AT_INT(document, "use.0.waits", 1);
    AT_INT(document, "use.0.wait_p95_ms", 1000);
    TEST_INT(json_array_size(berth_at(document, "use.0.cells")), 24);
    AT_STRING(document, "use.1.pool", "net");
    AT_STRING(document, "hosts.1", "bee");
    json_decref(document);
    snprintf(options, sizeof(options), "--use --step 5m %s net", window);
    document = history(options);
    TEST_INT(json_array_size(berth_at(document, "use")), 1);
    TEST_INT(json_array_size(berth_at(document, "use.0.cells")), 4); /* 16 min: whole cells, the last of which ends then */
    AT_STRING(document, "since", "2025-11-20T11:55:00.000000Z");
    json_decref(document);
    TEST_INT(berth(NULL, "history --use --directory %s %s", journal_folder, window), 0);
    CU_ASSERT_PTR_EQUAL(strstr(berth_out, "POOL"), berth_out);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\nof 2 hosts (ant and bee)\n"));
    TEST_INT(berth(NULL, "history --use --directory %s %s nothing", journal_folder, window), 65);
    TEST_STRING(berth_err, "berth history: the journal has no pool nothing\n");
    TEST_INT(berth(NULL, "history --use --step 1s"), 64);
    TEST_INT(berth(NULL, "history --use --stats"), 64);
    TEST_INT(berth(NULL, "history --use --pool db"), 64);
    TEST_INT(berth(NULL, "history --step 1h"), 64);
}

static void test_stats_table(void) {
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(setenv("LC_ALL", "C", 1), 0);
    TEST_INT(berth(NULL, "history --directory %s/ant --stats --since 2025-11-20T11:59:00Z --until 2025-11-20T12:15:00Z",
                   journal_folder), 0);
    TEST_INT(unsetenv("LC_ALL"), 0);
    CU_ASSERT(strstr(berth_out, "NAME RUNS FAIL LOST WAIT50 WAIT95 WAITMAX HELD50 HELD95 16M\n") != NULL);
    CU_ASSERT(strstr(berth_out, "dump    3  33%    1   1.0s      -    1.0s   2.5s      -  +@") != NULL);
    CU_ASSERT(strstr(berth_out, "\nof 1 host (ant); bee is known and has no journal here (see -m)\n"
                                "not in the figures: 0 waiting and 1 running\n") != NULL);
    TEST_INT(berth(NULL, "history --directory %s --stats", journal_folder), 0);
    TEST_STRING(berth_err, "no such run ended in that time\n");
    TEST_INT(berth(NULL, "history --directory %s --stats --by day", journal_folder), 64);
    CU_ASSERT(strncmp(berth_err, "berth history: --by day: must be job, pool or host\n", 51) == 0);
    TEST_INT(berth(NULL, "history --directory %s --by job", journal_folder), 64);
    TEST_INT(berth(NULL, "history --directory %s --stats --since now --until -1h", journal_folder), 64);
}

/* A template stands for the runs of all its instances, also of those that the config no longer has. */
static void test_template(void) {
    struct journal_file f;
    char folder[64];
    json_t *document;

    if (!journal_file_possible())
        return;
    snprintf(folder, sizeof(folder), "%s-template", journal_folder);
    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "started", "BERTH_RUN=" RUN_A " BERTH_JOB=copy@db1 BERTH_INSTANCE=db1");
    journal_file_event(&f, 1, "started", "BERTH_RUN=" RUN_B " BERTH_JOB=copy@db2 BERTH_INSTANCE=db2");
    journal_file_event(&f, 2, "started", "BERTH_RUN=" RUN_C " BERTH_JOB=copy");
    journal_file_event(&f, 3, "started", "BERTH_RUN=" RUN_D " BERTH_JOB=copy.more@db1 BERTH_INSTANCE=db1");
    if (!journal_file_write(&f, folder))
        return;
    document = berth_json(NULL, "history --directory=%s copy@", folder);
    TEST_INT(json_array_size(berth_at(document, "runs")), 2);
    AT_STRING(document, "runs.0.name", "copy@db1");
    AT_STRING(document, "runs.0.instance", "db1");
    AT_STRING(document, "runs.1.instance", "db2");
    json_decref(document);
    document = berth_json(NULL, "history --directory=%s copy copy@db2", folder);
    TEST_INT(json_array_size(berth_at(document, "runs")), 2);
    AT_STRING(document, "runs.0.instance", "db2");
    AT_NULL(document, "runs.1.instance");
    json_decref(document);
    TEST_INT(berth(NULL, "history --directory=%s more@", folder), 65);
    TEST_STRING(berth_err, "berth history: the journal has no job or run more@\n");
    place_remove(folder);
}

/* What a table shows is what --since and --until read, in local time and in UTC. */
static void test_local_time(void) {
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
    TEST_INT(berth(NULL, "history --directory %s/ant dump copy", journal_folder), 0);
    CU_ASSERT(strstr(berth_out, "2025-11-20 13:00:01 " RUN_A) != NULL);
    TEST_INT(berth(NULL, "history --directory %s/ant --utc dump copy", journal_folder), 0);
    CU_ASSERT(strstr(berth_out, "2025-11-20T12:00:01Z " RUN_A) != NULL);
    chooses("--since '2025-11-20 13:00:10'", "cbd");
    chooses("--since 2025-11-20T12:00:10Z", "cbd");
    TEST_INT(berth(NULL, "history --directory %s/ant --json dump", journal_folder), 0);
    CU_ASSERT(strstr(berth_out, "2025-11-20T12:00:01.0") != NULL); /* as ever */
    TEST_INT(unsetenv("TZ"), 0);
}

static void test_no_journal(void) {
    char path[64];
    FILE *f;

    TEST_INT(berth(NULL, "history --directory /nonexistent"), 65);
    TEST_STRING(berth_err, "berth history: /nonexistent: cannot be read: No such file or directory\n");
    snprintf(path, sizeof(path), "%s/empty", journal_folder);
    (void) mkdir(path, 0755);
    TEST_INT(berth(NULL, "history --directory %s", path), 65);
    CU_ASSERT(strstr(berth_err, "no journal found") != NULL);
    snprintf(path, sizeof(path), "%s/empty/x.journal", journal_folder);
    f = fopen(path, "we");
    fputs("this is no journal", f);
    fclose(f);
    TEST_INT(berth(NULL, "history --directory %s/empty", journal_folder), 65);
    CU_ASSERT(strstr(berth_err, "cannot be read: a file of it is damaged (journalctl --verify --directory ") != NULL);
    if (journal_files_once(make_journals)) { /* nor is it left out beside good ones */
            TEST_INT(berth(NULL, "history --directory %s", journal_folder), 65);
    }
    TEST_INT(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/empty", journal_folder);
    TEST_INT(rmdir(path), 0);
    TEST_INT(berth(NULL, "history -m --directory /tmp"), 64);
    TEST_INT(berth(NULL, "history --since soon"), 64);
    TEST_INT(berth(NULL, "history --pool -x"), 64);
}

static CU_TestInfo tests[] = {
    {"runs", test_runs}, {"filters", test_filters}, {"table", test_table}, {"stats", test_stats}, {"stats-table", test_stats_table}, {"use", test_use}, {"local-time", test_local_time},
    {"template", test_template}, {"no-journal", test_no_journal}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "history", .pInitFunc = journal_folder_make, .pCleanupFunc = journal_folder_remove,
             .pTests = tests});
