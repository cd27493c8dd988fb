/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/job.h"

#include "tests/harness/test.h"

static enum job_decision decide(enum job_overlap overlap, size_t n_runs, size_t n_queued) {
    struct job_triggers triggers = {.overlap = overlap, .backlog = 2};

    return job_decide(&triggers, n_runs, n_queued);
}

static void test_overlap(void) {
    TEST_INT(decide(JOB_OVERLAP_SKIP, 0, 0), JOB_DECISION_BEGIN);
    TEST_INT(decide(JOB_OVERLAP_SKIP, 1, 0), JOB_DECISION_SKIP);
    TEST_INT(decide(JOB_OVERLAP_ALLOW, 7, 0), JOB_DECISION_BEGIN);
    TEST_INT(decide(JOB_OVERLAP_QUEUE, 0, 0), JOB_DECISION_BEGIN);
    TEST_INT(decide(JOB_OVERLAP_QUEUE, 1, 1), JOB_DECISION_QUEUE);
    TEST_INT(decide(JOB_OVERLAP_QUEUE, 1, 2), JOB_DECISION_SKIP); /* no more than the backlog */
    TEST_INT(decide(JOB_OVERLAP_REPLACE, 0, 0), JOB_DECISION_BEGIN);
    TEST_INT(decide(JOB_OVERLAP_REPLACE, 1, 1), JOB_DECISION_REPLACE);
}

static void test_every(void) {
    const usec_t now = 1000 * USEC_PER_SEC, every = 60 * USEC_PER_SEC;
    struct job j = {};

    TEST_INT(job_next(&j, USEC_INFINITY, now) == USEC_INFINITY, 1);
    TEST_INT(job_next(&j, every, now), now); /* never ran */
    j.last_trigger_realtime = now - 20 * USEC_PER_SEC;
    TEST_INT(job_next(&j, every, now), now + 40 * USEC_PER_SEC);
    j.last_trigger_realtime = now - 61 * USEC_PER_SEC;
    TEST_INT(job_next(&j, every, now), now); /* one start, however many were missed */
    j.last_trigger_realtime = now + 3600 * USEC_PER_SEC;
    TEST_INT(job_next(&j, every, now), now); /* the clock was set back */
}

static CU_TestInfo tests[] = {
    {"overlap", test_overlap},
    {"every", test_every},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "job", .pTests = tests});
