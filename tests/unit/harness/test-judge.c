/* SPDX-License-Identifier: MIT */

/* The judge of the fault suite finds each violation, and reports no other. Times are in seconds
 * here. */

#include "tests/harness/judge/judge.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

#define RUNS_MAX 8

static struct witness_run runs[RUNS_MAX];
static struct witness w;
static struct judge_wait waits[RUNS_MAX];
static struct judge_limit limits[2];
static struct judge j;
static struct judgement got;

static void begin(unsigned limit) {
    memset(runs, 0, sizeof(runs));
    w = (struct witness) {.runs = runs};
    limits[0] = (struct judge_limit) {.pool = "db", .limit = limit};
    j = (struct judge) {.w = &w, .limits = limits, .n_limits = 1, .waits = waits, .slack = USEC_PER_SEC};
}

/* Adds a run, in the order of starts. alive, gone: 0 means the end. */
static void run(const char *id, usec_t start, usec_t end, usec_t alive, usec_t gone) {
    struct witness_run *r = &runs[w.n++];

    snprintf(r->id, sizeof(r->id), "%s", id);
    CU_ASSERT(demands_parse("db:1", &r->pools) == 0);
    r->start = start * USEC_PER_SEC;
    r->end = end * USEC_PER_SEC;
    r->alive = (alive ? alive : end) * USEC_PER_SEC;
    r->gone = (gone ? gone : end) * USEC_PER_SEC;
}

static void waits_for_pools(const char *id, const char *pools, usec_t from, usec_t until, bool excused) {
    struct judge_wait *wait = &waits[j.n_waits++];

    *wait = (struct judge_wait) {.from = from * USEC_PER_SEC, .until = until * USEC_PER_SEC, .excused = excused};
    snprintf(wait->id, sizeof(wait->id), "%s", id);
    CU_ASSERT(demands_parse(pools, &wait->pools) == 0);
}

static void waits_for(const char *id, usec_t from, usec_t until, bool excused) {
    waits_for_pools(id, "db:1", from, until, excused);
}

static void test_overlap(void) {
    begin(1);
    run("a", 10, 20, 0, 0);
    run("b", 20, 30, 0, 0);
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 0);
    run("c", 25, 40, 0, 0);
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 1);
    TEST_INT(got.worst_overlap, 5 * USEC_PER_SEC);
    TEST_STRING(got.overlap, "c on  starts at 25000000: db has 2 in use by records, 0 by locks, limit 1, for 5000000 us; b on  from 20000000 "
                             "to 30000000");
}

/* An excuse counts by time and by token, for no other run. */
static void test_excused(void) {
    static const struct judge_excuse excuse = {.from = 20 * USEC_PER_SEC, .token = 7};

    begin(1);
    j.excuses = &excuse;
    j.n_excuses = 1;
    run("a", 10, 40, 0, 0);
    run("b", 20, 22, 0, 0);
    runs[1].token = 7;
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 0);
    TEST_INT(got.n_excused, 1);
    runs[1].token = 8; /* granted after the loss was known */
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 1);
    TEST_INT(got.n_excused, 0);
    runs[1].token = 7;
    runs[1].start--; /* before anything was forgotten */
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 1);
}

/* A killed run counts as long as it was seen alive, and no longer. */
static void test_killed(void) {
    begin(1);
    run("a", 10, 0, 15, 16);
    run("b", 16, 30, 0, 0);
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 0);
    runs[1].start = 14 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 1);
    TEST_INT(got.worst_overlap, 1 * USEC_PER_SEC);
}

/* The locks count, whatever the commands wrote. */
static void test_locks(void) {
    begin(1);
    run("a", 10, 20, 0, 0);
    CU_ASSERT(demands_parse("db:2", &runs[0].seen) == 0);
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 1);
}

