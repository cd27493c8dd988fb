/* SPDX-License-Identifier: MIT */

/* A host that is drained or shuts down: what still begins, what stops, and what the next berthd knows. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

static unsigned n_idle;

static void watch_on_idle(_unused_ struct manager_idle_watch *watch) {
    n_idle++;
}

static void test_drain(void) {
    struct demands pools;
    struct adhoc_request hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    struct manager_idle_watch watch = {.on_idle = watch_on_idle};
    const char *text = NULL;
    struct run *r, *w, *none = NULL;
    bool nested;

    n_idle = 0;
    r = manager_bed_run("one");
    w = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_waiting(w));
    TEST_INT(manager_drain(manager_bed.manager, 0, NULL), 0);
    TEST_INT(manager_drain(manager_bed.manager, 0, NULL), 0);
    TEST_INT(w->state, RUN_STATE_DONE); /* waiting runs are withdrawn, running ones stay */
    TEST_INT(r->state, RUN_STATE_RUNNING);
    TEST_INT(manager_start_job(manager_bed.manager, "one", NULL, &none), MANAGER_E_DRAINED);
    TEST_INT(demands_parse("wide", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &none, &nested, &text), MANAGER_E_DRAINED);
    hold.nested = r->id; /* a run goes on, and may have nested runs */
    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager_bed.manager, &hold, &none, &nested, &text), 0);
    CU_ASSERT(nested);
    manager_watch_idle(manager_bed.manager, &watch);
    manager_bed_guard_report(r, "code", 0, "none");
    CU_ASSERT(manager_bed_await_released(r));
    TEST_INT(n_idle, 1);

    manager_bed.at_start = true;
    manager_bed_restart(); /* the drain survives a restart */
    manager_bed_recovered();
    CU_ASSERT(manager_is_drained(manager_bed.manager));
    CU_ASSERT(manager_is_idle(manager_bed.manager));
    TEST_INT(manager_undrain(manager_bed.manager, 0, NULL), 0);
    CU_ASSERT(!manager_is_idle(manager_bed.manager)); /* the job that is to run at start */
}

static bool has_left(_unused_ void *userdata) {
    return sd_event_get_state(manager_bed.event) == SD_EVENT_FINISHED;
}

static void test_shutdown(void) {
    struct run *r, *w;

    r = manager_bed_run("one");
    w = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_waiting(w));
    manager_stop(manager_bed.manager, true);
    TEST_INT(w->state, RUN_STATE_DONE);
    TEST_INT(manager_bed.last_stop, SUPERVISE_REASON_SHUTDOWN);
    CU_ASSERT(!has_left(NULL));
    manager_bed_guard_report(r, "signal", SIGTERM, "shutdown");
    CU_ASSERT(manager_bed_await(has_left, NULL));
}

/* A stop of the service, not a restart: its next start is one, also if berthd does not know yet what runs, or is killed because the stop
 * takes too long. */
static void check_start_after_stop(bool is_recovering) {
    manager_bed_down();
    manager_bed.at_start = true;
    manager_bed_up_recovered();
    manager_bed_end_first();
    if (is_recovering)
        manager_bed_restart();
    else
        (void) manager_bed_run("one");
    manager_stop(manager_bed.manager, true);
    if (is_recovering)
        CU_ASSERT(manager_bed_await(has_left, NULL));
    manager_bed_new_manager();
    TEST_INT(manager_start(manager_bed.manager), 0);
    manager_bed.n_started = 0;
    manager_bed_recovered();
    CU_ASSERT(manager_bed_await_starts(1));
}

static void test_shutdown_while_recovering(void) {
    check_start_after_stop(true);
}
static void test_shutdown_cut_short(void) {
    check_start_after_stop(false);
}

/* Returns whether the record of job "first" on the disk contains this field. */
static bool has_record(const char *field) {
    _cleanup_free_ char *record = NULL;
    char path[64];
    size_t size;

    snprintf(path, sizeof(path), "%s/jobs/first", manager_bed.directory);
    return file_read(path, MESSAGE_SIZE_MAX, &record, &size) == 0 && strstr(record, field);
}

static void look_at_record(void) {
    CU_ASSERT(has_record("at-start=done\n"));
    CU_ASSERT(!has_record("last-trigger=0\n"));
    CU_ASSERT(manager_bed_count_files("waiting") == 1);
}

/* berthd writes the record of a run before it begins the run. If berthd is killed then, the next one does
 * not begin it again. */
static void test_record_before_start(void) {
    manager_bed_down();
    manager_bed.at_start = true;
    manager_bed_up();
    manager_bed.on_start = look_at_record;
    manager_bed_recovered();
    CU_ASSERT(manager_bed_await_starts(1));
    CU_ASSERT(has_record("at-start=done\n"));
}

static bool is_past(void *realtime) {
    return clock_realtime() > *(usec_t *) realtime;
}

/* While berthd shuts down, `every` begins nothing: a run that neither begins nor ends would keep berthd
 * from exiting. */
static void test_shutdown_and_every(void) {
    struct manager_job job;
    struct run *r, *first;
    usec_t due;

    manager_bed_down();
    manager_bed.every = "50ms";
    manager_bed_up_recovered();
    CU_ASSERT(manager_bed_await_starts(1));
    first = list_first(manager_runs(manager_bed.manager, RUN_STATE_STARTING), struct run, link);
    manager_bed_started(first);
    r = manager_bed_run("one");
    manager_stop_run(first, "stopped");
    manager_stop(manager_bed.manager, true);
    manager_bed.runner.handler.on_refused(first->id, "resources", "none",
                                          manager_bed.runner.handler.userdata);
    TEST_INT(first->state, RUN_STATE_DONE);
    manager_get_job(manager_bed.manager, settings_find_job(manager_settings(manager_bed.manager), "first"),
                    &job);
    due = job.next_realtime + 50 * USEC_PER_MSEC;
    CU_ASSERT(manager_bed_await(is_past, &due));
    CU_ASSERT_PTR_NULL(list_first(manager_runs(manager_bed.manager, RUN_STATE_PENDING), struct run, link));
    manager_get_job(manager_bed.manager, job.settings, &job);
    TEST_INT(job.n_runs, 0);
    manager_bed_guard_report(r, "signal", SIGTERM, "shutdown");
    CU_ASSERT(manager_bed_await(has_left, NULL));
}

static CU_TestInfo tests[] = {
    {"drain", test_drain},
    {"shutdown", test_shutdown},
    {"shutdown while recovering", test_shutdown_while_recovering},
    {"shutdown, cut short", test_shutdown_cut_short},
    {"a record before the start", test_record_before_start},
    {"shutdown and every", test_shutdown_and_every},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager-shutdown", .pSetUpFunc = manager_bed_up_recovered,
             .pTearDownFunc = manager_bed_down, .pTests = tests});
