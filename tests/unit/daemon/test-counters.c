/* SPDX-License-Identifier: MIT */

/* Counts of runs and pools, and their bounds. */

#include "daemon/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

static struct counters counters;
static struct demand_ref demand;

static void reset(void) {
    memset(&counters, 0, sizeof(counters));
    counters_start(&counters, 7);
}

/* A run with one demand of this pool, until the next call. */
static struct run *make_run(enum run_kind kind, const char *name, const char *pool) {
    struct run *run = calloc(1, sizeof(*run));

    CU_ASSERT_FATAL(run != NULL);
    run->kind = kind;
    run->name = name;
    run->n_demands = 1;
    demand.pool = pool;
    run->demands = &demand;
    return run;
}

static void finish(enum run_kind kind, const char *name, enum run_result result) {
    struct run *run = make_run(kind, name, "db");

    run->end.result = result;
    counters_finish(&counters, run);
    free(run);
}

static void test_jobs(void) {
    char name[16];

    reset();
    finish(RUN_KIND_ADHOC, "a", RUN_RESULT_SUCCESS);
    finish(RUN_KIND_JOB, "a", RUN_RESULT_FAILURE);
    finish(RUN_KIND_JOB, "a", RUN_RESULT_FAILURE);
    TEST_INT(counters.adhoc.finished[RUN_RESULT_SUCCESS], 1);
    TEST_STRING(counters.adhoc.name, "");
    TEST_INT(counters.n_jobs, 1);
    TEST_INT(counters.jobs[0].finished[RUN_RESULT_FAILURE], 2);
    for (int i = 0; i < 300; i++) {
        (void) snprintf(name, sizeof(name), "job%d", i);
        finish(RUN_KIND_JOB, name, RUN_RESULT_SUCCESS);
    }
    TEST_INT(counters.n_jobs, COUNTERS_JOBS_MAX);
    TEST_STRING(counters.others.name, "_other");
    TEST_INT(counters.others.finished[RUN_RESULT_SUCCESS], 300 - (COUNTERS_JOBS_MAX - 1));
    finish(RUN_KIND_JOB, "job1", RUN_RESULT_SUCCESS); /* job1 has a row already */
    TEST_INT(counters.others.finished[RUN_RESULT_SUCCESS], 300 - (COUNTERS_JOBS_MAX - 1));
}

/* Each job has runs with each result: the series are bounded, and no run is forgotten. */
static void test_results(void) {
    enum { EACH = 2 };
    uint64_t sum = 0, own = 0;
    char name[16];

    reset();
    for (int i = 0; i < EACH * COUNTERS_JOBS_MAX; i++)
        for (enum run_result result = RUN_RESULT_SUCCESS; result < RUN_RESULTS; result++) {
            (void) snprintf(name, sizeof(name), "job%d", i % COUNTERS_JOBS_MAX);
            finish(RUN_KIND_JOB, name, result);
        }
    for (enum run_result result = RUN_RESULT_SUCCESS; result < RUN_RESULTS; result++) {
        for (size_t i = 0; i < counters.n_jobs; i++) {
            sum += counters.jobs[i].finished[result];
            own += counters.jobs[i].finished[result] > 0;
        }
        sum += counters.others.finished[result];
    }
    TEST_INT(own, COUNTERS_RESULTS_MAX);
    TEST_INT(sum, EACH * COUNTERS_JOBS_MAX * (RUN_RESULTS - RUN_RESULT_SUCCESS));
    TEST_INT(counters.jobs[0].finished[RUN_RESULT_SUCCESS], EACH); /* a series stays one */
    finish(RUN_KIND_ADHOC, "a", RUN_RESULT_TIMEOUT);
    TEST_INT(counters.adhoc.finished[RUN_RESULT_TIMEOUT], 1);
}

static void wait_for(const char *pool, usec_t usec) {
    struct run *run = make_run(RUN_KIND_ADHOC, "a", pool);

    counters_wait(&counters, run, usec);
    free(run);
}

static void test_pools(void) {
    char name[16];

    reset();
    wait_for("@report", 1); /* of a job */
    TEST_INT(counters.n_pools, 0);
    wait_for("tenant/acme", 1);
    wait_for("tenant/b", 1);
    TEST_INT(counters.n_pools, 1);
    TEST_STRING(counters.pools[0].name, "tenant/*");
    TEST_INT(counters.pools[0].wait.counts[0], 2);
    TEST_INT(counters.pools[0].hold.counts[0], 0);
    for (int i = 0; i < 100; i++) {
        (void) snprintf(name, sizeof(name), "pool%d", i);
        wait_for(name, 1);
    }
    TEST_INT(counters.n_pools, COUNTERS_POOLS_MAX);
}

/* A bucket includes its upper bound. */
static void test_buckets(void) {
    const struct histogram *h = &counters.pools[0].wait;

    reset();
    wait_for("db", 0);
    wait_for("db", 10 * USEC_PER_MSEC);
    wait_for("db", 10 * USEC_PER_MSEC + 1);
    wait_for("db", 86400 * USEC_PER_SEC);
    wait_for("db", 86400 * USEC_PER_SEC + 1);
    TEST_INT(h->counts[0], 2);
    TEST_INT(h->counts[1], 1);
    TEST_INT(h->counts[11], 1);
    TEST_INT(h->counts[12], 1);
    CU_ASSERT(h->sum_usec == 2 * 86400 * USEC_PER_SEC + 20 * USEC_PER_MSEC + 2);
}

static void test_refusals(void) {
    for (enum counters_refusal i = 0; i < COUNTERS_REFUSALS; i++)
        TEST_INT(counters_refusal_parse(counters_refusal_name(i)), i);
    TEST_INT(counters_refusal_parse("no-memory: the memory of Redis at a is full"), COUNTERS_REFUSAL_NO_MEMORY);
    TEST_INT(counters_refusal_parse("busybody"), COUNTERS_REFUSAL_OTHER);
    TEST_INT(counters_refusal_parse("grace"), COUNTERS_REFUSAL_OTHER);
}

static void test_reload(void) {
    reset();
    counters_reload(&counters, true, 8);
    CU_ASSERT(counters.is_refused && counters.loaded_realtime == 7);
    counters_reload(&counters, false, 9);
    CU_ASSERT(!counters.is_refused && counters.loaded_realtime == 9 && counters.started_realtime == 7);
}

static CU_TestInfo tests[] = {
    {"256 jobs, then _other", test_jobs},
    {"2048 results of jobs, then _other", test_results},
    {"64 pools, no keys, no pools of jobs", test_pools},
    {"buckets", test_buckets},
    {"refusals", test_refusals},
    {"reloads", test_reload},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "counters", .pTests = tests});
