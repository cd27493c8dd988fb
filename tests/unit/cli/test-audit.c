/* SPDX-License-Identifier: MIT */
/* The audit on records that a test makes up: good ones are proved, and each kind of wrong one is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/audit-fixture.h"
#include "tests/harness/test.h"

static void test_good(void) {
    audit_fixture_add_good_runs();
    audit_fixture_expect_proof();
    TEST_INT(report.n_granted, 3);
    TEST_INT(report.n_running, 1);
    TEST_INT(report.n_hosts, 2);
    TEST_INT(report.n_starts, 2);
}

/* Clocks that are hours apart: tokens tell the order, and how far a clock is ahead. */
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

static size_t cut_entry(size_t which) { /* leaves it out; how many there are */
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
    /* The last entry of a host leaves no gap behind, nor could it. */
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
    bee = (struct writer) {"bee", "bee/2", "boot-b1", 0, 0}; /* a restart counts anew */
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
    /* Raised right before, though told later; lowered afterwards: what runs may, nothing more may begin. */
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
    /* An override ends; it is told again by who connects; it is none for who connects later. */
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
    /* The lowest that is declared counts where there is no override. */
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

/* Held up to the number that its release names, neither longer nor shorter. */
static void test_release(void) {
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1400, 1501, "d", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 2].clock = BASE + 1501 * USEC_PER_MSEC; /* the token of d was drawn before */
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
    record.items[record.n - 2].clock = 0; /* Redis's answer was lost: its end tells */
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
    given = (struct audit_limit) {"db", 2, false, false}; /* of a config */
    audit_fixture_expect_proof();
    audit_fixture_add_good_runs();
    options.limits = &given; /* the journal knows better */
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
    audit_fixture_grant(&ant, 900, 999, "z", "own:1"); /* its numbers are of no cluster; the journal's order counts */
    audit_fixture_expect_proof();
    audit_fixture_grant(&ant, 1100, 1100, "w", "own:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "w", "pool own");
}

static void test_order(void) {
    /* e asked first and got its permit last */
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "granted before run e on ant");
    audit_fixture_add_event(&ant, 1250, "redis-lost", NULL, NULL); /* that is no reason: its session lived, and its place was there */
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    audit_fixture_add_event(&ant, 1260, "session-lost", NULL, NULL);
    record.items[record.n - 1].clock = BASE + 1240 * USEC_PER_MSEC;
    audit_fixture_expect_proof();
    TEST_INT(report.n_explained, 1);
    audit_fixture_declare(&ant, 1300, "redis-connected", "db:1/declared"); /* it was back before f was granted */
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    /* f counts as if it had waited already */
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    record.items[record.n - 1].head_start_ms = 150;
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 4].head_start_ms = 50;
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    /* e gave up after it had been overtaken */
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 1201, "queued", "e", "db:1");
    record.items[record.n - 1].ticket = BASE + 1200 * USEC_PER_MSEC;
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_add_event(&ant, 1800, "withdrawn", "e", "db:1");
    record.items[record.n - 1].clock = BASE + 1700 * USEC_PER_MSEC;
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    record.items[record.n - 1].clock = BASE + 1500 * USEC_PER_MSEC; /* it is not known to have waited longer */
    audit_fixture_expect_proof();
    /* parked: the limit was below what e wants */
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 1, "limit-changed", "db:2/declared");
    audit_fixture_declare(&ant, 1199, "limit-changed", "db:1");
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_declare(&ant, 2000, "limit-changed", "db:-");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:2");
    audit_fixture_expect_proof();
    TEST_INT(report.n_explained, 1);
    record.items[record.n - 2].clock = BASE + 1400 * USEC_PER_MSEC; /* it was back before that */
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    /* other pools are other queues */
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 1200, "limit-changed", "net:1/declared");
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "net:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_proof();
}

/* d was granted when its host had given up its session, which gave that back; then it asked anew. With which ticket it had asked before
 * nobody tells, so that nothing says that it overtook e. */
static void test_asked_again(void) {
    struct entry back;

    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1000, "c", "db:1");
    back = audit_fixture_entry(&ant, 1203, "reclaimed", "d", "db:1");
    back.token = BASE + 1200 * USEC_PER_MSEC;
    back.clock = BASE + 1202 * USEC_PER_MSEC;
    audit_fixture_add(&back);
    audit_fixture_grant(&bee, 1100, 1300, "e", "db:1");
    audit_fixture_end(&bee, 1350, "e", "db:1");
    audit_fixture_grant(&ant, 1204, 1400, "d", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 1].ticket = BASE + 1190 * USEC_PER_MSEC; /* that is the ticket with which it was granted first */
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "d", "granted before run e on bee");
}