static void test_limit_changes(void) {
    begin(2);
    run("a", 10, 40, 0, 0);
    run("b", 11, 40, 0, 0);
    limits[1] = (struct judge_limit) {.pool = "db", .limit = 1, .at = 20 * USEC_PER_SEC};
    j.n_limits = 2;
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 0); /* a lowered limit stops no run */
    run("c", 30, 31, 0, 0);
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 1); /* but no run may start */
}

static void test_doubled(void) {
    begin(3);
    run("a", 10, 20, 0, 0);
    run("a", 12, 20, 0, 0);
    judge(&j, &got);
    TEST_INT(got.n_doubled, 1);
}

static void test_idle(void) {
    begin(1);
    run("a", 10, 20, 0, 0);
    run("b", 27, 30, 0, 0);
    waits_for("b", 12, 27, false);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 7 * USEC_PER_SEC);
    TEST_STRING(got.idle, "b");
    waits[0].excused = true;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 0);
}

/* A claim ahead that could be granted itself waits, in another queue, behind one that could not. */
static void test_behind_who_waits_behind(void) {
    begin(2);
    limits[1] = (struct judge_limit) {.pool = "net", .limit = 1};
    j.n_limits = 2;
    run("a", 10, 20, 0, 0);
    run("b", 21, 30, 0, 0);
    waits_for_pools("wide", "db:2", 11, 21, true);
    waits_for_pools("both", "db:1,net:1", 12, 21, true);
    waits_for_pools("b", "net:1", 13, 21, false);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 1 * USEC_PER_SEC); /* from 20 on all could be served */
    waits[1].from = 14 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 8 * USEC_PER_SEC); /* it came later */
}

/* A claim that needs more than is free keeps those behind it waiting, whatever is broken; a claim above the limit does not. */
static void test_behind(void) {
    begin(2);
    run("a", 10, 20, 0, 0);
    run("b", 21, 30, 0, 0);
    waits_for_pools("first", "db:2", 11, 21, true);
    waits_for("b", 12, 21, false);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 1 * USEC_PER_SEC); /* from 20 on both could be served */
    waits[0].from = 13 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 9 * USEC_PER_SEC); /* it came later */
    waits[0].head_start = 5 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 1 * USEC_PER_SEC); /* and counts as if it had come earlier */
    CU_ASSERT(demands_parse("db:3", &waits[0].pools) == 0);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 9 * USEC_PER_SEC);
    CU_ASSERT(demands_parse("net:2", &waits[0].pools) == 0);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 9 * USEC_PER_SEC); /* another pool */
}

/* A broken claim ahead is no excuse where both could be granted. */
static void test_behind_broken(void) {
    begin(2);
    run("b", 27, 30, 0, 0);
    waits_for("first", 11, 40, true);
    waits_for("b", 12, 27, false);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 15 * USEC_PER_SEC);
    TEST_STRING(got.idle, "b");
}

/* Tickets decide which claim is first, once they are known. The times of the requests may suggest another
 * order. */
static void test_behind_by_ticket(void) {
    begin(2);
    run("a", 10, 20, 0, 0);
    run("b", 27, 30, 0, 0);
    waits_for_pools("first", "db:2", 14, 28, false);
    waits_for("b", 12, 27, false);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 15 * USEC_PER_SEC); /* by time it came before `first` */
    waits[0].ticket = 100;
    waits[0].ticketed = 14 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 15 * USEC_PER_SEC); /* one ticket alone proves nothing */
    waits[1].ticket = 101;
    waits[1].ticketed = 15 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 7 * USEC_PER_SEC); /* it was behind `first` until 20 */
    TEST_INT(got.idle_from, 20 * USEC_PER_SEC);
    waits[1].ticketed = 19 * USEC_PER_SEC; /* it did not know until then that it was second */
    waits[1].until = waits[0].until = runs[1].start = 21 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 7 * USEC_PER_SEC);
    TEST_INT(got.idle_from, 12 * USEC_PER_SEC);
    waits[1].ticketed = 13 * USEC_PER_SEC;
    waits[1].ticket = 99;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 9 * USEC_PER_SEC); /* it is first */
    waits[0].head_start = 5 * USEC_PER_SEC;
    waits[0].ticket = 100 + 5 * USEC_PER_SEC;
    waits[1].ticket = 101 + 0 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 2 * USEC_PER_SEC); /* a head start counts; until 14 nobody else was there */
}

