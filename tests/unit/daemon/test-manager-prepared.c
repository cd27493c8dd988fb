/* SPDX-License-Identifier: MIT */

/* Which runs are prepared, and that each granted run starts even if its prepared guard fails. */

#include <errno.h>
#include <string.h>

#include "daemon/executor/runner-link.h"
#include "daemon/runs/near.h"
#include "daemon/runs/run.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

static bool has_prepared(void *n) {
    return manager_bed.n_prepared >= *(unsigned *) n;
}

static bool await_prepared(unsigned n) {
    return manager_bed_await(has_prepared, &n);
}

static struct run *first;

/* Returns a run that waits behind `first`, and which the runner was asked to prepare. */
static struct run *begin_waiting(void) {
    struct run *r;

    manager_bed.n_prepared = manager_bed.n_granted = 0;
    manager_bed.grant_error = manager_bed.guard_error = 0;
    first = manager_bed_run("one");
    r = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_waiting(r));
    CU_ASSERT(await_prepared(1));
    manager_bed.n_started = 0;
    return r;
}

/* Sends the runner's reply to `prepare`. Returns the connection to the guard. */
static struct guard_link *prepared(const struct run *r) {
    size_t before = manager_bed.n_guards;

    manager_bed_prepared(r);
    TEST_INT(manager_bed.n_guards, before + 1);
    return manager_bed_guard();
}

/* Ends `first` through its own guard, because the newest guard may be that of a waiting run. */
static void end_first(void) {
    struct message report;

    manager_bed_make_report(&report, first, "code", 0, "none");
    for (size_t i = 0; i < ELEMENTSOF(manager_bed.guards); i++) {
        struct guard_link *g = manager_bed.guards[i];

        if (g && strcmp(g->run, first->id) == 0) {
            g->handler.on_report(g, &report, g->handler.userdata);
            return;
        }
    }
    CU_FAIL("the first run has no guard");
}

static void grant(struct run *r) {
    end_first();
    CU_ASSERT(manager_bed_await_starting(r));
}

static void report_started(struct run *r, struct guard_link *guard) {
    struct message state;

    manager_bed_make_state(&state, r);
    manager_bed_guard_state(guard, &state);
    TEST_INT(r->state, RUN_STATE_RUNNING);
}

static void check_runs(struct run *r, struct guard_link *guard) {
    report_started(r, guard);
    manager_bed_guard_report(r, "code", 0, "none");
    TEST_INT(r->end.result, RUN_RESULT_SUCCESS);
    CU_ASSERT(manager_bed_await_released(r));
}

/* Checks that the runner starts the run as if it had not been prepared. */
static void check_started_otherwise(struct run *r) {
    CU_ASSERT(manager_bed_await_starts(1));
    TEST_INT(manager_bed.n_started, 1);
    manager_bed_started(r);
    check_runs(r, manager_bed_guard());
}

static void test_granted(void) {
    struct run *r = begin_waiting();
    struct guard_link *guard = prepared(r);

    TEST_INT(manager_bed.n_granted, 0);
    CU_ASSERT_PTR_NULL(r->job.guard);
    grant(r);
    TEST_INT(manager_bed.n_granted, 1);
    TEST_INT(manager_bed.n_started, 0);
    CU_ASSERT_PTR_EQUAL(r->job.guard, guard);
    check_runs(r, guard);
}

/* The runner's answer comes after the grant. */
static void test_granted_before(void) {
    struct run *r = begin_waiting();
    struct guard_link *guard;

    grant(r);
    TEST_INT(manager_bed.n_started, 0);
    guard = prepared(r);
    TEST_INT(manager_bed.n_granted, 1);
    check_runs(r, guard);
}

static void test_refused(void) {
    struct run *r = begin_waiting();

    manager_bed_refused(r, "too-many-runs");
    TEST_INT(r->state, RUN_STATE_WAITING);
    grant(r);
    check_started_otherwise(r);

    r = begin_waiting();
    grant(r);
    TEST_INT(manager_bed.n_started, 0);
    manager_bed_refused(r, "resources");
    check_started_otherwise(r);
}

static void test_guard_gone(void) {
    struct run *r = begin_waiting();

    manager_bed_guard_gone(prepared(r));
    TEST_INT(r->state, RUN_STATE_WAITING);
    TEST_INT(manager_bed.n_killed, 0);
    manager_bed.guard_error = 0;
    grant(r);
    check_started_otherwise(r);
}

/* The guard may have died before it read the grant; the runner finds out. */
static void test_gone_after_grant(void) {
    struct run *r = begin_waiting();
    struct guard_link *guard = prepared(r);

    grant(r);
    TEST_INT(manager_bed.n_started, 0);
    manager_bed_guard_gone(guard);
    manager_bed.guard_error = 0;
    check_started_otherwise(r);
}

static void test_cannot_send(void) {
    struct run *r = begin_waiting();

    (void) prepared(r);
    manager_bed.grant_error = -EAGAIN;
    grant(r);
    manager_bed.grant_error = 0;
    check_started_otherwise(r);
}

