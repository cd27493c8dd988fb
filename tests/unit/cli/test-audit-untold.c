/* SPDX-License-Identifier: MIT */
/* The audit on records of hosts that were killed, or lost an answer: what nobody can have told is no violation, and
 * excuses nothing else. */
#include <stdio.h>
#include <string.h>

#include "tests/harness/made-record.h"
#include "tests/harness/test.h"

/* berthd of ant is killed, and there again in the same boot. */
static void restart(long msec) {
    ant = (struct writer) {"ant", "ant/2", "boot-a1", 0, 0};
    up(&ant, msec, "db:1/declared");
}

/* Each one is named, with what would explain it. */
static void doubts(size_t n, enum audit_kind kind, const char *run, const char *text) {
    proves();
    TEST_INT(report.n_unproved, n);
    TEST_INT(report.n_doubts, n);
    if (report.n_doubts == 0)
        return;
    TEST_STRING(audit_kind_name(report.doubts[0].kind), audit_kind_name(kind));
    TEST_STRING(report.doubts[0].entry->run, run);
    if (!strstr(report.doubts[0].text, text))
        TEST_STRING(report.doubts[0].text, text);
}

/* d is granted to ant and its berthd killed before the start. */
static void killed_with_grant(void) {
    good_record();
    over(&ant, 1000, "c", "db:1");
    grant(&ant, 1100, 1100, "d", "db:1");
    restart(1200);
}

