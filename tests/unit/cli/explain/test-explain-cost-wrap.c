/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=calloc,--wrap=json_object_get,--wrap=json_array_get */

/* The work of `berth explain JOB` grows with the number of waiting runs, not with its square. Work is counted, not
 * timed: members and items of JSON that are looked at, and memory that is asked for, of which each play of the queues
 * needs some. */

#include <stdio.h>
#include <stdlib.h>

#include "base/explain/claims.h"
#include "base/explain/explained.h"
#include "tests/harness/test.h"

#define SHOWN 5
#define FEW 100
#define FACTOR 8
#define MARGIN 12 /* linear work is FACTOR times as much, quadratic work 64 times */

static size_t work;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) {
    work++;
    return __real_calloc(n, size);
}

json_t *__real_json_object_get(const json_t *object, const char *key);
json_t *__wrap_json_object_get(const json_t *object, const char *key);
json_t *__wrap_json_object_get(const json_t *object, const char *key) {
    work++;
    return __real_json_object_get(object, key);
}

json_t *__real_json_array_get(const json_t *array, size_t i);
json_t *__wrap_json_array_get(const json_t *array, size_t i);
json_t *__wrap_json_array_get(const json_t *array, size_t i) {
    work++;
    return __real_json_array_get(array, i);
}

static json_t *claim(size_t i, int position) {
    return json_pack("{s:o, s:s, s:s, s:i, s:i, s:i, s:s}", "claim", json_sprintf("%032zx", i), "host", "ant", "name",
                     "dump", "permits", 1, "position", position, "waiting_ms", 100000 - position, "since",
                     "2026-01-01T00:00:00Z");
}

/* Returns a pool with so many holders, and as many waiting claims, or parked ones. */
static json_t *make_pool(size_t n, bool parks) {
    json_t *holders = json_array(), *queue = json_array();

    for (size_t i = 0; i < n; i++) {
        json_array_append_new(holders, claim(i, 0));
        json_array_append_new(queue, claim(n + i, parks ? 0 : (int) i + 1));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "name", "db", "scope", "cluster", "limit",
                     parks ? 0 : (int) n, "used", (int) n, "waiting", (int) n, "holders", holders, "queue", queue);
}

static json_t *make_usual(void) {
    return json_pack("[{s:s, s:s, s:i, s:[i, i, i, i, i, i, i, i]}]", "host", "ant", "name", "dump", "runs", 64, "q_ms", 1,
                     2, 3, 4, 5, 6, 7, 8);
}

/* Returns the work of explaining the n waiting runs of a job. */
static size_t work_of(size_t n, bool parks, bool estimates) {
    json_t *pools = json_pack("[o]", make_pool(n, parks)), *runs = claims_as_runs(pools), *list = json_array();
    json_t *names = json_object(), *answer = json_pack("{s:O, s:o}", "pools", pools, "usual", make_usual()), *run;
    size_t i;

    json_array_foreach (runs, i, run)
        if (i < n) /* waiting ones come first */
            json_array_append_new(list, explained_new(run, "ant"));
    work = 0;
    TEST_INT(explained_add_pools(names, list, pools), 0);
    TEST_INT(explained_fill(list, answer, estimates, SHOWN), 0);
    run = json_array_get(list, n - 1);
    CU_ASSERT(!estimates || parks || json_is_object(json_object_get(run, "estimate")));
    i = work;
    json_decref(names);
    json_decref(list);
    json_decref(runs);
    json_decref(answer);
    json_decref(pools);
    return i;
}

static void expect_linear(bool parks, bool estimates) {
    size_t few = work_of(FEW, parks, estimates), many = work_of(FACTOR * FEW, parks, estimates);

    if (many >= MARGIN * few)
        printf("%d runs: %zu, %d runs: %zu\n", FEW, few, FACTOR * FEW, many);
    CU_ASSERT(many < MARGIN * few);
}

static void test_waiting(void) {
    expect_linear(false, false);
}

static void test_estimates(void) {
    expect_linear(false, true);
}

static void test_parked(void) {
    expect_linear(true, true);
}

static CU_TestInfo tests[] = {
    {"waiting", test_waiting}, {"estimates", test_estimates}, {"parked", test_parked}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "explain-cost", .pTests = tests});