static void test_cannot_connect(void) {
    struct run *r = begin_waiting();

    manager_bed.guard_error = -ECONNREFUSED;
    manager_bed_prepared(r);
    manager_bed.guard_error = 0;
    grant(r);
    check_started_otherwise(r);
}

static bool has_no_guard_of(void *id) {
    for (size_t i = 0; i < ELEMENTSOF(manager_bed.guards); i++)
        if (manager_bed.guards[i] && strcmp(manager_bed.guards[i]->run, id) == 0)
            return false;
    return true;
}

/* A stop closes the connection to the prepared guard, which ends with it. */
static void test_stopped(void) {
    struct run *r = begin_waiting();
    char id[ID_TEXT_SIZE];

    (void) prepared(r);
    memcpy(id, r->id, sizeof(id));
    manager_stop_run(r, "stopped");
    CU_ASSERT(manager_bed_await_over(r));
    CU_ASSERT(manager_bed_await(has_no_guard_of, id));
    TEST_INT(manager_bed.n_granted, 0);
    TEST_INT(manager_bed.n_killed, 0);

    r = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_waiting(r));
    CU_ASSERT(await_prepared(2));
    memcpy(id, r->id, sizeof(id));
    manager_stop_run(r, "stopped"); /* before the runner has answered */
    manager_bed_turn();
    manager_bed_prepared(r);
    CU_ASSERT(has_no_guard_of(id));
    end_first();
    CU_ASSERT(manager_bed_await_released(first));
}

/* A run that is stopped between its grant and the runner's reply does not begin. */
static void test_stopped_granted(void) {
    struct run *r = begin_waiting();

    grant(r);
    manager_stop_run(r, "stopped");
    TEST_INT(r->end.result, RUN_RESULT_STOPPED);
    CU_ASSERT(manager_bed_await_released(r));
    manager_bed_prepared(r);
    TEST_INT(manager_bed.n_granted, 0);
    CU_ASSERT(has_no_guard_of(r->id));
}

static void test_runner_lost(void) {
    struct run *r = begin_waiting();

    (void) prepared(r);
    manager_bed.runner.handler.on_lost(manager_bed.runner.handler.userdata);
    CU_ASSERT(has_no_guard_of(r->id));
    grant(r);
    check_started_otherwise(r);

    r = begin_waiting(); /* the runner is lost after the grant, before it replies to `prepare` */
    grant(r);
    manager_bed.runner.handler.on_lost(manager_bed.runner.handler.userdata);
    TEST_INT(manager_bed.n_started, 0);
    manager_bed_recovered();
    check_started_otherwise(r);
}

/* berthd prepares only the runs near the head of their queue. */
static void test_bound(void) {
    struct run *r[40];

    first = manager_bed_run("one");
    manager_bed.n_prepared = 0;
    for (size_t i = 0; i < ELEMENTSOF(r); i++) {
        r[i] = manager_bed_begin("one");
        CU_ASSERT(manager_bed_await_waiting(r[i]));
    }
    manager_bed_turn();
    TEST_INT(manager_bed.n_prepared, NEAR_POOL_MAX);
    manager_stop_run(r[0], "stopped");
    CU_ASSERT(await_prepared(NEAR_POOL_MAX + 1));
    for (size_t i = ELEMENTSOF(r); i-- > 1;)
        manager_stop_run(r[i], "stopped");
    end_first();
    CU_ASSERT(manager_bed_await_released(first));
}

/* The next run gets ready once the granted one has begun, not before. */
static void test_next(void) {
    struct run *r[NEAR_POOL_MAX + 1];
    struct guard_link *guard;

    r[0] = begin_waiting();
    for (size_t i = 1; i < ELEMENTSOF(r); i++) {
        r[i] = manager_bed_begin("one");
        CU_ASSERT(manager_bed_await_waiting(r[i]));
    }
    CU_ASSERT(await_prepared(NEAR_POOL_MAX));
    guard = prepared(r[0]);
    grant(r[0]);
    manager_bed_turn();
    TEST_INT(manager_bed.n_prepared, NEAR_POOL_MAX);
    report_started(r[0], guard);
    CU_ASSERT(await_prepared(NEAR_POOL_MAX + 1));
    for (size_t i = ELEMENTSOF(r); i-- > 1;)
        manager_stop_run(r[i], "stopped");
    check_runs(r[0], guard);
}

static CU_TestInfo tests[] = {
    {"granted", test_granted},
    {"granted before the guard is there", test_granted_before},
    {"refused", test_refused},
    {"the guard goes", test_guard_gone},
    {"the guard goes after the grant", test_gone_after_grant},
    {"the grant cannot be sent", test_cannot_send},
    {"the guard cannot be connected to", test_cannot_connect},
    {"stopped", test_stopped},
    {"stopped after the grant", test_stopped_granted},
    {"the runner is lost", test_runner_lost},
    {"bound", test_bound},
    {"next", test_next},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager-prepared", .pSetUpFunc = manager_bed_up_recovered,
             .pTearDownFunc = manager_bed_down, .pTests = tests});