static void test_withdrawn(void) {
    struct entry e;

    killed_with_grant();
    say(&ant, 1300, "withdrawn", "d", "db:1");
    grant(&bee, 1250, 1301, "e", "db:1");
    proves();
    record.items[record.n - 1].token = BASE + 1150 * USEC_PER_MSEC; /* not before that berthd was there */
    record.items[record.n - 1].ticket = BASE + 1149 * USEC_PER_MSEC;
    finds(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
    /* Not if that one was granted it anew. */
    killed_with_grant();
    grant(&ant, 1100, 1100, "d", "db:1");
    say(&ant, 1300, "withdrawn", "d", "db:1");
    finds(AUDIT_DIFFERS, "d", "cannot have been withdrawn");
    /* Given back in order, too. */
    killed_with_grant();
    say(&ant, 1300, "withdrawn", "d", "db:1");
    say(&ant, 1301, "released", "d", "db:1");
    of_grant("d");
    record.items[record.n - 1].clock = BASE + 1300 * USEC_PER_MSEC;
    proves();
    /* What had started cannot have waited. */
    good_record();
    restart(1200);
    say(&ant, 1300, "withdrawn", "c", "db:1");
    finds(AUDIT_DIFFERS, "c", "cannot have been withdrawn");
    /* Nor is it withdrawn by who granted it (test-audit.c has one that ran). */
    good_record();
    over(&ant, 1000, "c", "db:1");
    grant(&ant, 1100, 1100, "d", "db:1");
    e = entry(&ant, 1300, "withdrawn", "d", "db:1");
    add(&e);
    finds(AUDIT_DIFFERS, "d", "cannot have been withdrawn");
}

static void test_asked_anew(void) {
    killed_with_grant();
    grant(&bee, 1201, 1201, "e", "db:1");
    over(&bee, 1400, "e", "db:1");
    grant(&ant, 1250, 1401, "d", "db:1"); /* another ticket and token */
    say(&ant, 1403, "started", "d", "db:1");
    record.items[record.n - 1].ticket = BASE + 1250 * USEC_PER_MSEC;
    record.items[record.n - 1].token = BASE + 1401 * USEC_PER_MSEC;
    proves();
    record.items[record.n - 1].ticket++;
    finds(AUDIT_DIFFERS, "d", "BERTH_TICKET");
    record.items[record.n - 1].ticket--;
    /* The limit holds for it as for everybody. */
    grant(&bee, 1450, 1450, "f", "db:1");
    finds(AUDIT_ABOVE_LIMIT, "f", "held before: d on ant");
    killed_with_grant();
    grant(&bee, 1301, 1301, "e", "db:1");
    grant(&ant, 1250, 1401, "d", "db:1");
    finds(AUDIT_ABOVE_LIMIT, "d", "held before: e on bee");
}

/* Nobody knows of d any more: `berth run` may have its hold still, so it is not proved; and what does not need that is not excused. */
static void test_forgotten(void) {
    killed_with_grant();
    proves();
    TEST_INT(report.n_unproved, 0);
    grant(&bee, 1250, 1301, "e", "db:1");
    doubts(1, AUDIT_ABOVE_LIMIT, "e",
           "its limit is 1, unless these were over: d on ant (its berthd was killed, and the next one knew nothing of it)");
    options.since = BASE + 1400 * USEC_PER_MSEC; /* of what was before nothing is asked */
    proves();
    TEST_INT(report.n_unproved, 0);
    options.since = 0;
    grant(&bee, 1310, 1311, "f", "db:1");
    finds(AUDIT_ABOVE_LIMIT, "f", "held before: d on ant, e on bee");
    /* It ran, as is told when it is over: then it counts. */
    killed_with_grant();
    grant(&bee, 1250, 1301, "e", "db:1");
    over(&ant, 2000, "d", "db:1");
    finds(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
    /* Not before the next berthd was there. */
    killed_with_grant();
    grant(&bee, 1149, 1150, "e", "db:1");
    finds(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
}

/* ant is heard of no more; whoever took it for dead did not hear of that, either. */
static void test_expired_unheard(void) {
    good_record();
    grant(&bee, 30000, 40000, "d", "db:1");
    finds(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant"); /* nobody lost an answer */
    say(&bee, 35000, "redis-lost", NULL, NULL);
    doubts(1, AUDIT_ABOVE_LIMIT, "d", "c on ant (its host is silent since, and whoever took it for dead may not have heard of it)");
    record.items[record.n - 1].time = BASE + 800 * USEC_PER_MSEC; /* when ant was there still */
    finds(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
    record.items[record.n - 1].time = BASE + 35000 * USEC_PER_MSEC;
    say(&ant, 50000, "lease-late", NULL, NULL); /* it lives */
    finds(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
    /* Booted anew: nothing of it runs, and that nobody told that it was given back is no wonder. */
    good_record();
    say(&bee, 35000, "redis-lost", NULL, NULL);
    grant(&bee, 30000, 40000, "d", "db:1");
    ant = (struct writer) {"ant", "ant/2", "boot-a2", 0, 0};
    up(&ant, 100000, "db:1/declared");
    doubts(2, AUDIT_NOT_ENDED, "c", "nothing tells that its permits were reclaimed: its host is silent since");
    /* A berthd that was killed heard nothing, either; one that was stopped in order did. */
    for (int i = 0; i < 2; i++) {
        good_record();
        if (i == 1)
            say(&bee, 34000, "stopping-daemon", NULL, NULL);
        bee = (struct writer) {"bee", "bee/2", "boot-b1", 0, 0};
        up(&bee, 35000, "db:1/declared");
        grant(&bee, 36000, 40000, "d", "db:1");
        if (i == 0)
            proves();
        else
            finds(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
        TEST_INT(report.n_unproved, i == 0);
    }
}

/* ant hears that its session is over; d never started, and is told to be over only later. */
static void test_session_lost(void) {
    for (int i = 0; i < 3; i++) {
        good_record();
        over(&ant, 1000, "c", "db:1");
        grant(&ant, 1100, 1100, "d", "db:1");
        if (i == 1)
            say(&ant, 1103, "started", "d", "db:1");
        say(&ant, 2000, i == 2 ? "lease-late" : "session-lost", NULL, NULL);
        record.items[record.n - 1].clock = BASE + 1900 * USEC_PER_MSEC;
        grant(&bee, 1800, 2100, "e", "db:1");
        say(&ant, 2500, "exited", "d", "db:1");
        of_grant("d");
        if (i == 0)
            doubts(1, AUDIT_ABOVE_LIMIT, "e", "d on ant (its host's session was lost before the start)");
        else /* its processes were there; or its session was */
            finds(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
        TEST_INT(report.n_unproved, i == 0);
    }
}

/* d gave back what it was granted, and could not begin: it waits again, with its ticket. */
static void given_back(long msec, bool has_clock) {
    good_record();
    over(&ant, 1000, "c", "db:1");
    grant(&ant, 1100, 1100, "d", "db:1");
    say(&ant, msec + 1, "released", "d", "db:1");
    of_grant("d");
    record.items[record.n - 1].result = strdup("not-started");
    record.items[record.n - 1].clock = has_clock ? BASE + (usec_t) msec * USEC_PER_MSEC : 0;
}

static void runs_again(long granted) {
    grant(&bee, 1190, 2001, "e", "db:1");
    over(&bee, 2400, "e", "db:1");
    grant(&ant, 1100, granted, "d", "db:1");
    say(&ant, granted + 2, "started", "d", "db:1");
}

static void test_waits_again(void) {
    for (int has_clock = 0; has_clock < 2; has_clock++) {
        given_back(1200, has_clock);
        proves(); /* it waits */
        runs_again(2401);
        proves();
        over(&ant, 3000, "d", "db:1");
        proves();
        TEST_INT(report.n_unproved, 0);
        given_back(1200, has_clock);
        runs_again(2300);
        finds(AUDIT_ABOVE_LIMIT, "d", "held before: e on bee");
        given_back(2200, has_clock);
        runs_again(2401);
        finds(AUDIT_ABOVE_LIMIT, "e", "held before: d on ant");
        given_back(1200, has_clock);
        say(&ant, 1300, "withdrawn", "d", "db:1");
        proves();
    }
    given_back(1200, true);
    free(record.items[record.n - 1].result); /* it was its end */
    record.items[record.n - 1].result = NULL;
    check();
    TEST_INT(report.n_findings, 1);
    runs_again(2401);
    check();
    CU_ASSERT(report.n_findings >= 1);
}

/* So many that they are not all named. */
static void test_many(void) {
    static char names[AUDIT_DOUBTS_MAX + 10][16];

    killed_with_grant();
    for (size_t i = 0; i < ELEMENTSOF(names); i++) {
        snprintf(names[i], sizeof(names[i]), "e%zu", i);
        grant(&bee, 1300 + 10 * (long) i, 1300 + 10 * (long) i, names[i], "db:1");
        over(&bee, 1305 + 10 * (long) i, names[i], "db:1");
    }
    proves();
    TEST_INT(report.n_unproved, ELEMENTSOF(names));
    TEST_INT(report.n_doubts, AUDIT_DOUBTS_MAX);
    TEST_STRING(report.doubts[AUDIT_DOUBTS_MAX - 1].entry->run, "e99");
}

static CU_TestInfo tests[] = {{"withdrawn", test_withdrawn}, {"asked-anew", test_asked_anew}, {"forgotten", test_forgotten},
                              {"expired-unheard", test_expired_unheard}, {"session-lost", test_session_lost}, {"many", test_many}, {"waits-again", test_waits_again}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "audit-untold", .pCleanupFunc = record_forget, .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