/* A host that was taken for dead is in no queue until it is back; so is everybody when Redis has lost its data. */
static void test_absent(void) {
    for (int i = 0; i < 3; i++) {
        audit_fixture_add_good_runs();
        audit_fixture_end(&ant, 1500, "c", "db:1");
        audit_fixture_add_event(&bee, 1250, i == 0 ? "host-expired" : i == 1 ? "grace-begun" : "host-expired", NULL, NULL);
        if (i != 1)
            record.items[record.n - 1].clock = BASE + 1249 * USEC_PER_MSEC;
        if (i == 0)
            record.items[record.n - 1].host[0] = 'a', record.items[record.n - 1].host[1] = 'n', record.items[record.n - 1].host[2] = 't';
        audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
        audit_fixture_end(&bee, 2000, "f", "db:1");
        audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
        if (i == 2) /* bee was expired, not ant */
            audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
        else
            audit_fixture_expect_proof();
    }
    /* What was asked for when it was back is there. */
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 1000, "session-lost", NULL, NULL);
    audit_fixture_declare(&ant, 1050, "redis-connected", "db:1/declared");
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
}

static void test_tokens(void) {
    int twice = 0;

    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 150, 501, "f", "db:1");
    audit_fixture_check();
    for (size_t i = 0; i < report.n_findings; i++)
        twice += report.findings[i].kind == AUDIT_TOKEN_TWICE;
    TEST_INT(twice, 1);
    /* A token below one that was granted before this run asked. */
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "db:9/declared");
    audit_fixture_up(&bee, 0, "db:9/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "db:1");
    audit_fixture_grant(&ant, 3000, 3000, "b", "db:1");
    audit_fixture_grant(&bee, 200, 200, "x", "db:1");
    audit_fixture_grant(&bee, 1000, 1000, "c", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 1].time += 5 * USEC_PER_SEC; /* heard late: no harm */
    record.items[record.n - 1].wait_ms += 5000;
    audit_fixture_expect_proof();
    record.items[record.n - 1].wait_ms = 10; /* but it had asked at 6 s */
    record.items[record.n - 1].ticket--;
    audit_fixture_expect_violation(AUDIT_TOKEN_ORDER, "c", "of run b");
}

static void test_ends(void) {
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "exited", "c", "db:1");
    audit_fixture_expect_proof(); /* its release may be under way */
    audit_fixture_add_event(&ant, 100000, "lease-late", NULL, NULL);
    audit_fixture_expect_violation(AUDIT_NOT_ENDED, "c", "it is over");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "exited", "c", "db:1");
    audit_fixture_add_event(&ant, 2001, "redis-lost", NULL, NULL);
    audit_fixture_add_event(&ant, 100000, "lease-late", NULL, NULL);
    audit_fixture_expect_proof();
    /* The host was booted anew: somebody must have reclaimed it. */
    audit_fixture_add_good_runs();
    ant = (struct writer) {"ant", "ant/2", "boot-a2", 0, 0};
    audit_fixture_up(&ant, 100000, "db:1/declared");
    audit_fixture_expect_violation(AUDIT_NOT_ENDED, "c", "booted anew");
    audit_fixture_reclaim(40000, "c");
    audit_fixture_expect_proof();
    audit_fixture_grant(&bee, 39999, 40000, "d", "db:1"); /* granted in the same call */
    audit_fixture_expect_proof();
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&bee, 1000, "queued", "d", "db:1");
    audit_fixture_add_event(&bee, 1001, "started", "d", "db:1");
    audit_fixture_expect_violation(AUDIT_NOT_GRANTED, "d", "nothing tells");
}

/* Its lease was lost, others have its permits: wanted so with `continue`, else a violation. */
static void test_continue(void) {
    for (int i = 0; i < 3; i++) {
        audit_fixture_add_good_runs();
        record.items[record.n - 2].continues = i == 1;
        audit_fixture_reclaim(40000, "c");
        audit_fixture_grant(&bee, 40000, 40000, "d", "db:1");
        audit_fixture_add_event(&ant, i == 2 ? 39990 : 60000, "exited", "c", "db:1");
        audit_fixture_set_token("c");
        if (i == 0)
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
        else
            audit_fixture_expect_proof();
        TEST_INT(report.n_continued, i == 1);
    }
    /* It holds its permits again, under a new token, beyond the limit; nothing is granted until use is below it. */
    audit_fixture_add_good_runs();
    record.items[record.n - 2].continues = true;
    audit_fixture_reclaim(40000, "c");
    audit_fixture_grant(&bee, 40000, 40000, "d", "db:1");
    audit_fixture_grant(&ant, 600, 50000, "c", "db:1");
    audit_fixture_end(&bee, 51000, "d", "db:1");
    audit_fixture_end(&ant, 52000, "c", "db:1");
    record.items[record.n - 1].token = record.items[record.n - 2].token = BASE + 50000 * USEC_PER_MSEC;
    audit_fixture_grant(&bee, 51001, 52001, "e", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 1].token = BASE + 51500 * USEC_PER_MSEC;
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: c on ant");
}

