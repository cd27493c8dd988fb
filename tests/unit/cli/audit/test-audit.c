/* SPDX-License-Identifier: MIT */
/* The audit of made-up logs: it proves good ones, and finds each kind of violation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

static void test_good(void) {
    audit_fixture_add_good_runs();
    audit_fixture_expect_proof();
    TEST_INT(report.n_granted, 3);
    TEST_INT(report.n_running, 1);
    TEST_INT(report.n_hosts, 2);
    TEST_INT(report.n_starts, 2);
}

/* Clocks that are hours apart: tokens give the order and each clock's lead. */
static void test_clocks(void) {
    audit_fixture_begin();
    ant.ahead = 7200 * (int64_t) USEC_PER_SEC;
    bee.ahead = -3600 * (int64_t) USEC_PER_SEC;
    audit_fixture_up(&ant, 0, "db:1/declared");
    audit_fixture_up(&bee, 0, "db:1/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "db:1");
    audit_fixture_end(&ant, 500, "a", "db:1");
    audit_fixture_grant(&bee, 150, 501, "b", "db:1");
    audit_fixture_end(&bee, 900, "b", "db:1");
    audit_fixture_grant(&bee, 1000, 1000, "c", "db:1");
    audit_fixture_grant(&ant, 1001, 1500, "d", "db:1");
    audit_fixture_end(&bee, 2000, "c", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "2 permits of pool db in use, its limit is 1; held before: c on bee");
    CU_ASSERT(report.doubt <= 3 * USEC_PER_MSEC);
}

static size_t cut_entry(size_t which) { /* Leaves an entry out. Returns how many there were. */
    struct entries all = record, kept = {};

    for (size_t i = 0; i < all.n; i++)
        if (i != which)
            TEST_INT(entries_add(&kept, &all.items[i]), 0);
    entries_done(&record);
    record = kept;
    return kept.n + 1;
}

static void test_cut(void) {
    size_t n = 2;

    for (size_t i = 0; i < n; i++) {
        audit_fixture_add_good_runs();
        n = cut_entry(i);
        if (i == 12 || i == n - 1)
            continue; /* the last of a host, see below */
        audit_fixture_check();
        CU_ASSERT(report.n_findings > 0);
        if (report.n_findings == 1)
            TEST_INT(report.findings[0].kind, AUDIT_SEQ_GAP);
    }
    /* The last entry of a host leaves no gap. */
    audit_fixture_add_good_runs();
    (void) cut_entry(n - 1);
    audit_fixture_expect_proof();
    audit_fixture_add_good_runs();
    (void) cut_entry(0);
    audit_fixture_check();
    TEST_INT(report.findings[0].kind, AUDIT_SEQ_GAP);
    options.since = BASE + 1000 * USEC_PER_MSEC;
    audit_fixture_expect_proof();
}

static void test_seq(void) {
    audit_fixture_add_good_runs();
    ant.seq += 2;
    audit_fixture_add_event(&ant, 2000, "redis-lost", NULL, NULL);
    audit_fixture_expect_violation(AUDIT_SEQ_GAP, "-", "BERTH_SEQ 11 follows 8: 2 missing");
    audit_fixture_add_good_runs();
    ant.seq--;
    audit_fixture_add_event(&ant, 2000, "redis-lost", NULL, NULL);
    audit_fixture_expect_violation(AUDIT_SEQ_TWICE, "-", "a second entry");
    audit_fixture_add_good_runs();
    bee = (struct writer) {"bee", "bee/2", "boot-b1", 0, 0}; /* a restart counts from 1 */
    audit_fixture_up(&bee, 2000, "db:1/declared");
    audit_fixture_expect_proof();
    TEST_INT(report.n_starts, 3);
    audit_fixture_add_good_runs();
    ant.seq = 0; /* so does one that has the same pid */
    audit_fixture_up(&ant, 2000, "db:1/declared");
    audit_fixture_expect_proof();
    TEST_INT(report.n_starts, 3);
    audit_fixture_add_good_runs();
    for (size_t i = 0, n = record.n; i < n; i++) { /* the same journal given twice */
        struct entry copy = record.items[i];

        audit_fixture_add(&copy);
    }
    audit_fixture_expect_proof();
    TEST_INT(report.n_granted, 3);
    audit_fixture_add_good_runs();
    ant.seq = UINT64_MAX;
    audit_fixture_add_event(&ant, 2000, "redis-lost", NULL, NULL);
    audit_fixture_expect_violation(AUDIT_MALFORMED, "-", "without BERTH_SEQ");
}

static void test_limit(void) {
    audit_fixture_add_good_runs();
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
    /* Raised right before, but logged later; lowered afterwards: running ones go on, no new grant is
     * allowed. */
    audit_fixture_add_good_runs();
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_limits(&ant, 5000, "limit-changed", "db:2");
    record.items[record.n - 1].clock = BASE + 950 * USEC_PER_MSEC - 1;
    audit_fixture_expect_proof();
    record.items[record.n - 1].clock++; /* after it */
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "2 permits");
    record.items[record.n - 1].clock--;
    audit_fixture_declare(&ant, 6000, "limit-changed", "db:1");
    audit_fixture_end(&bee, 20000, "d", "db:1");
    audit_fixture_grant(&bee, 19000, 20001, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "2 permits");
    /* An override ends. A host that connects logs it again; for one that connects later it does not exist. */
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 910, "limit-changed", "db:2");
    audit_fixture_declare(&ant, 940, "limit-changed", "db:-");
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "its limit is 1");
    record.items[record.n - 2].time++;
    record.items[record.n - 2].clock = BASE + 960 * USEC_PER_MSEC;
    audit_fixture_expect_proof();
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 910, "redis-connected", "db:1/declared,db:2");
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_expect_proof();
    audit_fixture_grant(&bee, 1000, 1000, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "its limit is 2");
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 910, "limit-changed", "db:2");
    audit_fixture_declare(&ant, 920, "redis-connected", "db:1/declared");
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "its limit is 1");
    /* The lowest declared limit counts without an override. */
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 910, "limit-changed", "db:2/declared");
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_expect_proof();
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 910, "limit-changed", "db:5/declared");
    audit_fixture_declare(&ant, 911, "limit-changed", "db:1");
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "its limit is 1");
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 910, "limit-changed", "db:five");
    audit_fixture_expect_violation(AUDIT_MALFORMED, "-", "BERTH_LIMITS");
}

