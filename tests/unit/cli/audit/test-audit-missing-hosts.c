/* SPDX-License-Identifier: MIT */
/* Hosts whose journal is missing: other hosts name them, or places in a queue show them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

static void queued(struct writer *w, long msec, const char *run, int64_t position) {
    struct entry e = audit_fixture_entry(w, msec + 1, "queued", run, "db:1");

    e.ticket = BASE + (usec_t) msec * USEC_PER_MSEC;
    e.position = position;
    audit_fixture_add(&e);
}

/* Half a minute after the start one run has the permit, b waits, and c is logged behind b. */
static void queue(int64_t place_of_c) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "db:1/declared");
    audit_fixture_up(&bee, 0, "db:1/declared");
    audit_fixture_grant(&ant, 30000, 30000, "a", "db:1");
    queued(&bee, 30100, "b", 1);
    queued(&ant, 30200, "c", place_of_c);
    audit_fixture_end(&ant, 40000, "a", "db:1");
    audit_fixture_grant(&bee, 30100, 40001, "b", "db:1");
    audit_fixture_end(&bee, 41000, "b", "db:1");
    audit_fixture_grant(&ant, 30200, 41001, "c", "db:1");
    audit_fixture_end(&ant, 42000, "c", "db:1");
}

/* Both hosts still write long after. */
static void later(void) {
    audit_fixture_add_event(&ant, 500000, "limits-differ", NULL, "db");
    audit_fixture_add_event(&bee, 500000, "limits-differ", NULL, "db");
}

static void doubts(const char *text) {
    audit_fixture_check();
    TEST_INT(report.n_findings, 0);
    TEST_INT(report.n_unproved, text ? 1 : 0);
    if (!text || report.n_unproved == 0)
        return;
    TEST_STRING(audit_kind_name(report.doubts[0].kind), "no-journal");
    if (!strstr(report.doubts[0].text, text))
        TEST_STRING(report.doubts[0].text, text);
}

static void test_places(void) {
    queue(2);
    later();
    doubts(NULL);
    queue(3);
    later();
    doubts("2 claims were ahead of it, and the journals have 1");
    queue(0); /* not logged */
    later();
    doubts(NULL);
}

/* A claim that is behind, or was served before, is not ahead. */
static void test_not_ahead(void) {
    queue(2);
    queued(&bee, 50000, "d", 2); /* a, b and c are over */
    later();
    doubts("1 claims were ahead of it, and the journals have 0");
    queue(2);
    queued(&ant, 50000, "d", 1);
    queued(&ant, 50100, "e", 2);
    record.items[record.n - 1].asked.head_start_ms = 200;
    later();
    doubts("1 claims were ahead of it, and the journals have 0");
}

/* Withdrawn before its place was logged: it may have been ahead. */
static void test_place_not_told(void) {
    queue(3);
    audit_fixture_add_event(&bee, 42000, "withdrawn", "w", "db:1");
    later();
    doubts(NULL);
}

/* Claims made when Redis was lost may be in no journal. */
static void test_redis_lost(void) {
    queue(3);
    audit_fixture_add_event(&bee, 43000, "redis-lost", NULL, NULL); /* c claimed at 30200 */
    audit_fixture_declare(&bee, 44000, "redis-connected", "db:1/declared");
    later();
    doubts("2 claims were ahead");
    queue(3);
    audit_fixture_add_event(&bee, 42000, "grace-begun", NULL, NULL);
    audit_fixture_add_event(&bee, 50000, "grace-ended", NULL, NULL);
    queued(&ant, 45000, "d", 2);
    queued(&ant, 41900, "e", 2);
    later();
    doubts("2 claims were ahead"); /* of c alone */
    queue(2);
    audit_fixture_add_event(&bee, 42000, "redis-lost", NULL, NULL);
    queued(&ant, 100000, "d", 2); /* never back */
    later();
    doubts(NULL);
}

/* A killed berthd is back soon, or its host expires in time; otherwise the audit doubts. */
static void test_killed(void) {
    struct writer next = {.host = "bee", .process = "bee2", .boot = bee.boot};
    struct entry e;

    for (long back = 60000; back <= 120000; back += 60000) {
        queue(3);
        next.seq = 0;
        audit_fixture_up(&next, back, "db:1/declared");
        audit_fixture_add_event(&next, 500000, "limits-differ", NULL, "db");
        later();
        doubts(back < 100000 ? NULL : "2 claims were ahead");
    }
    for (long expired = 60000; expired <= 120000; expired += 60000) {
        queue(3);
        e = audit_fixture_entry(&ant, expired, "host-expired", NULL, NULL);
        e.host = (char *) "bee";
        e.clock = BASE + (usec_t) expired * USEC_PER_MSEC;
        audit_fixture_add(&e);
        later();
        doubts(expired < 100000 ? NULL : "2 claims were ahead");
    }
}

/* The end of the log: a host without later entries may be dead. */
static void test_end(void) {
    queue(3);
    doubts("2 claims were ahead"); /* both have later entries */
    queued(&ant, 50000, "d", 2);
    audit_fixture_add_event(&ant, 50100, "limits-differ", NULL, "db");
    doubts("2 claims were ahead"); /* of c; not of d: bee is silent */
    audit_fixture_add_event(&bee, 50100, "limits-differ", NULL, "db");
    audit_fixture_check();
    TEST_INT(report.n_unproved, 2);
}

static void test_named_by_others(void) {
    struct entry e;

    queue(2);
    e = audit_fixture_entry(&bee, 50000, "host-expired", NULL, NULL);
    e.host = (char *) "cow";
    e.clock = BASE + UINT64_C(49999) * USEC_PER_MSEC;
    audit_fixture_add(&e);
    doubts("the journal of host cow is missing");
    e = audit_fixture_entry(&bee, 51000, "host-expired", NULL, NULL);
    e.host = (char *) "cow";
    e.clock = BASE + UINT64_C(50999) * USEC_PER_MSEC;
    audit_fixture_add(&e);
    doubts("the journal of host cow is missing"); /* once */
}

static CU_TestInfo tests[] = {{"places", test_places},   {"not ahead", test_not_ahead}, {"place not logged", test_place_not_told},
                              {"redis lost", test_redis_lost}, {"killed", test_killed}, {"end", test_end}, {"named by others", test_named_by_others},
                              CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "audit of missing hosts", .pCleanupFunc = audit_fixture_done, .pTests = tests});
