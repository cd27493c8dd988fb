/* SPDX-License-Identifier: MIT */

/* The manager's decisions about jobs: what begins when, what stops, what an end is. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/play.h"
#include "tests/harness/test.h"

static void test_one_run(void) {
    struct run *r = play_run("one");

    TEST_INT(play_count_files("waiting"), 0);
    play_guard_reports(r, "code", 3, "none");
    TEST_INT(r->end.result, RUN_RESULT_FAILURE);
    TEST_INT(r->end.exit_code, 3);
    TEST_INT(play.n_done, 1); /* only now may the guard end */
    CU_ASSERT(play_await_released(r));
}

static void test_limit_and_order(void) {
    struct run *a, *b, *c;

    a = play_run("one");
    b = play_begin("one");
    c = play_begin("one");
    CU_ASSERT(play_await_waiting(c));
    TEST_INT(b->state, RUN_STATE_WAITING);
    TEST_INT(play_count_files("waiting") >= 2, 1);
    play_guard_reports(a, "code", 0, "none");
    CU_ASSERT(play_await_starting(b));
    TEST_INT(c->state, RUN_STATE_WAITING);
    manager_stop_run(c, "stopped");
    TEST_INT(c->end.result, RUN_RESULT_STOPPED);
    CU_ASSERT(play_await_released(c));
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

    r = play_run("skipped");
    TEST_INT(manager_start_job(play.manager, "skipped", NULL, &again), MANAGER_E_SKIPPED);
    CU_ASSERT_PTR_EQUAL(again, r);
    play_guard_reports(r, "code", 0, "none");
    r = play_run("queued");
    TEST_INT(manager_start_job(play.manager, "queued", NULL, &again), 0);
    CU_ASSERT(again && again != r && again->state == RUN_STATE_PENDING); /* it has its id at once */
    memcpy(id, again->id, sizeof(id));
    TEST_STRING(manager_blocked_by(play.manager, again, NULL, NULL, why, sizeof(why)), "overlap");
    run_watch_add(again, &watch);
    TEST_INT(manager_start_job(play.manager, "queued", NULL, &again), MANAGER_E_SKIPPED);
    CU_ASSERT_PTR_EQUAL(again, r);
    play.n_started = 2;
    play_guard_reports(r, "code", 0, "none");
    CU_ASSERT(play_await_starts(3));
    again = manager_find_run(play.manager, id);
    CU_ASSERT(again && again->state == RUN_STATE_STARTING);
    TEST_INT(n_changes > 0, 1); /* who waited for it waits for what is begun */
    run_watch_remove(&watch);
}

/* One that is queued behind another is withdrawn as one that waits: by a stop of the job, or of that run alone. */
static void test_stop_of_queued(void) {
    struct run *r = play_run("queued"), *next = play_begin("queued");
    struct manager_job job;
    size_t n;

    manager_get_job(play.manager, settings_find_job(manager_settings(play.manager), "queued"), &job);
    TEST_INT(job.n_runs, 2);
    CU_ASSERT_PTR_EQUAL(job.run, r);
    TEST_INT(manager_stop_target(play.manager, next->id, &n), 0);
    TEST_INT(n, 1);
    TEST_INT(next->end.result, RUN_RESULT_STOPPED);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    next = play_begin("queued");
    TEST_INT(next->state, RUN_STATE_PENDING);
    TEST_INT(manager_stop_target(play.manager, "queued", &n), 0);
    TEST_INT(n, 2);
    TEST_INT(next->state, RUN_STATE_DONE);
    play.n_started = 0;
    play_guard_reports(r, "signal", SIGTERM, "stopped");
    CU_ASSERT(play_await_released(r));
    TEST_INT(play.n_started, 0);
    CU_ASSERT(manager_is_idle(play.manager));
}

static void test_stop(void) {
    struct run *r = play_run("one");

    manager_stop_run(r, "stopped");
    TEST_INT(r->state, RUN_STATE_STOPPING);
    TEST_INT(play.n_stopped, 1);
    TEST_INT(play.last_stop, SUPERVISE_REASON_STOPPED);
    manager_stop_run(r, "stopped");
    TEST_INT(play.n_stopped, 1);
    play_guard_reports(r, "signal", SIGTERM, "stopped");
    TEST_INT(r->end.result, RUN_RESULT_STOPPED);
    TEST_INT(r->end.signal, SIGTERM);
}

