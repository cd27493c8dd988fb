/* SPDX-License-Identifier: MIT */
/* Statistics of made-up events: percentiles, results, open runs, malformed records, clocks that are set
 * back. */
#include <stdlib.h>
#include <string.h>

#include "cli/history/cells.h"
#include "cli/history/stats.h"
#include "tests/harness/test.h"

#define SEC USEC_PER_SEC
#define BASE (1000000 * SEC)

static struct entry items[400];
static struct entries entries = {.items = items};
static struct past *pasts;
static size_t n_pasts;
static struct history_hosts hosts;
static struct stats stats;

static void done(void) {
    free(pasts);
    pasts = NULL;
    history_hosts_done(&hosts);
    stats_done(&stats);
}

static void begin(void) {
    done();
    entries.n = 0;
}

static struct entry *add(long at, const char *event, const char *run) {
    struct entry *e = &items[entries.n++];

    *e = (struct entry){.event = (char *) event,
                        .run = (char *) run,
                        .host = (char *) "ant",
                        .boot = (char *) "1",
                        .job = (char *) "dump",
                        .pools = (char *) "db:2,net:1",
                        .cursor = (char *) "",
                        .asked.head_start_ms = -1,
                        .took = {.wait_ms = -1, .run_ms = -1},
                        .exit = {-1, -1},
                        .uid = -1};
    e->time = (usec_t) ((int64_t) BASE + at * (int64_t) SEC);
    return e;
}

static void add_exit(long at, const char *run, const char *result) {
    add(at, "exited", run)->result = (char *) result;
}

/* Statistics of the 160 s from BASE on. */
static void make(enum stats_by by) {
    done();
    TEST_INT(pasts_make(&entries, &pasts, &n_pasts), 0);
    TEST_INT(history_hosts_make(&entries, &hosts), 0);
    TEST_INT(stats_make(pasts, n_pasts, &hosts, by, BASE, BASE + 160 * SEC, &stats), 0);
}

static void test_percentiles(void) {
    int64_t durations[200];
    struct figures f = figures_make(durations, 0);

    TEST_INT(f.n, 0);
    TEST_INT(f.max, 0);
    durations[0] = 7;
    f = figures_make(durations, 1);
    CU_ASSERT(f.p50 == 7 && f.p90 == 7 && f.p95 == 7 && f.p99 == 7 && f.max == 7 && f.sum == 7);
    for (int i = 0; i < 20; i++)
        durations[i] = 20 - i;
    f = figures_make(durations, 20);
    CU_ASSERT(f.p50 == 10 && f.p90 == 18 && f.p95 == 19 && f.p99 == 20 && f.max == 20 && f.sum == 210);
    for (int i = 0; i < 21; i++)
        durations[i] = i + 1;
    f = figures_make(durations, 21);
    CU_ASSERT(f.p50 == 11 && f.p90 == 19 && f.p95 == 20 && f.p99 == 21);
    for (int i = 0; i < 200; i++)
        durations[i] = i % 2 ? 5 : 3; /* ties */
    f = figures_make(durations, 200);
    CU_ASSERT(f.p50 == 3 && f.p90 == 5 && f.p99 == 5);
}

static void test_empty(void) {
    begin();
    make(STATS_BY_JOB);
    TEST_INT(stats.n, 0);
    TEST_INT(stats.waiting + stats.running + stats.unlogged, 0);
    TEST_INT(hosts.n, 0);
    done();
}

static void add_whole_run(const char *run) {
    add(10, "queued", run);
    add(13, "granted", run)->took.wait_ms = 2900; /* what berthd measured */
    add(14, "started", run)->took.wait_ms = 4000;
    add_exit(20, run, "success");
    add(23, "released", run);
}

static void test_one_run(void) {
    begin();
    add_whole_run("a");
    make(STATS_BY_JOB);
    TEST_INT(stats.n, 1);
    TEST_STRING(stats.lines[0].name, "dump");
    TEST_INT(stats.lines[0].runs, 1);
    TEST_INT(stats.lines[0].failed, 0);
    TEST_INT(stats.lines[0].wait.p50, 2900);
    TEST_INT(stats.lines[0].held.p95, 10000); /* grant to release */
    TEST_INT(stats.lines[0].cells[2], 1);
    make(STATS_BY_HOST);
    TEST_STRING(stats.lines[0].name, "ant");
    done();
}

static void test_pools(void) {
    begin();
    add_whole_run("a");
    add_exit(30, "b", "success");
    items[entries.n - 1].pools = (char *) "net:1";
    add_exit(30, "c", "success");
    items[entries.n - 1].pools = (char *) "net:x"; /* malformed */
    make(STATS_BY_POOL);
    TEST_INT(stats.n, 2);
    TEST_STRING(stats.lines[0].name, "db");
    TEST_INT(stats.lines[0].runs, 1);
    TEST_STRING(stats.lines[1].name, "net");
    TEST_INT(stats.lines[1].runs, 2);
    done();
}

