/* SPDX-License-Identifier: MIT */
/* The audit on logs of hosts that were killed or lost a reply: an end that cannot be logged is no violation,
 * and excuses nothing else. */
#include <stdio.h>
#include <string.h>

#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

/* berthd of ant is killed, and restarted in the same boot. */
static void restart(long msec) {
    ant = (struct writer) {"ant", "ant/2", "boot-a1", 0, 0};
    audit_fixture_up(&ant, msec, "db:1/declared");
}

/* Expects n doubts, of which the first has this kind, run and text. */
static void doubts(size_t n, enum audit_kind kind, const char *run, const char *text) {
    audit_fixture_expect_proof();
    TEST_INT(report.n_unproved, n);
    TEST_INT(report.n_doubts, n);
    if (report.n_doubts == 0)
        return;
    TEST_STRING(audit_kind_name(report.doubts[0].kind), audit_kind_name(kind));
    TEST_STRING(report.doubts[0].entry->run, run);
    if (!strstr(report.doubts[0].text, text))
        TEST_STRING(report.doubts[0].text, text);
}

/* berthd of ant is killed after the grant of d, and before its start. */
static void killed_with_grant(void) {
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1000, "c", "db:1");
    audit_fixture_grant(&ant, 1100, 1100, "d", "db:1");
    restart(1200);
}

static void test_withdrawn(void) {
    struct entry e;

    killed_with_grant();
    audit_fixture_add_event(&ant, 1300, "withdrawn", "d", "db:1");
    audit_fixture_grant(&bee, 1250, 1301, "e", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 1].token = BASE + 1150 * USEC_PER_MSEC; /* before the next berthd started */
    record.items[record.n - 1].ticket = BASE + 1149 * USEC_PER_MSEC;
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
    /* The next berthd logs the grant, so it cannot withdraw d. */
    killed_with_grant();
    audit_fixture_grant(&ant, 1100, 1100, "d", "db:1");
    audit_fixture_add_event(&ant, 1300, "withdrawn", "d", "db:1");
    audit_fixture_expect_violation(AUDIT_DIFFERS, "d", "withdrawn after its grant");
    /* A release after the withdrawal is in order. */
    killed_with_grant();
    audit_fixture_add_event(&ant, 1300, "withdrawn", "d", "db:1");
    audit_fixture_add_event(&ant, 1301, "released", "d", "db:1");
    audit_fixture_set_token("d");
    record.items[record.n - 1].clock = BASE + 1300 * USEC_PER_MSEC;
    audit_fixture_expect_proof();
    /* A started run cannot have waited. */
    audit_fixture_add_good_runs();
    restart(1200);
    audit_fixture_add_event(&ant, 1300, "withdrawn", "c", "db:1");
    audit_fixture_expect_violation(AUDIT_DIFFERS, "c", "withdrawn after its grant");
    /* The berthd that logged the grant cannot withdraw it (test-audit.c has one that ran). */
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1000, "c", "db:1");
    audit_fixture_grant(&ant, 1100, 1100, "d", "db:1");
    e = audit_fixture_entry(&ant, 1300, "withdrawn", "d", "db:1");
    audit_fixture_add(&e);
    audit_fixture_expect_violation(AUDIT_DIFFERS, "d", "withdrawn after its grant");
}