static void test_stop_before_guard(void) {
    struct message state;
    struct run *r = play_begin("one");

    CU_ASSERT(play_await_starting(r));
    manager_stop_run(r, "stopped");
    TEST_INT(r->state, RUN_STATE_STOPPING); /* its guard may be there already: the permit stays */
    play_started(r);
    play_make_state(&state, r);
    play_guard_says(play_guard(), &state);
    TEST_INT(play.n_stopped, 1);
}

static void test_refused(void) {
    struct run *r = play_begin("one");

    CU_ASSERT(play_await_starting(r));
    play.runner.handler.on_refused(r->id, "unknown-job", "no job \"one\"", play.runner.handler.userdata);
    TEST_INT(r->end.result, RUN_RESULT_NOT_STARTED);
    CU_ASSERT(play_await_released(r));
    TEST_STRING(r->reason, "unknown-job: no job \"one\"");
}

static void test_not_started(void) {
    struct run *r = play_begin("one");

    CU_ASSERT(play_await_starting(r));
    play_started(r);
    play_guard_reports(r, "errno", ENOENT, "none");
    TEST_INT(r->end.result, RUN_RESULT_NOT_STARTED);
}

static void test_no_such_user(void) {
    struct message_writer w;
    struct message report;
    struct run *r = play_begin("one");

    CU_ASSERT(play_await_starting(r));
    message_begin(&w, PROTOCOL_REPORT);
    play_identity(&w, r);
    message_put(&w, "stage", "user");
    message_put_u64(&w, "errno", ESRCH);
    play_parse(&report, &w);
    play_reports(&report);
    TEST_STRING(r->reason, "user: there is no such user");
}

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
    r = play_run("one");
    w = play_begin("one");
    CU_ASSERT(play_await_waiting(w));
    TEST_INT(manager_drain(play.manager, 0), 0);
    TEST_INT(manager_drain(play.manager, 0), 0);
    TEST_INT(w->state, RUN_STATE_DONE); /* what waits goes, what runs stays */
    TEST_INT(r->state, RUN_STATE_RUNNING);
    TEST_INT(manager_start_job(play.manager, "one", NULL, &none), MANAGER_E_DRAINED);
    TEST_INT(demands_parse("wide", &pools), 0);
    TEST_INT(manager_hold(play.manager, &hold, &none, &nested, &text), MANAGER_E_DRAINED);
    hold.nested = r->id; /* what runs goes on: also what it has inside */
    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(play.manager, &hold, &none, &nested, &text), 0);
    CU_ASSERT(nested);
    manager_watch_idle(play.manager, &watch);
    play_guard_reports(r, "code", 0, "none");
    CU_ASSERT(play_await_released(r));
    TEST_INT(n_idle, 1);

    play.at_start = true;
    play_restart(); /* it survives that */
    play_recovered();
    CU_ASSERT(manager_is_drained(play.manager));
    CU_ASSERT(manager_is_idle(play.manager));
    TEST_INT(manager_undrain(play.manager, 0), 0);
    CU_ASSERT(!manager_is_idle(play.manager)); /* the job that is to run at start */
}

static bool has_left(_unused_ void *userdata) {
    return sd_event_get_state(play.event) == SD_EVENT_FINISHED;
}

static void test_shutdown(void) {
    struct run *r, *w;

    r = play_run("one");
    w = play_begin("one");
    CU_ASSERT(play_await_waiting(w));
    manager_stop(play.manager, true);
    TEST_INT(w->state, RUN_STATE_DONE);
    TEST_INT(play.last_stop, SUPERVISE_REASON_SHUTDOWN);
    CU_ASSERT(!has_left(NULL));
    play_guard_reports(r, "signal", SIGTERM, "shutdown");
    CU_ASSERT(play_await(has_left, NULL));
}

/* Job "first", which began by itself. */
static void first_is_over(void) {
    struct run *r;

    CU_ASSERT(play_await_starts(1));
    r = list_first(manager_runs(play.manager, RUN_STATE_STARTING), struct run, link);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    play_started(r);
    play_guard_reports(r, "code", 0, "none");
}