static void test_results(void) {
    static const char *const results[] = {
        "success",    "stopped",    "failure",   "timeout", "not-started", "queue-timeout",
        "lease-lost", "guard-died", "host-lost", NULL,      "other"};
    static const char *const runs[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};

    begin();
    for (size_t i = 0; i < ELEMENTSOF(runs); i++)
        add_exit(1, runs[i], results[i]);
    add(1, "reclaimed", "l")->host = (char *) "bee";
    add(1, "refused", "m");
    make(STATS_BY_JOB);
    TEST_INT(stats.lines[0].runs, 13);
    TEST_INT(stats.lines[0].failed, 5);
    TEST_INT(stats.lines[0].lost, 4);
    TEST_INT(stats.lines[0].held.n, 0);
    TEST_INT(hosts.n, 2);
    CU_ASSERT(hosts.items[0].wrote && !hosts.items[1].wrote);
    done();
}

static void test_open(void) {
    begin();
    add(-50, "queued", "a");  /* waits */
    add(-50, "granted", "b"); /* runs */
    add(-50, "started", "c"); /* runs, of no pool */
    add(5, "granted", "d");
    add(6, "released", "d")->result = (char *) "not-started"; /* waits again */
    add(5, "granted", "e");
    add(6, "released", "e"); /* over; its exit is not logged */
    make(STATS_BY_JOB);
    TEST_INT(stats.waiting, 2);
    TEST_INT(stats.running, 2);
    TEST_INT(stats.unlogged, 0);
    TEST_INT(stats.lines[0].runs, 1);
    TEST_INT(stats.lines[0].held.p50, 1000);
    /* A later boot of the host ends its open runs, and none of another host. */
    add(7, "started", "f")->host = (char *) "bee";
    add(60, "ready", NULL)->boot = (char *) "2";
    make(STATS_BY_JOB);
    TEST_INT(stats.waiting, 0);
    TEST_INT(stats.running, 1);
    TEST_INT(stats.unlogged, 4);
    done();
}

static void test_given_back(void) {
    begin();
    add(1, "queued", "a");
    add(5, "granted", "a")->took.wait_ms = 4000;
    add(9, "released", "a")->result = (char *) "not-started";
    add(20, "granted", "a")->took.wait_ms = 19000;
    add(22, "granted", "a"); /* renewed after a lost lease */
    add_exit(24, "a", "success");
    make(STATS_BY_JOB);
    TEST_INT(stats.lines[0].wait.max, 19000);
    TEST_INT(stats.lines[0].held.max, 4000);
    done();
}

static void test_window(void) {
    begin();
    add_exit(-1, "a", "success");
    add_exit(0, "b", "success");
    add_exit(159, "c", "success");
    add_exit(160, "d", "success");
    add_exit(161, "e", "success");
    make(STATS_BY_JOB);
    TEST_INT(stats.lines[0].runs, 3);
    TEST_INT(stats.lines[0].cells[0], 1);
    TEST_INT(stats.lines[0].cells[STATS_CELLS - 1], 2);
    done();
}

/* Where the journal's clock was set back, the times that berthd measured count, and none is negative. */
static void test_clock_back(void) {
    begin();
    add(50, "queued", "a");
    add(40, "granted", "a");
    add(30, "released", "a");
    items[entries.n - 1].took.run_ms = -1;
    add(50, "granted", "b")->took.wait_ms = 0;
    add_exit(30, "b", "success");
    items[entries.n - 1].took.run_ms = 8000;
    make(STATS_BY_JOB);
    TEST_INT(stats.lines[0].runs, 2);
    TEST_INT(stats.lines[0].wait.n, 1);
    TEST_INT(stats.lines[0].held.n, 1);
    TEST_INT(stats.lines[0].held.p50, 8000);
    done();
}

static const char *bars(const char *values, double highest, bool utf8) {
    static char text[64];
    char *end = text;

    for (; *values; values++)
        end = cells_add(end, *values - '0', highest, utf8);
    return text;
}

static void test_cells(void) {
    char span[CELLS_SPAN_SIZE];

    TEST_STRING(bars("0123456789", 8, true), " ▁▂▃▄▅▆▇██");
    TEST_STRING(bars("0123456789", 9, false), " .:-=+*#%@");
    TEST_STRING(bars("01", 1000, true), " ▁");
    TEST_STRING(cells_span(24 * 3600000ULL, span), "24H");
    TEST_STRING(cells_span(7 * 24 * 3600000ULL + 3, span), "7D");
    TEST_STRING(cells_span(60 * 3600000ULL, span), "2D12H");
    TEST_STRING(cells_span(90 * 60000ULL, span), "90M");
    TEST_STRING(cells_span(150 * 60000ULL, span), "2H30M");
    TEST_STRING(cells_span(30000, span), "30S");
}

static CU_TestInfo tests[] = {{"percentiles", test_percentiles},
                              {"empty", test_empty},
                              {"one-run", test_one_run},
                              {"pools", test_pools},
                              {"results", test_results},
                              {"open", test_open},
                              {"given-back", test_given_back},
                              {"window", test_window},
                              {"clock-back", test_clock_back},
                              {"cells", test_cells},
                              CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "history-stats", .pTests = tests});
