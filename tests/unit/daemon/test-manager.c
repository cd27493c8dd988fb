/* SPDX-License-Identifier: MIT */

/* The manager's decisions about jobs: when a run begins, when it stops, and which result its end has. */

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/protocol.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

static void test_one_run(void) {
    struct run *r = manager_bed_run("one");

    TEST_INT(manager_bed_count_files("waiting"), 0);
    manager_bed_guard_report(r, "code", 3, "none");
    TEST_INT(r->end.result, RUN_RESULT_FAILURE);
    TEST_INT(r->end.exit_code, 3);
    TEST_INT(manager_bed.n_done, 1); /* only now may the guard end */
    CU_ASSERT(manager_bed_await_released(r));
}

static void test_limit_and_order(void) {
    struct run *a, *b, *c;

    a = manager_bed_run("one");
    b = manager_bed_begin("one");
    c = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_waiting(c));
    TEST_INT(b->state, RUN_STATE_WAITING);
    TEST_INT(manager_bed_count_files("waiting") >= 2, 1);
    manager_bed_guard_report(a, "code", 0, "none");
    CU_ASSERT(manager_bed_await_starting(b));
    TEST_INT(c->state, RUN_STATE_WAITING);
    manager_stop_run(c, "stopped");
    TEST_INT(c->end.result, RUN_RESULT_STOPPED);
    CU_ASSERT(manager_bed_await_released(c));
}

static unsigned n_changes;

static void on_change(_unused_ struct run_watch *watch, _unused_ struct run *run) {
    n_changes++;
}

static void test_overlap(void) {
    struct run *r, *again = NULL;
    struct run_watch watch = {.on_change = on_change};
    char id[ID_TEXT_SIZE], why[64];

    n_changes = 0;

    r = manager_bed_run("skipped");
    TEST_INT(manager_start_job(manager_bed.manager, "skipped", NULL, &again), MANAGER_E_SKIPPED);
    CU_ASSERT_PTR_EQUAL(again, r);
    manager_bed_guard_report(r, "code", 0, "none");
    r = manager_bed_run("queued");
    TEST_INT(manager_start_job(manager_bed.manager, "queued", NULL, &again), 0);
    CU_ASSERT(again && again != r && again->state == RUN_STATE_PENDING); /* it has its id at once */
    memcpy(id, again->id, sizeof(id));
    TEST_STRING(manager_blocked_by(manager_bed.manager, again, NULL, NULL, why, sizeof(why)), "overlap");
    run_watch_add(again, &watch);
    TEST_INT(manager_start_job(manager_bed.manager, "queued", NULL, &again), MANAGER_E_SKIPPED);
    CU_ASSERT_PTR_EQUAL(again, r);
    manager_bed.n_started = 2;
    manager_bed_guard_report(r, "code", 0, "none");
    CU_ASSERT(manager_bed_await_starts(3));
    again = manager_find_run(manager_bed.manager, id);
    CU_ASSERT(again && again->state == RUN_STATE_STARTING);
    TEST_INT(n_changes > 0, 1); /* the watch of the queued run is called when it begins */
    run_watch_remove(&watch);
}

static void count(_unused_ struct run *run, void *userdata) {
    size_t *n = userdata;

    ++*n;
}

static size_t stop(const char *target) {
    size_t n = 0;

    TEST_INT(manager_stop_target(manager_bed.manager, target, count, &n), 0);
    return n;
}

/* A stop of the job, or of the run alone, withdraws a run that is queued behind another. */
static void test_stop_of_queued(void) {
    struct run *r = manager_bed_run("queued"), *next = manager_bed_begin("queued");
    struct manager_job job;

    manager_get_job(manager_bed.manager, settings_find_job(manager_settings(manager_bed.manager), "queued"),
                    &job);
    TEST_INT(job.n_runs, 2);
    CU_ASSERT_PTR_EQUAL(job.run, r);
    TEST_INT(stop(next->id), 1);
    TEST_INT(next->end.result, RUN_RESULT_STOPPED);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    next = manager_bed_begin("queued");
    TEST_INT(next->state, RUN_STATE_PENDING);
    TEST_INT(stop("queued"), 2);
    TEST_INT(next->state, RUN_STATE_DONE);
    TEST_INT(stop("queued"), 1); /* r is still stopping, so `berth stop` must not say that there is nothing to stop */
    manager_bed.n_started = 0;
    manager_bed_guard_report(r, "signal", SIGTERM, "stopped");
    CU_ASSERT(manager_bed_await_released(r));
    TEST_INT(manager_bed.n_started, 0);
    CU_ASSERT(manager_is_idle(manager_bed.manager));
}

static void test_stop(void) {
    struct run *r = manager_bed_run("one");

    manager_stop_run(r, "stopped");
    TEST_INT(r->state, RUN_STATE_STOPPING);
    TEST_INT(manager_bed.n_stopped, 1);
    TEST_INT(manager_bed.last_stop, SUPERVISE_REASON_STOPPED);
    manager_stop_run(r, "stopped");
    TEST_INT(manager_bed.n_stopped, 1);
    manager_bed_guard_report(r, "signal", SIGTERM, "stopped");
    TEST_INT(r->end.result, RUN_RESULT_STOPPED);
    TEST_INT(r->end.signal, SIGTERM);
}