static void has_numbers(size_t i, uint64_t ticket, uint64_t token) {
    waits[i].ticket = ticket;
    waits[i].token = token;
}

static void test_order(void) {
    begin(1);
    waits_for("a", 10, 20, false);
    waits_for("b", 10, 20, false);
    has_numbers(0, 1, 11);
    has_numbers(1, 2, 12);
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    has_numbers(0, 3, 11);
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 1);
    TEST_STRING(got.overtaken, "b (ticket 2, token 12) was overtaken by a (3, 11)");
    waits[0].head_start = 1;
    waits[0].ticket++;
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 1);
    waits[0].head_start = 3; /* the head start puts it there */
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    waits[0].head_start = 0;
    for (size_t i = 0; i < 2; i++) { /* what is broken proves nothing */
        waits[i].excused = true;
        judge(&j, &got);
        TEST_INT(got.n_overtaken, 0);
        waits[i].excused = false;
    }
    waits[1].displaced = true; /* its place is lost, but its wait counts */
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    waits[1].displaced = false;
    /* A claim that waits for more pools than the other can be overtaken, too. */
    CU_ASSERT(demands_parse("db:1,net:1", &waits[1].pools) == 0);
    limits[1] = (struct judge_limit) {.pool = "net", .limit = 1};
    j.n_limits = 2;
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 1);
    CU_ASSERT(demands_parse("net:1", &waits[1].pools) == 0);
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    CU_ASSERT(demands_parse("db:2", &waits[1].pools) == 0);
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0); /* more than the limit: the claim is parked */
    CU_ASSERT(demands_parse("db:1", &waits[1].pools) == 0);
    limits[1] = (struct judge_limit) {.pool = "db", .limit = 0, .at = 15 * USEC_PER_SEC}; /* for a while */
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    limits[1].at = 21 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 1);
    has_numbers(1, 12, 13);
    waits[1].head_start = 10; /* it is ahead now, and the other was granted before it was requested */
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
}

/* Tickets may be drawn in a wrong order. A claim requested long before another and granted long after it
 * was overtaken, whatever its ticket. */
static void test_order_outside(void) {
    begin(1);
    waits_for("a", 10, 20, false);
    waits_for("b", 12, 18, false);
    has_numbers(0, 2, 12);
    has_numbers(1, 1, 11);
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 1);
    waits[1].head_start = 2 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    waits[1].head_start = 0;
    waits[0].from = 11 * USEC_PER_SEC; /* a claim may take this long */
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    waits[0].from = 10 * USEC_PER_SEC;
    waits[0].until = 19 * USEC_PER_SEC; /* and starting */
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    waits[0].from = 18 * USEC_PER_SEC; /* a head start before the request overtakes no claim */
    waits[0].head_start = 10 * USEC_PER_SEC;
    has_numbers(0, 0, 0);
    waits[0].until = 21 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
}

static CU_TestInfo tests[] = {
    {"overlap", test_overlap}, {"excused", test_excused}, {"killed", test_killed},   {"locks", test_locks}, {"limit changes", test_limit_changes},
    {"doubled", test_doubled}, {"idle", test_idle},       {"order", test_order},
    {"behind a claim that is itself behind", test_behind_who_waits_behind},
    {"behind a claim", test_behind}, {"behind a broken claim", test_behind_broken},
    {"behind a claim by ticket", test_behind_by_ticket}, {"order from outside", test_order_outside}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "judge", .pTests = tests});