static void test_asked_again(void) {
    killed_with_grant();
    audit_fixture_grant(&bee, 1201, 1201, "e", "db:1");
    audit_fixture_end(&bee, 1400, "e", "db:1");
    audit_fixture_grant(&ant, 1250, 1401, "d", "db:1"); /* another ticket and token */
    audit_fixture_add_event(&ant, 1403, "started", "d", "db:1");
    record.items[record.n - 1].ticket = BASE + 1250 * USEC_PER_MSEC;
    record.items[record.n - 1].token = BASE + 1401 * USEC_PER_MSEC;
    audit_fixture_expect_proof();
    record.items[record.n - 1].ticket++;
    audit_fixture_expect_violation(AUDIT_DIFFERS, "d", "BERTH_TICKET");
    record.items[record.n - 1].ticket--;
    /* The limit applies to it, too. */
    audit_fixture_grant(&bee, 1450, 1450, "f", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "f", "held before: d on ant");
    /* Its release under the later token does not mean that it held all the time. */
    killed_with_grant();
    audit_fixture_grant(&bee, 1201, 1201, "e", "db:1");
    audit_fixture_end(&bee, 1400, "e", "db:1");
    audit_fixture_grant(&ant, 1250, 1401, "d", "db:1");
    audit_fixture_end(&ant, 1450, "d", "db:1");
    audit_fixture_expect_proof();
    killed_with_grant();
    audit_fixture_grant(&bee, 1301, 1301, "e", "db:1");
    audit_fixture_grant(&ant, 1250, 1401, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: e on bee");
}

/* No berthd knows d any more. Its `berth run` may still have the hold, so nothing is proved; other
 * violations are not excused. */
static void test_forgotten(void) {
    killed_with_grant();
    audit_fixture_expect_proof();
    TEST_INT(report.n_unproved, 0);
    audit_fixture_grant(&bee, 1250, 1301, "e", "db:1");
    doubts(1, AUDIT_ABOVE_LIMIT, "e",
           "its limit is 1, unless these were over: d on ant (its berthd was killed, and the next one did not know the grant)");
    options.since = BASE + 1400 * USEC_PER_MSEC; /* earlier entries are not checked */
    audit_fixture_expect_proof();
    TEST_INT(report.n_unproved, 0);
    options.since = 0;
    audit_fixture_grant(&bee, 1310, 1311, "f", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "f", "held before: d on ant, e on bee");
    /* Its end shows that it ran: then it counts. */
    killed_with_grant();
    audit_fixture_grant(&bee, 1250, 1301, "e", "db:1");
    audit_fixture_end(&ant, 2000, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
    /* Not before the next berthd started. */
    killed_with_grant();
    audit_fixture_grant(&bee, 1149, 1150, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
}

/* ant writes nothing more, and the reply that expired it was lost. */
static void test_expiry_not_logged(void) {
    audit_fixture_add_good_runs();
    audit_fixture_grant(&bee, 30000, 40000, "d", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant"); /* no reply was lost */
    audit_fixture_add_event(&bee, 35000, "redis-lost", NULL, NULL);
    doubts(1, AUDIT_ABOVE_LIMIT, "d", "c on ant (its host has been silent since, and its expiry may have gone unlogged)");
    record.items[record.n - 1].time = BASE + 800 * USEC_PER_MSEC; /* while ant still wrote */
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
    record.items[record.n - 1].time = BASE + 35000 * USEC_PER_MSEC;
    audit_fixture_add_event(&ant, 50000, "lease-late", NULL, NULL); /* ant lives */
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
    /* The lease of bee ended while a reply was on its way: bee stood still, and closed the connection. */
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&bee, 35000, "session-lost", NULL, NULL);
    audit_fixture_grant(&bee, 30000, 40000, "d", "db:1");
    doubts(1, AUDIT_ABOVE_LIMIT, "d", "c on ant (its host has been silent since, and its expiry may have gone unlogged)");
    /* After a reboot no process of ant is left, and a missing reclaim is no violation. */
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&bee, 35000, "redis-lost", NULL, NULL);
    audit_fixture_grant(&bee, 30000, 40000, "d", "db:1");
    ant = (struct writer) {"ant", "ant/2", "boot-a2", 0, 0};
    audit_fixture_up(&ant, 100000, "db:1/declared");
    doubts(2, AUDIT_NOT_ENDED, "c", "no entry reclaims its permits: its host has been silent since");
    /* A killed berthd may have lost a reply, too; a stopped one has not. */
    for (int i = 0; i < 2; i++) {
        audit_fixture_add_good_runs();
        if (i == 1)
            audit_fixture_add_event(&bee, 34000, "stopping-daemon", NULL, NULL);
        bee = (struct writer) {"bee", "bee/2", "boot-b1", 0, 0};
        audit_fixture_up(&bee, 35000, "db:1/declared");
        audit_fixture_grant(&bee, 36000, 40000, "d", "db:1");
        if (i == 0)
            audit_fixture_expect_proof();
        else
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
        TEST_INT(report.n_unproved, i == 0);
    }
}

/* ant logs the end of its session; d never started, and its end is logged only later. */
static void test_session_lost(void) {
    for (int i = 0; i < 3; i++) {
        audit_fixture_add_good_runs();
        audit_fixture_end(&ant, 1000, "c", "db:1");
        audit_fixture_grant(&ant, 1100, 1100, "d", "db:1");
        if (i == 1)
            audit_fixture_add_event(&ant, 1103, "started", "d", "db:1");
        audit_fixture_add_event(&ant, 2000, i == 2 ? "lease-late" : "session-lost", NULL, NULL);
        record.items[record.n - 1].clock = BASE + 1900 * USEC_PER_MSEC;
        audit_fixture_grant(&bee, 1800, 2100, "e", "db:1");
        audit_fixture_add_event(&ant, 2500, "exited", "d", "db:1");
        audit_fixture_set_token("d");
        if (i == 0)
            doubts(1, AUDIT_ABOVE_LIMIT, "e", "d on ant (its host's session was lost before the start)");
        else /* its processes existed, or its session did */
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
        TEST_INT(report.n_unproved, i == 0);
    }
}

/* d released its grant before the start: it waits again, with its ticket. */
static void given_back(long msec, bool has_clock) {
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1000, "c", "db:1");
    audit_fixture_grant(&ant, 1100, 1100, "d", "db:1");
    audit_fixture_add_event(&ant, msec + 1, "released", "d", "db:1");
    audit_fixture_set_token("d");
    record.items[record.n - 1].result = strdup("not-started");
    record.items[record.n - 1].clock = has_clock ? BASE + (usec_t) msec * USEC_PER_MSEC : 0;
}

static void runs_again(long granted) {
    audit_fixture_grant(&bee, 1190, 2001, "e", "db:1");
    audit_fixture_end(&bee, 2400, "e", "db:1");
    audit_fixture_grant(&ant, 1100, granted, "d", "db:1");
    audit_fixture_add_event(&ant, granted + 2, "started", "d", "db:1");
}

static void test_waits_again(void) {
    for (int has_clock = 0; has_clock < 2; has_clock++) {
        given_back(1200, has_clock);
        audit_fixture_expect_proof(); /* it waits */
        runs_again(2401);
        audit_fixture_expect_proof();
        audit_fixture_end(&ant, 3000, "d", "db:1");
        audit_fixture_expect_proof();
        TEST_INT(report.n_unproved, 0);
        given_back(1200, has_clock);
        runs_again(2300);
        audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: e on bee");
        given_back(2200, has_clock);
        runs_again(2401);
        audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
        given_back(1200, has_clock);
        audit_fixture_add_event(&ant, 1300, "withdrawn", "d", "db:1");
        audit_fixture_expect_proof();
    }
    given_back(1200, true);
    free(record.items[record.n - 1].result); /* that was its end */
    record.items[record.n - 1].result = NULL;
    audit_fixture_check();
    TEST_INT(report.n_findings, 1);
    runs_again(2401);
    audit_fixture_check();
    CU_ASSERT(report.n_findings >= 1);
}

/* c was released by a sync, whose number is not logged. Redis is restored from older data, and bee reclaims c. */
static void released_and_restored(long released, long granted) {
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, released, "c", "db:1");
    record.items[record.n - 1].clock = 0;
    audit_fixture_grant(&bee, granted - 100, granted, "e", "db:1");
    audit_fixture_end(&bee, 2600, "e", "db:1");
    audit_fixture_reclaim(3000, "c");
}