/* A run holds its permits exactly until the number of its release. */
static void test_release(void) {
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1400, 1501, "d", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 2].clock = BASE + 1501 * USEC_PER_MSEC; /* the token of d was drawn before */
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
    record.items[record.n - 2].clock = 0; /* Redis's reply was lost: the end of the run counts */
    audit_fixture_expect_proof();
    TEST_INT(report.n_by_clock, 1);
    record.items[record.n - 3].time += 500 * USEC_PER_MSEC;
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
}

static void test_given_limits(void) {
    struct audit_limit given = {"db", 1, false, true};

    audit_fixture_begin();
    audit_fixture_add_event(&ant, 0, "ready", NULL, NULL);
    audit_fixture_grant(&ant, 100, 100, "a", "db:1");
    audit_fixture_expect_violation(AUDIT_NO_LIMIT, "a", "--limit db=N");
    options.limits = &given;
    options.n_limits = 1;
    audit_fixture_expect_proof();
    audit_fixture_grant(&ant, 200, 200, "b", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "b", "its limit is 1");
    given = (struct audit_limit) {"db", 2, false, false}; /* from a config */
    audit_fixture_expect_proof();
    audit_fixture_add_good_runs();
    options.limits = &given; /* the journal takes precedence */
    options.n_limits = 1;
    audit_fixture_grant(&bee, 950, 950, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "its limit is 1");
    given.fixed = true;
    audit_fixture_expect_proof();
}

static void test_host_pools(void) {
    audit_fixture_add_good_runs();
    audit_fixture_grant(&ant, 100, 100, "x", "own:1");
    audit_fixture_grant(&bee, 100, 100, "y", "own:1"); /* each host has its own */
    audit_fixture_expect_proof();
    audit_fixture_end(&ant, 1000, "x", "own:1");
    audit_fixture_grant(&ant, 900, 999, "z", "own:1"); /* its numbers are not the cluster's; the journal's order counts */
    audit_fixture_expect_proof();
    audit_fixture_grant(&ant, 1100, 1100, "w", "own:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "w", "pool own");
}

static void test_ends(void) {
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "exited", "c", "db:1");
    audit_fixture_expect_proof(); /* its release may be under way */
    audit_fixture_add_event(&ant, 100000, "lease-late", NULL, NULL);
    audit_fixture_expect_violation(AUDIT_NOT_ENDED, "c", "the run is over");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "exited", "c", "db:1");
    audit_fixture_add_event(&ant, 2001, "redis-lost", NULL, NULL);
    audit_fixture_add_event(&ant, 100000, "lease-late", NULL, NULL);
    audit_fixture_expect_proof();
    /* The host was rebooted: another host must have reclaimed it. */
    audit_fixture_add_good_runs();
    ant = (struct writer) {"ant", "ant/2", "boot-a2", 0, 0};
    audit_fixture_up(&ant, 100000, "db:1/declared");
    audit_fixture_expect_violation(AUDIT_NOT_ENDED, "c", "rebooted");
    audit_fixture_reclaim(40000, "c");
    audit_fixture_expect_proof();
    audit_fixture_grant(&bee, 39999, 40000, "d", "db:1"); /* granted in the same call */
    audit_fixture_expect_proof();
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&bee, 1000, "queued", "d", "db:1");
    audit_fixture_add_event(&bee, 1001, "started", "d", "db:1");
    audit_fixture_expect_violation(AUDIT_NOT_GRANTED, "d", "without a logged grant");
}