/* A stop of the service, not a restart: its next start is one, also if berthd does not know yet what runs, or is killed because the stop
 * takes too long. */
static void check_start_after_stop(bool is_recovering) {
    play_down();
    play.at_start = true;
    play_up_recovered();
    first_is_over();
    if (is_recovering)
        play_restart();
    else
        (void) play_run("one");
    manager_stop(play.manager, true);
    if (is_recovering)
        CU_ASSERT(play_await(has_left, NULL));
    play_new_manager();
    TEST_INT(manager_start(play.manager), 0);
    play.n_started = 0;
    play_recovered();
    CU_ASSERT(play_await_starts(1));
}

static void test_shutdown_while_recovering(void) {
    check_start_after_stop(true);
}
static void test_shutdown_cut_short(void) {
    check_start_after_stop(false);
}

/* Of job "first", as the next berthd would find it. */
static bool has_record(const char *field) {
    _cleanup_free_ char *record = NULL;
    char path[64];
    size_t size;

    snprintf(path, sizeof(path), "%s/jobs/first", play.directory);
    return file_read(path, MESSAGE_SIZE_MAX, &record, &size) == 0 && strstr(record, field);
}

static void look_at_record(void) {
    CU_ASSERT(has_record("at-start=done\n"));
    CU_ASSERT(!has_record("last-trigger=0\n"));
    CU_ASSERT(play_count_files("waiting") == 1);
}

/* A berthd that is killed right after it has begun a run is followed by one that knows of it, and does not begin it once more. */
static void test_record_before_start(void) {
    play_down();
    play.at_start = true;
    play_up();
    play.on_start = look_at_record;
    play_recovered();
    CU_ASSERT(play_await_starts(1));
    CU_ASSERT(has_record("at-start=done\n"));
}

static bool is_past(void *realtime) {
    return clock_realtime() > *(usec_t *) realtime;
}

/* Nothing is begun any more, also not by time: a run that is not begun and not over would keep berthd from leaving. */
static void test_shutdown_and_every(void) {
    struct manager_job job;
    struct run *r, *first;
    usec_t due;

    play_down();
    play.every = "50ms";
    play_up_recovered();
    CU_ASSERT(play_await_starts(1));
    first = list_first(manager_runs(play.manager, RUN_STATE_STARTING), struct run, link);
    play_started(first);
    r = play_run("one");
    manager_stop_run(first, "stopped");
    manager_stop(play.manager, true);
    play.runner.handler.on_refused(first->id, "resources", "none", play.runner.handler.userdata);
    TEST_INT(first->state, RUN_STATE_DONE);
    manager_get_job(play.manager, settings_find_job(manager_settings(play.manager), "first"), &job);
    due = job.next_realtime + 50 * USEC_PER_MSEC;
    CU_ASSERT(play_await(is_past, &due));
    CU_ASSERT_PTR_NULL(list_first(manager_runs(play.manager, RUN_STATE_PENDING), struct run, link));
    manager_get_job(play.manager, job.settings, &job);
    TEST_INT(job.n_runs, 0);
    play_guard_reports(r, "signal", SIGTERM, "shutdown");
    CU_ASSERT(play_await(has_left, NULL));
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

    play_down();
    play.every = "500ms";
    play_up_recovered();
    first_is_over();
    TEST_INT(sd_event_add_time_relative(play.event, NULL, CLOCK_BOOTTIME, 250 * USEC_PER_MSEC, 0, wake, &is_later), 0);
    CU_ASSERT(play_await(is_true, &is_later));
    r = play_begin("first");
    play_started(r);
    play_guard_reports(r, "code", 0, "none");
    TEST_INT(play.n_started, 2);
    manager_get_job(play.manager, settings_find_job(manager_settings(play.manager), "first"), &job);
    CU_ASSERT(play_await_starts(3));
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
    {"no such user", test_no_such_user},
    {"drain", test_drain},
    {"shutdown", test_shutdown},
    {"shutdown while recovering", test_shutdown_while_recovering},
    {"shutdown, cut short", test_shutdown_cut_short},
    {"a record before the start", test_record_before_start},
    {"shutdown and every", test_shutdown_and_every},
    {"every, after a manual start", test_every_after_a_manual_start},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "manager", .pSetUpFunc = play_up_recovered, .pTearDownFunc = play_down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