static void test_restored(void) {
    released_and_restored(1000, 2500);
    audit_fixture_expect_proof();
    TEST_INT(report.n_unproved, 0);
    released_and_restored(2200, 1190);
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: c on ant");
}

/* berthd of ant is killed while e waits. bee is granted f: ant may have expired, if the reply about it was lost. */
static void test_away(void) {
    for (int i = 0; i < 3; i++) {
        audit_fixture_add_good_runs();
        audit_fixture_end(&ant, 1000, "c", "db:1");
        audit_fixture_add_event(&ant, 1101, "queued", "e", "db:1");
        record.items[record.n - 1].ticket = BASE + 1100 * USEC_PER_MSEC;
        audit_fixture_grant(&bee, 1200, 5000, "f", "db:1");
        audit_fixture_end(&bee, 5100, "f", "db:1");
        if (i != 1)
            audit_fixture_add_event(&bee, 5200, "redis-lost", NULL, NULL);
        if (i == 2)
            audit_fixture_add_event(&ant, 5900, "lease-late", NULL, NULL);
        restart(6000);
        audit_fixture_grant(&ant, 1100, 6100, "e", "db:1");
        if (i == 0)
            doubts(1, AUDIT_OVERTAKEN, "f", "granted before run e on ant, unless that host had expired");
        else /* no reply was lost; the berthd of ant lived */
            audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "granted before run e on ant");
    }
}

