/* SPDX-License-Identifier: MIT */
/* The audit on logs that a test makes up: claims that operators moved. */
#include <string.h>

#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

/* Adds a move of f, which was queued after e, to a place before e. With uid >= 0, the event is of the
 * host that the operator asked, and names the run's host. */
static void move(struct writer *w, long msec, long number, int64_t head_start_ms, int64_t uid) {
    struct entry e = audit_fixture_entry(w, msec, "moved", "f", "db:1");

    e.clock = BASE + (usec_t) number * USEC_PER_MSEC;
    e.ticket = BASE + 1300 * USEC_PER_MSEC;
    e.asked.head_start_ms = head_start_ms;
    e.uid = uid;
    if (uid >= 0) {
        e.host = (char *) "bee";
        e.missed.count = 1;
    }
    audit_fixture_add(&e);
}

static void begin(void) {
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
}

static void end(void) {
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
}

static void test_moved(void) {
    begin();
    end(); /* no host logs the move */
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "granted before run e on ant");
    begin();
    move(&ant, 1400, 1399, 150, 1000); /* both hosts log it */
    move(&bee, 1401, 1399, 150, -1);
    end();
    audit_fixture_expect_proof();
    begin();
    move(&ant, 1400, 1399, 150, 1000);
    end();
    audit_fixture_expect_proof();
    begin();
    move(&bee, 1400, 1399, 150, -1);
    end();
    audit_fixture_expect_proof();
}

static void test_steps(void) {
    begin();
    move(&bee, 1400, 1399, 50, -1); /* not far enough */
    end();
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    begin();
    move(&bee, 1400, 1399, 150, -1);
    move(&bee, 1450, 1449, 0, -1); /* and back */
    end();
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    begin();
    move(&bee, 1600, 1599, 150, -1); /* after its grant */
    end();
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    begin();
    move(&bee, 1400, 1399, 150, -1);
    audit_fixture_grant(&ant, 1200, 1501, "e", "db:1"); /* it was behind f by then */
    audit_fixture_end(&ant, 2000, "e", "db:1");
    audit_fixture_grant(&bee, 1300, 2001, "f", "db:1");
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "e", "run f");
}

/* Redis lost its data, and the run's host did not log the move: Redis may have lost the move, too. */
static void test_lost(void) {
    begin();
    move(&ant, 1400, 1399, 150, 1000);
    audit_fixture_add_event(&ant, 1410, "grace-begun", NULL, NULL);
    audit_fixture_add_event(&bee, 1410, "grace-begun", NULL, NULL);
    audit_fixture_add_event(&ant, 1420, "grace-ended", NULL, NULL);
    audit_fixture_add_event(&bee, 1420, "grace-ended", NULL, NULL);
    audit_fixture_grant(&ant, 1200, 1501, "e", "db:1");
    audit_fixture_end(&ant, 2000, "e", "db:1");
    audit_fixture_grant(&bee, 1300, 2001, "f", "db:1");
    audit_fixture_check();
    TEST_INT(report.n_findings, 0);
    CU_ASSERT_EQUAL_FATAL(report.n_doubts, 1);
    TEST_INT(report.doubts[0].kind, AUDIT_OVERTAKEN);
    CU_ASSERT_PTR_NOT_NULL(strstr(report.doubts[0].text, "unless Redis had lost a move"));
}

static void test_listed(void) {
    begin();
    move(&bee, 1401, 1399, 150, -1);
    move(&ant, 1400, 1399, 150, 1000);
    move(&bee, 1411, 1410, 151, -1);
    end();
    audit_fixture_check();
    TEST_INT(report.n_moves, 2);
    TEST_INT(report.moves[0]->uid, 1000);
    TEST_INT(report.moves[0]->missed.count, 1);
    TEST_INT(report.moves[1]->uid, -1);
}

static CU_TestInfo tests[] = {
    {"a moved claim is granted at its new place", test_moved},
    {"each move is a step", test_steps},
    {"a move that Redis may have lost", test_lost},
    {"each move is listed once", test_listed},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {.pName = "audit of moves", .pCleanupFunc = audit_fixture_done, .pTests = tests},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv) {
    return test_main(argc, argv, suites);
}