/* ant's berthd hung and lost its lease. It logs c's start and end only when d was granted c's permit. How
 * long c had waited and run shows whether it was gone by then. */
static void test_logged_late(void) {
    static const struct {
        int64_t wait_ms, run_ms;
        bool overlaps;
    } cases[] = {{303, 1000, false}, {303, 2500, true}, {1303, 1000, false}, {1303, 1500, true}, {-1, 1000, true}, {301, 1000, true}};

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        audit_fixture_add_good_runs(); /* c was granted after it had waited for 302 ms */
        record.items[record.n - 1].time = BASE + 5000 * USEC_PER_MSEC;
        record.items[record.n - 1].took.wait_ms = cases[i].wait_ms;
        audit_fixture_reclaim(3000, "c");
        audit_fixture_grant(&bee, 3000, 3000, "d", "db:1");
        audit_fixture_add_event(&ant, 5001, "exited", "c", "db:1");
        record.items[record.n - 1].took.run_ms = cases[i].run_ms;
        audit_fixture_set_token("c");
        if (cases[i].overlaps)
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
        else
            audit_fixture_expect_proof();
    }
}

/* Entries of one run, and of one berthd, agree. */
static void test_differs(void) {
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 2000, "c", "db:1");
    record.items[record.n - 1].pools[3] = '2';
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "BERTH_POOLS");
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 2000, "c", "db:1");
    record.items[record.n - 1].token++;
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "BERTH_TOKEN");
    audit_fixture_add_good_runs();
    record.items[record.n - 1].uid = 7;
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "BERTH_UID");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "redis-lost", NULL, NULL);
    record.items[record.n - 1].host[0] = 'A';
    audit_fixture_expect_violation(AUDIT_DIFFERS, "-", "its berthd belongs to host ant");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "released", "c", "db:1");
    audit_fixture_add_event(&ant, 2000, "exited", "c", "db:1");
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "exited is logged after released");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "withdrawn", "c", "db:1");
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "withdrawn after its grant");
}

/* The journal's own numbers show where an entry stands. */
static void test_moved(void) {
    audit_fixture_add_good_runs();
    for (size_t i = 0; i < record.n; i++) {
        free(record.items[i].cursor);
        CU_ASSERT(asprintf(&record.items[i].cursor, "s=%s;i=%zx;b=0", record.items[i].host, i + 1) > 0);
    }
    audit_fixture_expect_proof();
    record.items[record.n - 1].cursor[strlen("s=ant;i=")] = '0'; /* the last one of ant, now the first */
    CU_ASSERT(strncmp(record.items[record.n - 1].cursor, "s=ant;i=0", 9) == 0);
    audit_fixture_expect_violation(AUDIT_SEQ_ORDER, "c", "the journal has it before");
}

static void test_malformed(void) {
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "granted", "d", "db:1:1");
    audit_fixture_expect_violation(AUDIT_MALFORMED, "d", "BERTH_POOLS");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "granted", "d", "db:1");
    audit_fixture_expect_violation(AUDIT_MALFORMED, "d", "without a token");
    audit_fixture_begin();
    audit_fixture_expect_proof();
}

static CU_TestInfo tests[] = {{"good", test_good},
                              {"clocks", test_clocks},
                              {"cut", test_cut},
                              {"seq", test_seq},
                              {"limit", test_limit},
                              {"release", test_release},
                              {"differs", test_differs},
                              {"moved", test_moved},
                              {"given-limits", test_given_limits},
                              {"host-pools", test_host_pools},
                              {"ends", test_ends},
                              {"logged late", test_logged_late},
                              {"malformed", test_malformed},
                              CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "audit", .pCleanupFunc = audit_fixture_done, .pTests = tests});
