/* SPDX-License-Identifier: MIT */
/* The audit on logs that a test makes up: order of grants, tokens, and runs that claim again or continue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

static void test_order(void) {
    /* e claimed first and was granted last */
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "granted before run e on ant");
    /* No excuse: the session lived, and e kept its place in the queue. */
    audit_fixture_add_event(&ant, 1250, "redis-lost", NULL, NULL);
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    audit_fixture_add_event(&ant, 1260, "session-lost", NULL, NULL);
    record.items[record.n - 1].clock = BASE + 1240 * USEC_PER_MSEC;
    audit_fixture_expect_proof();
    TEST_INT(report.n_explained, 1);
    audit_fixture_declare(&ant, 1300, "redis-connected", "db:1/declared"); /* it was back before f was granted */
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    /* f counts as if it had already waited */
    audit_fixture_add_good_runs();
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    record.items[record.n - 1].asked.head_start_ms = 150;
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 4].asked.head_start_ms = 50;
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    /* e was withdrawn after it had been overtaken */
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 1201, "queued", "e", "db:1");
    record.items[record.n - 1].ticket = BASE + 1200 * USEC_PER_MSEC;
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_add_event(&ant, 1800, "withdrawn", "e", "db:1");
    record.items[record.n - 1].clock = BASE + 1700 * USEC_PER_MSEC;
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
    record.items[record.n - 1].clock = BASE + 1500 * USEC_PER_MSEC; /* no entry shows that it waited longer */
    audit_fixture_expect_proof();
    /* parked: the limit was below e's permits */
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
    /* parked for the first grant, and in the queue again before the second one */
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 1, "limit-changed", "db:2/declared");
    audit_fixture_declare(&ant, 1199, "limit-changed", "db:1");
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_end(&bee, 1550, "f", "db:1");
    audit_fixture_declare(&ant, 1600, "limit-changed", "db:-");
    audit_fixture_grant(&bee, 1310, 1650, "g", "db:1");
    audit_fixture_end(&bee, 1700, "g", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:2");
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "g", "run e");
    TEST_INT(report.n_explained, 1);
    /* other pools are other queues */
    audit_fixture_add_good_runs();
    audit_fixture_declare(&ant, 1200, "limit-changed", "net:1/declared");
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "net:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_proof();
}

/* d was granted when its host had given up its session, which released the grant; then it claimed again. Its
 * first ticket is not logged, so no entry shows that it overtook e. */
static void test_claimed_again(void) {
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
    record.items[record.n - 1].ticket = BASE + 1190 * USEC_PER_MSEC; /* the ticket of its first grant */
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "d", "granted before run e on bee");
}

/* An expired host is in no queue until it is back. After Redis lost its data, no host is. */
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
    /* Claims made after its return are in the queue. */
    audit_fixture_add_good_runs();
    audit_fixture_add_event(&ant, 1000, "session-lost", NULL, NULL);
    audit_fixture_declare(&ant, 1050, "redis-connected", "db:1/declared");
    audit_fixture_end(&ant, 1500, "c", "db:1");
    audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
    audit_fixture_end(&bee, 2000, "f", "db:1");
    audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
}

/* A host that connects receives the end of grace before Redis has its claims. */
static void test_absent_after_grace(void) {
    for (int connected = 0; connected < 2; connected++)
        for (int by_bee = 0; by_bee < 2; by_bee++) {
            audit_fixture_add_good_runs();
            audit_fixture_add_event(&ant, 1230, "redis-lost", NULL, NULL);
            audit_fixture_add_event(by_bee ? &bee : &ant, 1260, by_bee ? "grace-begun" : "session-lost", NULL, NULL);
            record.items[record.n - 1].clock = BASE + 1240 * USEC_PER_MSEC;
            if (connected)
                audit_fixture_declare(&ant, 1340, "redis-connected", "db:1/declared");
            audit_fixture_add_event(&ant, 1350, "grace-ended", NULL, NULL);
            audit_fixture_end(&ant, 1500, "c", "db:1");
            audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
            audit_fixture_declare(&ant, 1600, "redis-connected", "db:1/declared");
            audit_fixture_end(&bee, 2000, "f", "db:1");
            audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
            if (connected)
                audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
            else
                audit_fixture_expect_proof();
        }
}

/* Redis loses its data after ant has connected for the last time. While the namespace's clock leads, the times leave it
 * open which was first; the numbers that both berthds log show it. */