/* ant's berthd hung, its lease was lost, and it tells of c's start and end when d was granted c's permit: how long c had waited and ran
 * says whether it was gone by then. */
static void test_told_late(void) {
    static const struct {
        int64_t wait_ms, run_ms;
        bool overlaps;
    } cases[] = {{303, 1000, false}, {303, 2500, true}, {1303, 1000, false}, {1303, 1500, true}, {-1, 1000, true}, {301, 1000, true}};

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        audit_fixture_add_good_runs(); /* c was granted after it had waited for 302 ms */
        record.items[record.n - 1].time = BASE + 5000 * USEC_PER_MSEC;
        record.items[record.n - 1].wait_ms = cases[i].wait_ms;
        audit_fixture_reclaim(3000, "c");
        audit_fixture_grant(&bee, 3000, 3000, "d", "db:1");
        audit_fixture_add_event(&ant, 5001, "exited", "c", "db:1");
        record.items[record.n - 1].run_ms = cases[i].run_ms;
        audit_fixture_set_token("c");
        if (cases[i].overlaps)
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
        else
            audit_fixture_expect_proof();
    }
}

/* ant's lease was lost, c's processes were gone at 3000, and then d was granted c's permit, which its host never heard: it is told at 4000
 * that it was taken back. Its number says 2500: if Redis's clock was set back by a second that is no violation. */
static void test_set_back(void) {
    for (int i = 0; i < 2; i++) {
        struct entry back;

        audit_fixture_add_good_runs();
        audit_fixture_reclaim(2400, "c");
        audit_fixture_add_event(&ant, 3000, "exited", "c", "db:1");
        audit_fixture_set_token("c");
        audit_fixture_add_event(&bee, 2450, "queued", "d", "db:1");
        record.items[record.n - 1].ticket = BASE + 2449 * USEC_PER_MSEC;
        back = audit_fixture_entry(&bee, i == 0 ? 4000 : 2600, "reclaimed", "d", "db:1");
        back.token = BASE + 2500 * USEC_PER_MSEC;
        back.clock = BASE + 2501 * USEC_PER_MSEC;
        audit_fixture_add(&back);
        if (i == 1) { /* it was told when they were still there */
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
            continue;
        }
        audit_fixture_expect_proof();
        TEST_INT(report.n_unproved, 1);
        CU_ASSERT(report.n_doubts == 1 && strstr(report.doubts[0].text, "c on ant (its permits were taken back"));
    }
}

/* Entries of one run, and of one berthd, fit together. */
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
    audit_fixture_expect_violation(AUDIT_DIFFERS, "-", "is one of host ant");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "released", "c", "db:1");
    audit_fixture_add_event(&ant, 2000, "exited", "c", "db:1");
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "exited is told after released");
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 2000, "withdrawn", "c", "db:1");
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "cannot have been withdrawn");
}

/* The journal's own numbers tell where an entry stands. */
static void test_moved(void) {
    audit_fixture_add_good_runs();
    for (size_t i = 0; i < record.n; i++) {
        free(record.items[i].cursor);
        CU_ASSERT(asprintf(&record.items[i].cursor, "s=%s;i=%zx;b=0", record.items[i].host, i + 1) > 0);
    }
    audit_fixture_expect_proof();
    record.items[record.n - 1].cursor[strlen("s=ant;i=")] = '0'; /* the last one of ant, now the first */
    CU_ASSERT(strncmp(record.items[record.n - 1].cursor, "s=ant;i=0", 9) == 0);
    audit_fixture_expect_violation(AUDIT_SEQ_ORDER, "c", "stands before");
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

static CU_TestInfo tests[] = {{"good", test_good},     {"clocks", test_clocks}, {"cut", test_cut},     {"seq", test_seq},
                              {"limit", test_limit},   {"release", test_release}, {"absent", test_absent}, {"differs", test_differs}, {"moved", test_moved},
                              {"given-limits", test_given_limits}, {"host-pools", test_host_pools},
                              {"order", test_order},   {"tokens", test_tokens}, {"ends", test_ends},   {"continue", test_continue},
                              {"asked again", test_asked_again}, {"set back", test_set_back},
                              {"told late", test_told_late},
                              {"malformed", test_malformed}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "audit", .pCleanupFunc = audit_fixture_done, .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
