/* SPDX-License-Identifier: MIT */

/* The judge of the fault suite: it sees what is wrong, and nothing where nothing is. Times are in seconds here. */

#include "tests/harness/judge.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

#define RUNS_MAX 8

static struct witness_run runs[RUNS_MAX];
static struct witness w;
static struct judge_wait waits[RUNS_MAX];
static struct judge_order orders[RUNS_MAX];
static struct judge_limit limits[2];
static struct judge j;
static struct judgement got;

static void begin(unsigned limit) {
    memset(runs, 0, sizeof(runs));
    w = (struct witness) {.runs = runs};
    limits[0] = (struct judge_limit) {.pool = "db", .limit = limit};
    j = (struct judge) {.w = &w, .limits = limits, .n_limits = 1, .waits = waits, .orders = orders, .slack = USEC_PER_SEC};
}

/* In the order of their starts. alive, gone: 0: as end. */
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
}

/* One that was killed counts as long as it was seen alive, and no longer. */
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

/* What the locks show counts, whatever was written. */
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
    TEST_INT(got.n_overlaps, 0); /* a lowered limit kills nobody */
    run("c", 30, 31, 0, 0);
    judge(&j, &got);
    TEST_INT(got.n_overlaps, 1); /* but nobody is let in */
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

/* One ahead who needs more than there is keeps those behind him waiting, whatever is broken; but not whoever wants more than the limit. */
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
    TEST_INT(got.longest_idle, 9 * USEC_PER_SEC); /* he came later */
    waits[0].head_start = 5 * USEC_PER_SEC;
    judge(&j, &got);
    TEST_INT(got.longest_idle, 1 * USEC_PER_SEC); /* and counts as if he had come earlier */
    CU_ASSERT(demands_parse("db:3", &waits[0].pools) == 0);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 9 * USEC_PER_SEC);
    CU_ASSERT(demands_parse("net:2", &waits[0].pools) == 0);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 9 * USEC_PER_SEC); /* another pool */
}

/* Not only the first in line is looked at: whoever is ahead and broken, but has what he wants, is no excuse. */
static void test_behind_broken(void) {
    begin(2);
    run("b", 27, 30, 0, 0);
    waits_for("first", 11, 40, true);
    waits_for("b", 12, 27, false);
    judge(&j, &got);
    TEST_INT(got.longest_idle, 15 * USEC_PER_SEC);
    TEST_STRING(got.idle, "b");
}

static void test_order(void) {
    begin(1);
    orders[0] = (struct judge_order) {.pools = "db:1", .ticket = 1, .token = 11};
    orders[1] = (struct judge_order) {.pools = "db:1", .ticket = 2, .token = 12};
    j.n_orders = 2;
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 0);
    orders[0].ticket = 3;
    judge(&j, &got);
    TEST_INT(got.n_overtaken, 1);
}

static CU_TestInfo tests[] = {
    {"overlap", test_overlap}, {"killed", test_killed},   {"locks", test_locks}, {"limit changes", test_limit_changes},
    {"doubled", test_doubled}, {"idle", test_idle},       {"order", test_order},
    {"behind somebody", test_behind}, {"behind somebody broken", test_behind_broken}, CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "judge", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