static void test_absent_while_ahead(void) {
    for (int is_back = 0; is_back < 2; is_back++) {
        audit_fixture_add_good_runs();
        audit_fixture_grant(&bee, 500, 500, "x", "own:1");
        record.items[record.n - 1].took.lead_ms = 150;
        audit_fixture_declare(&ant, 1240, "redis-connected", "db:1/declared");
        record.items[record.n - 1].clock = BASE + (is_back ? 1251 : 1249) * USEC_PER_MSEC;
        audit_fixture_add_event(&bee, 1250, "grace-begun", NULL, NULL);
        record.items[record.n - 1].clock = BASE + 1249 * USEC_PER_MSEC;
        audit_fixture_end(&ant, 1500, "c", "db:1");
        audit_fixture_grant(&bee, 1300, 1501, "f", "db:1");
        audit_fixture_end(&bee, 2000, "f", "db:1");
        audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
        if (is_back)
            audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
        else
            audit_fixture_expect_proof();
    }
}

/* While no berthd ran on ant, Redis granted e and lost that. The next berthd claims again. Without a loss of data e has
 * waited. */
static void test_granted_unseen(void) {
    for (int lost = 0; lost < 2; lost++) {
        const char *first = ant.process;

        audit_fixture_add_good_runs();
        audit_fixture_end(&ant, 1300, "c", "db:1");
        audit_fixture_grant(&bee, 1250, 1501, "f", "db:1");
        ant.process = "ant.next", ant.seq = 0;
        audit_fixture_limits(&ant, 1650, "ready", "own:1/host");
        if (lost)
            audit_fixture_add_event(&ant, 1660, "grace-begun", NULL, NULL);
        audit_fixture_declare(&ant, 1670, "redis-connected", "db:1/declared");
        audit_fixture_end(&bee, 2000, "f", "db:1");
        audit_fixture_grant(&ant, 1200, 2001, "e", "db:1");
        if (lost)
            audit_fixture_expect_proof();
        else
            audit_fixture_expect_violation(AUDIT_OVERTAKEN, "f", "run e");
        ant.process = first;
    }
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
    /* A token below one that was granted before this run claimed. */
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "db:9/declared");
    audit_fixture_up(&bee, 0, "db:9/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "db:1");
    audit_fixture_grant(&ant, 3000, 3000, "b", "db:1");
    audit_fixture_grant(&bee, 200, 200, "x", "db:1");
    audit_fixture_grant(&bee, 1000, 1000, "c", "db:1");
    audit_fixture_expect_proof();
    record.items[record.n - 1].time += 5 * USEC_PER_SEC; /* logged late: no violation */
    record.items[record.n - 1].took.wait_ms += 5000;
    audit_fixture_expect_proof();
    record.items[record.n - 1].took.wait_ms = 10; /* but it claimed at 6 s */
    record.items[record.n - 1].ticket--;
    audit_fixture_expect_violation(AUDIT_TOKEN_ORDER, "c", "of run b");
}

/* While the namespace's clock leads, x is granted with a token that is ahead of the time of Redis. Later it does not
 * lead: ant's grant follows that of bee, whose clock is right. */
static void test_tokens_ahead(void) {
    struct entry *x;

    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "db:9/declared");
    audit_fixture_up(&bee, 0, "db:9/declared");
    audit_fixture_grant(&bee, 1000, 1000, "x", "db:1");
    x = &record.items[record.n - 1];
    x->token = x->ticket += 150 * USEC_PER_MSEC;
    x->took.lead_ms = 150;
    audit_fixture_grant(&bee, 4990, 5000, "b", "db:1");
    audit_fixture_grant(&ant, 5002, 5002, "a", "db:1");
    audit_fixture_expect_proof();
    TEST_INT(report.doubt / USEC_PER_MSEC, 2);
    x = &record.items[record.n - 2]; /* a lower token than that of a, though claimed later */
    x->time += 100 * USEC_PER_MSEC;
    audit_fixture_expect_violation(AUDIT_TOKEN_ORDER, "b", "of run a");
}

/* A run goes on after its lease was lost and others have its permits: intended with `continue`, otherwise
 * a violation. */
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
    /* The run gets permits again under a new token, beyond the limit. Nothing is granted until use is
     * below the limit. */
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

/* ant's lease was lost, and c's processes were gone at 3000. Then d was granted c's permit, but d's host
 * did not receive the grant. The reclaim of d is logged at 4000, with a token of 2500. That is no
 * violation if Redis's clock was set back by a second. */
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
        if (i == 1) { /* it was logged while they still existed */
            audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "held before: c on ant");
            continue;
        }
        audit_fixture_expect_proof();
        TEST_INT(report.n_unproved, 1);
        CU_ASSERT(report.n_doubts == 1 && strstr(report.doubts[0].text, "c on ant (its permits were reclaimed"));
    }
}

static CU_TestInfo tests[] = {{"order", test_order},         {"claimed again", test_claimed_again},
                              {"absent", test_absent}, {"absent while the clock leads", test_absent_while_ahead}, {"absent after grace", test_absent_after_grace},       {"granted unseen", test_granted_unseen},
                              {"tokens", test_tokens},       {"tokens ahead", test_tokens_ahead},
                              {"continue", test_continue},   {"set back", test_set_back},
                              CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "audit order", .pCleanupFunc = audit_fixture_done, .pTests = tests});