/* The guard of d died with the berthd of ant, and the lease of d ended. The next berthd finds only that d is over. */
static void test_noticed_later(void) {
    for (int i = 0; i < 2; i++) {
        audit_fixture_add_good_runs();
        audit_fixture_end(&ant, 1000, "c", "db:1");
        audit_fixture_grant(&ant, 1100, 1100, "d", "db:1");
        audit_fixture_add_event(&ant, 1103, "started", "d", "db:1");
        audit_fixture_grant(&bee, 1800, 5000, "e", "db:1");
        if (i == 0)
            restart(6000);
        audit_fixture_add_event(&ant, 6100, "exited", "d", "db:1");
        audit_fixture_set_token("d");
        record.items[record.n - 1].result = strdup("guard-died");
        audit_fixture_add_event(&ant, 6101, "released", "d", "db:1");
        audit_fixture_set_token("d");
        record.items[record.n - 1].clock = 0; /* Redis did not know it any more */
        if (i == 0)
            doubts(1, AUDIT_ABOVE_LIMIT, "e", "d on ant (its end was noticed later)");
        else
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
    }
}

/* The report counts more doubts than it lists. */
static void test_many(void) {
    static char names[AUDIT_DOUBTS_MAX + 10][16];

    killed_with_grant();
    for (size_t i = 0; i < ELEMENTSOF(names); i++) {
        snprintf(names[i], sizeof(names[i]), "e%zu", i);
        audit_fixture_grant(&bee, 1300 + 10 * (long) i, 1300 + 10 * (long) i, names[i], "db:1");
        audit_fixture_end(&bee, 1305 + 10 * (long) i, names[i], "db:1");
    }
    audit_fixture_expect_proof();
    TEST_INT(report.n_unproved, ELEMENTSOF(names));
    TEST_INT(report.n_doubts, AUDIT_DOUBTS_MAX);
    TEST_STRING(report.doubts[AUDIT_DOUBTS_MAX - 1].entry->run, "e99");
}

static CU_TestInfo tests[] = {{"withdrawn", test_withdrawn}, {"asked again", test_asked_again}, {"forgotten", test_forgotten},
                              {"expired, not logged", test_expiry_not_logged}, {"session-lost", test_session_lost}, {"many", test_many}, {"waits-again", test_waits_again},
                              {"restored", test_restored},
                              {"away", test_away}, {"noticed later", test_noticed_later}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "audit lost answers", .pCleanupFunc = audit_fixture_done, .pTests = tests});
