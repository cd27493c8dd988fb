/* SPDX-License-Identifier: MIT */
/* The audit of made-up logs of jobs with a schedule: it finds due times that begin twice, and overlapping
 * runs of a shared job. */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

#define DUE "2025-11-20T13:00:00+01:00" /* BASE */
#define SAME "2025-11-20T12:00:00+00:00"
#define NEXT "2025-11-20T14:00:00+01:00"

static void add_start(struct writer *w, long msec, const char *run, const char *due, int64_t attempt) {
    struct entry e = audit_fixture_entry(w, msec, "started", run, NULL);

    e.job = (char *) "dump";
    e.origin.due = (char *) due;
    e.origin.attempt = attempt;
    audit_fixture_add(&e);
}

static void begin(void) {
    audit_fixture_begin();
    audit_fixture_limits(&ant, 0, "ready", "own:1/host");
    audit_fixture_limits(&bee, 0, "ready", "own:1/host");
}

static void test_twice(void) {
    begin();
    add_start(&ant, 100, "a", DUE, 0);
    add_start(&ant, 200, "b", DUE, 0);
    audit_fixture_expect_violation(AUDIT_DUE_TWICE, "b",
                                   "dump was already begun for the due time " DUE ": run a on ant");
    begin();
    add_start(&ant, 100, "a", DUE, 2);
    add_start(&ant, 200, "other", NEXT, 2);
    add_start(&ant, 300, "b", SAME, 2); /* the offset does not matter */
    audit_fixture_expect_violation(AUDIT_DUE_TWICE, "b", "run a on ant");
}

/* After berthd is killed, the next berthd may log a start again. */
static void test_once(void) {
    begin();
    add_start(&ant, 100, "a", DUE, 0);
    add_start(&ant, 110, "a", DUE, 0);
    add_start(&ant, 200, "a2", DUE, 2);
    add_start(&ant, 300, "a3", DUE, 3);
    add_start(&ant, 400, "b", NEXT, 0);
    add_start(&ant, 500, "manual", NULL, 0);
    add_start(&ant, 600, "again", NULL, 0);
    add_start(&bee, 100, "c", DUE, 0);
    audit_fixture_expect_proof();
}

/* Adds two starts for one due time, with an event between them. */
static void add_between(struct writer *w, const char *event, int64_t ahead) {
    begin();
    add_start(&ant, 100, "a", DUE, 0);
    w->ahead = ahead;
    audit_fixture_limits(w, 200, event, "own:1/host");
    w->ahead = 0;
    add_start(&ant, 300, "b", DUE, 0);
}

static void test_comes_again(void) {
    add_between(&ant, "clock-set", 0);
    audit_fixture_expect_proof();
    add_between(&ant, "config-loaded", -3600 * (int64_t) USEC_PER_SEC);
    audit_fixture_expect_proof();
    add_between(&ant, "config-loaded", 0);
    audit_fixture_expect_violation(AUDIT_DUE_TWICE, "b", DUE);
    add_between(&bee, "clock-set", 0);
    audit_fixture_expect_violation(AUDIT_DUE_TWICE, "b", DUE);
}

/* The log has no limits of these pools, so the audit may have further findings. */
static void test_any(void) {
    unsigned n = 0;

    begin();
    add_start(&ant, 100, "a", DUE, 0);
    record.items[record.n - 1].pools = strdup("db:1,@dump:1");
    add_start(&bee, 200, "b", DUE, 0);
    record.items[record.n - 1].pools = strdup("@dump:1");
    add_start(&bee, 300, "c", DUE, 0);
    record.items[record.n - 1].pools = strdup("@dump.more:1,x@dump:1");
    audit_fixture_check();
    for (size_t i = 0; i < report.n_findings; i++)
        if (report.findings[i].kind == AUDIT_DUE_TWICE) {
            TEST_STRING(report.findings[i].entry->run, "b");
            CU_ASSERT(strstr(report.findings[i].text, "run a on ant") != NULL);
            n++;
        }
    TEST_INT(n, 1);
}

/* --- runs of a job with on = "any" that overlap --- */

#define ANY "@dump:1"