/* The start is counted by CLOCK_BOOTTIME, because the wall clock may have been set while berthd hung. */
static void test_start_by_boottime(void) {
    struct message state;
    uint64_t started = 0;
    struct run *r = manager_bed_begin("one");

    CU_ASSERT(manager_bed_await_starting(r));
    manager_bed_started(r);
    manager_bed_make_state(&state, r);
    TEST_INT(message_get_u64(&state, "started", &started), 0);
    while (clock_boottime() <= started) /* berthd receives it later, at another µs */
        ;
    manager_bed_guard_state(manager_bed_guard(), &state);
    TEST_INT(r->started.boottime, started);
}

static void test_stop_before_guard(void) {
    struct message state;
    struct run *r = manager_bed_begin("one");

    CU_ASSERT(manager_bed_await_starting(r));
    manager_stop_run(r, "stopped");
    TEST_INT(r->state, RUN_STATE_STOPPING); /* its guard may be there already: the permit stays */
    manager_bed_started(r);
    manager_bed_make_state(&state, r);
    manager_bed_guard_state(manager_bed_guard(), &state);
    TEST_INT(manager_bed.n_stopped, 1);
}

static void test_refused(void) {
    struct run *r = manager_bed_begin("one");

    CU_ASSERT(manager_bed_await_starting(r));
    manager_bed.runner.handler.on_refused(r->id, "unknown-job", "no job \"one\"",
                                          manager_bed.runner.handler.userdata);
    TEST_INT(r->end.result, RUN_RESULT_NOT_STARTED);
    CU_ASSERT(manager_bed_await_released(r));
    TEST_STRING(r->reason, "unknown-job: no job \"one\"");
}

static void test_not_started(void) {
    struct run *r = manager_bed_begin("one");

    CU_ASSERT(manager_bed_await_starting(r));
    manager_bed_started(r);
    manager_bed_guard_report(r, "errno", ENOENT, "none");
    TEST_INT(r->end.result, RUN_RESULT_NOT_STARTED);
}

static void test_failed_stage(void) {
    struct message_writer w;
    struct message report;
    struct run *r = manager_bed_begin("one");

    CU_ASSERT(manager_bed_await_starting(r));
    message_begin(&w, PROTOCOL_REPORT);
    manager_bed_identity(&w, r);
    message_put(&w, "stage", "nice");
    message_put_u64(&w, "errno", EPERM);
    manager_bed_parse(&report, &w);
    manager_bed_report(&report);
    TEST_STRING(r->reason, "nice: Operation not permitted");
}

/* The guard received the stop before it began the command. */
static void test_stopped_before_it_began(void) {
    struct message_writer w;
    struct message report;
    struct run *r = manager_bed_begin("one");

    CU_ASSERT(manager_bed_await_starting(r));
    manager_stop_run(r, "stopped");
    message_begin(&w, PROTOCOL_REPORT);
    manager_bed_identity(&w, r);
    message_put(&w, "reason", "stopped");
    message_put(&w, "stage", "stop");
    message_put_u64(&w, "errno", ECANCELED);
    manager_bed_parse(&report, &w);
    manager_bed_report(&report);
    TEST_INT(r->end.result, RUN_RESULT_STOPPED);
    TEST_STRING(r->reason, "stopped");
}

static bool is_past(void *realtime) {
    return clock_realtime() > *(usec_t *) realtime;
}

static int wake(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    *(bool *) userdata = true;
    return 0;
}

static bool is_true(void *value) {
    return *(bool *) value;
}

/* `every` counts from the last start, whatever triggered it. */
static void test_every_after_a_manual_start(void) {
    struct manager_job job;
    bool is_later = false;
    struct run *r;

    manager_bed_down();
    manager_bed.every = "500ms";
    manager_bed_up_recovered();
    manager_bed_end_first();
    TEST_INT(sd_event_add_time_relative(manager_bed.event, NULL, CLOCK_BOOTTIME, 250 * USEC_PER_MSEC, 0, wake, &is_later), 0);
    CU_ASSERT(manager_bed_await(is_true, &is_later));
    r = manager_bed_begin("first");
    manager_bed_started(r);
    manager_bed_guard_report(r, "code", 0, "none");
    TEST_INT(manager_bed.n_started, 2);
    manager_get_job(manager_bed.manager, settings_find_job(manager_settings(manager_bed.manager), "first"),
                    &job);
    CU_ASSERT(manager_bed_await_starts(3));
    CU_ASSERT(is_past(&job.next_realtime));
}

static CU_TestInfo tests[] = {
    {"one run", test_one_run},
    {"limit and order", test_limit_and_order},
    {"overlap", test_overlap},
    {"a stop of what is queued behind another", test_stop_of_queued},
    {"stop", test_stop},
    {"stop before its guard is there", test_stop_before_guard},
    {"refused by the runner", test_refused},
    {"not started", test_not_started},
    {"a start by boottime", test_start_by_boottime},
    {"failed stage", test_failed_stage},
    {"stopped before it began", test_stopped_before_it_began},
    {"every, after a manual start", test_every_after_a_manual_start},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager", .pSetUpFunc = manager_bed_up_recovered, .pTearDownFunc = manager_bed_down,
             .pTests = tests});
