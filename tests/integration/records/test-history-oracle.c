/* SPDX-License-Identifier: MIT */
/* The figures of `berth history --stats` about a thousand made runs of two hosts are those that an independent program
 * (tests/oracle/history.py) computes from the same journals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/harness/draw.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/test.h"

#define RUNS 1000
#define RUNS_COUNTED 3333 /* by job and host; by pool a third of them counts twice, and the last one does */

static uint64_t seed = 7;

/* Adds what berthd would log of a run that was queued at that millisecond. */
static void add_run(struct journal_file *f, int number, long queued) {
    static const char *const names[] = {"dump", "copy", "report", "sync"},
                            *const pools[] = {"db:2,net:1", "db:1", "net:1"},
                            *const results[] = {"success", "success", "success", "failure", "timeout", "lease-lost", "stopped"};
    long wait = (long) (draw_below(&seed, 3) ? draw_below(&seed, 400000) : draw_below(&seed, 4)),
         hold = (long) (draw_below(&seed, 5) ? draw_between(&seed, 20, 90000) : 20);
    char run[200], more[256];

    (void) snprintf(run, sizeof(run), "BERTH_RUN=%032d BERTH_JOB=%s BERTH_POOLS=%s", number,
                    names[draw_below(&seed, ELEMENTSOF(names))], pools[number % 3]);
    journal_file_event(f, queued, "queued", run);
    (void) snprintf(more, sizeof(more), "%s BERTH_TOKEN=%d BERTH_WAIT_MS=%ld", run, number, wait);
    journal_file_event(f, queued + wait, "granted", more);
    journal_file_event(f, queued + wait, "started", more);
    (void) snprintf(more, sizeof(more), "%s BERTH_RUN_MS=%ld BERTH_RESULT=%s", run, hold - 10,
                    results[draw_below(&seed, ELEMENTSOF(results))]);
    journal_file_event(f, queued + wait + hold - 10, "exited", more);
    journal_file_event(f, queued + wait + hold, "released", run);
}

static bool make_journals(void) {
    struct journal_file hosts[2];
    bool is_written = true;

    for (unsigned i = 0; i < 2; i++) {
        char path[64];

        journal_file_begin(&hosts[i], i == 0 ? "ant" : "bee", i + 1);
        journal_file_event(&hosts[i], 0, "ready", "");
        for (int run = (int) i; run < RUNS; run += 2)
            add_run(&hosts[i], run + 1, 1000 + run * 800L);
        (void) snprintf(path, sizeof(path), "%s/%s", journal_folder, hosts[i].host);
        is_written = journal_file_write(&hosts[i], path) && is_written;
    }
    return is_written;
}

/* Writes the statistics into a file beside the journals. */
static void keep(const char *by) {
    char path[80];
    FILE *f;

    TEST_INT(berth(NULL, "history --directory=%s --since 2025-11-20T11:59:00Z --until 2025-11-20T12:25:00Z --stats --by %s --json",
                   journal_folder, by), 0);
    (void) snprintf(path, sizeof(path), "%s/%s.json", journal_folder, by);
    f = fopen(path, "we");
    CU_ASSERT_FATAL(f != NULL);
    (void) fputs(berth_out, f);
    CU_ASSERT(fclose(f) == 0);
}

static void test_stats(void) {
    static const char *const each[] = {"job", "pool", "host"};
    char command[400];
    int counted = 0;
    FILE *f;

    if (!journal_files_once(make_journals))
        return;
    if (system("command -v journalctl >/dev/null") != 0)
        TEST_SKIP("needs journalctl");
    for (size_t i = 0; i < ELEMENTSOF(each); i++)
        keep(each[i]);
    (void) snprintf(command, sizeof(command),
                    "PYTHONDONTWRITEBYTECODE=1 exec python3 tests/oracle/history.py %s %s/job.json %s/pool.json %s/host.json",
                    journal_folder, journal_folder, journal_folder, journal_folder);
    f = popen(command, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    TEST_INT(fscanf(f, "%d", &counted), 1);
    TEST_INT(pclose(f), 0);
    TEST_INT(counted, RUNS_COUNTED);
}

static CU_TestInfo tests[] = {{"statistics of a thousand runs", test_stats}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "history-oracle", .pInitFunc = journal_folder_make,
             .pCleanupFunc = journal_folder_remove, .pTests = tests});