static void begin_any(const char *limits) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, limits);
    audit_fixture_up(&bee, 0, limits);
}

static void test_one_after_the_other(void) {
    begin_any("@dump:1/declared,db:9/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "@dump:1,db:1");
    audit_fixture_end(&ant, 500, "a", "@dump:1,db:1");
    audit_fixture_grant(&bee, 150, 501, "b", "@dump:1,db:1");
    audit_fixture_expect_proof();
    TEST_INT(report.n_pools, 2);
}

static void test_overlap(void) {
    begin_any("@dump:1/declared,db:9/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "@dump:1,db:1");
    audit_fixture_grant(&bee, 150, 200, "b", "@dump:1,db:1");
    audit_fixture_expect_violation(
        AUDIT_DUE_OVERLAP, "b", "2 permits of pool @dump in use, its limit is 1; held before: a on ant");
    begin_any("@copy@db1:1/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "@copy@db1:1");
    audit_fixture_grant(&ant, 150, 200, "b", "@copy@db1:1");
    audit_fixture_expect_violation(AUDIT_DUE_OVERLAP, "b", "pool @copy@db1 in use");
}

static void test_may_overlap(void) {
    begin_any("@dump:10000/declared"); /* overlap = "allow" */
    audit_fixture_grant(&ant, 100, 100, "a", ANY);
    audit_fixture_grant(&bee, 150, 200, "b", ANY);
    audit_fixture_expect_proof();
}

/* Adds a run on ant whose permits are reclaimed at 3000, and whose processes are gone at `gone`. */
static void add_lost_host(long gone) {
    begin_any("@dump:1/declared");
    audit_fixture_grant(&ant, 100, 100, "a", ANY);
    audit_fixture_add_event(&ant, 101, "started", "a", ANY);
    audit_fixture_reclaim(3000, "a");
    free(record.items[record.n - 1].pools);
    record.items[record.n - 1].pools = strdup(ANY);
    audit_fixture_grant(&bee, 150, 3100, "b", ANY);
    audit_fixture_add_event(&ant, gone, "fenced", "a", ANY);
    audit_fixture_set_token("a");
    audit_fixture_add_event(&ant, gone, "exited", "a", ANY);
    audit_fixture_set_token("a");
}

/* Permits that were reclaimed count until the processes of the lost host are gone. */
static void test_lost_host(void) {
    add_lost_host(2900);
    audit_fixture_expect_proof();
    add_lost_host(4000);
    audit_fixture_expect_violation(AUDIT_DUE_OVERLAP, "b", "held before: a on ant");
}

static void test_malformed(void) {
    begin();
    add_start(&ant, 100, "a", "soon", 0);
    audit_fixture_expect_violation(AUDIT_MALFORMED, "a", "BERTH_DUE is \"soon\"");
}

static void test_missed(void) {
    struct entry e;

    begin();
    for (int i = 0; i < 2; i++) {
        e = audit_fixture_entry(&ant, 100 + 1000 * i, "missed", NULL, NULL);
        e.job = (char *) "dump";
        e.origin.due = (char *) DUE;
        e.missed.until = (char *) NEXT;
        e.missed.count = 2;
        audit_fixture_add(&e);
    }
    audit_fixture_expect_proof();
    CU_ASSERT_FATAL(report.n_missed == 2);
    TEST_STRING(report.missed[0]->missed.until, NEXT);
    TEST_INT(report.missed[0]->missed.count, 2);
    options.since = BASE + 500 * USEC_PER_MSEC;
    audit_fixture_expect_proof();
    TEST_INT(report.n_missed, 1);
}

static CU_TestInfo tests[] = {{"twice", test_twice},
                              {"once", test_once},
                              {"comes again", test_comes_again},
                              {"any", test_any},
                              {"one after the other", test_one_after_the_other},
                              {"overlap", test_overlap},
                              {"may overlap", test_may_overlap},
                              {"overlap with a lost host", test_lost_host},
                              {"malformed due time", test_malformed},
                              {"missed", test_missed},
                              CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "audit due times", .pCleanupFunc = audit_fixture_done, .pTests = tests});
