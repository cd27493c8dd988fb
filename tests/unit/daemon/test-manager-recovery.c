/* SPDX-License-Identifier: MIT */

/* What the manager recovers at start, and after its runner was away: guards, reports, queued runs. It
 * grants nothing before it knows them. */

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/harness/capture.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

static void test_nothing_before_recovered(void) {
    struct run *r;

    manager_bed_down();
    manager_bed.at_start = true;
    manager_bed_up();
    r = manager_bed_begin("one");
    manager_bed_turn();
    TEST_INT(r->state, RUN_STATE_PENDING);
    TEST_INT(manager_bed.n_started, 0);
    manager_bed_recovered();
    CU_ASSERT(manager_bed_await_starts(2)); /* and the job that is to run at start */
    CU_ASSERT_PTR_NOT_NULL(
        list_first(manager_runs(manager_bed.manager, RUN_STATE_STARTING), struct run, link));
}

static void test_guard_gone(void) {
    struct run *r;
    struct message report;

    r = manager_bed_run("one");
    manager_bed_guard_gone(manager_bed_guard());
    TEST_INT(manager_bed.n_killed, 1);
    TEST_INT(r->state, RUN_STATE_RUNNING); /* the run keeps its permit until a report arrives */
    manager_bed_make_report(&report, r, "lost", 1, "none");
    manager_bed_report(&report);
    TEST_INT(r->end.result, RUN_RESULT_GUARD_DIED);
    TEST_INT(manager_bed.n_forgotten, 1);
    manager_bed_report(&report); /* sent twice */
    TEST_INT(manager_bed.n_forgotten, 2);
}

static void test_runner_away(void) {
    struct run *r;

    manager_bed.runner_up = false;
    r = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_starting(r));
    TEST_INT(r->job.start_sent, 0);
    manager_bed.runner_up = true;
    manager_bed.n_started = 0;
    manager_bed_recovered();
    TEST_INT(manager_bed.n_started, 1);
    CU_ASSERT(r->job.start_sent);
}

/* The runner was never asked to start it, so nobody but berthd can report the end. */
static void test_stopped_before_start(void) {
    struct events *events = manager_events(manager_bed.manager);
    struct run *r;

    manager_bed.runner_up = false;
    r = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_starting(r));
    manager_stop_run(r, "stopped");
    TEST_INT(r->end.result, RUN_RESULT_STOPPED);
    TEST_INT(events_count(events, EVENT_EXITED), 1);
    CU_ASSERT(manager_bed_await_released(r));
}

/* A killed berthd: its guard and its queued run are found again, nothing is started twice. */
static void test_restart(void) {
    struct run *r, *w, *found;
    char running[ID_TEXT_SIZE], waiting[ID_TEXT_SIZE];
    uint64_t ticket, token;
    struct message state;
    usec_t queued;

    r = manager_bed_run("one");
    w = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_waiting(w));
    ticket = r->host_claim->ticket;
    token = run_token(r);
    CU_ASSERT(ticket > 0 && token > 0);
    memcpy(running, r->id, sizeof(running));
    memcpy(waiting, w->id, sizeof(waiting));
    queued = r->queued.boottime;
    r->queued.realtime -= 300 * USEC_PER_SEC; /* the wall clock is set meanwhile */
    manager_bed_make_state(&state, r);
    manager_bed.n_started = 0;
    manager_bed_restart();
    manager_bed_found_guard(running);
    manager_bed_recovered();
    CU_ASSERT_PTR_NULL(manager_find_run(manager_bed.manager, waiting)); /* not before the guard sent its state */
    manager_bed_guard_state(manager_bed_guard(), &state);
    found = manager_find_run(manager_bed.manager, running);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    TEST_INT(found->state, RUN_STATE_RUNNING);
    TEST_INT(found->host_claim->ticket, ticket);
    TEST_INT(run_token(found), token);
    TEST_INT(found->queued.boottime, queued);
    w = manager_find_run(manager_bed.manager, waiting);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    TEST_INT(w->state, RUN_STATE_WAITING);
    manager_bed_turn();
    TEST_INT(w->state, RUN_STATE_WAITING); /* the recovered run uses the only permit */
    manager_bed_guard_report(found, "code", 0, "none");
    CU_ASSERT(manager_bed_await_starting(w));
}

static bool is_store_ready(_unused_ void *userdata) {
    return manager_host_store(manager_bed.manager)->state == STORE_STATE_READY;
}

/* The runner was lost and came back before a guard sent its state: the runner names that guard once more. */
static void test_guard_named_twice(void) {
    struct message state;
    struct guard_link *twice[2];
    char id[ID_TEXT_SIZE];
    struct run *r = manager_bed_run("one");

    memcpy(id, r->id, sizeof(id));
    manager_bed_make_state(&state, r);
    manager_bed_restart();
    for (size_t i = 0; i < ELEMENTSOF(twice); i++) {
        manager_bed_found_guard(id);
        twice[i] = manager_bed_guard();
    }
    manager_bed_recovered();
    for (size_t i = 0; i < ELEMENTSOF(twice); i++)
        manager_bed_guard_state(twice[i], &state);
    r = manager_find_run(manager_bed.manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT(manager_bed_await(is_store_ready, NULL));
    manager_bed_guard_report(r, "code", 0, "none");
    CU_ASSERT(manager_bed_await_released(r));
}

/* Runs that waited without a ticket (Redis was away) keep their order over a restart. */
static void test_restart_keeps_order(void) {
    char ids[8][ID_TEXT_SIZE];
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTSOF(ids); i++)
        memcpy(ids[i], manager_bed_begin("one")->id, sizeof(ids[i]));
    manager_bed_restart();
    manager_bed_recovered();
    list_foreach(r, manager_runs(manager_bed.manager, RUN_STATE_WAITING), struct run, link) {
        CU_ASSERT_FATAL(n < ELEMENTSOF(ids));
        TEST_STRING(r->id, ids[n++]);
    }
    TEST_INT(n, ELEMENTSOF(ids));
}

/* A guard died before it sent its state. berthd grants nothing before the runner reports that nothing is
 * left. */
static void test_found_guard_gone(void) {
    struct run *r, *w;
    struct message report;
    char id[ID_TEXT_SIZE];

    r = manager_bed_run("one");
    memcpy(id, r->id, sizeof(id));
    manager_bed_make_report(&report, r, "lost", 1, "none");
    manager_bed_restart();
    manager_bed_found_guard(id);
    manager_bed_recovered();
    manager_bed.n_killed = 0;
    manager_bed_guard_gone(manager_bed_guard());
    TEST_INT(manager_bed.n_killed, 1);
    w = manager_bed_begin("one");
    manager_bed_turn();
    TEST_INT(w->state, RUN_STATE_PENDING);
    manager_bed_report(&report);
    CU_ASSERT(manager_bed_await_starting(w));
    TEST_INT(manager_find_run(manager_bed.manager, id)->end.result, RUN_RESULT_GUARD_DIED);
}

static void test_report_of_unknown_run(void) {
    struct run *r;
    char id[ID_TEXT_SIZE];
    struct message report;

    r = manager_bed_run("one");
    memcpy(id, r->id, sizeof(id));
    manager_bed_make_report(&report, r, "code", 7, "none");
    manager_bed_restart();
    manager_bed_report(&report);
    manager_bed_recovered();
    r = manager_find_run(manager_bed.manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    TEST_INT(r->end.result, RUN_RESULT_FAILURE);
    TEST_INT(r->end.exit_code, 7);
    TEST_INT(manager_bed.n_forgotten, 1);
}

static unsigned count(const char *text, const char *event) {
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, event)); at++)
        n += at == text || at[-1] == '\n';
    return n;
}

/* berthd was killed before or after it logged the start of a command. The next berthd logs the start only
 * if it is missing. */
static void check_start_logged(bool logged, bool over) {
    struct run *r = logged ? manager_bed_run("one") : manager_bed_begin("one");
    _cleanup_free_ char *text = NULL;
    char id[ID_TEXT_SIZE];
    struct message m;
    struct capture c;

    CU_ASSERT(logged || manager_bed_await_starting(r));
    memcpy(id, r->id, sizeof(id));
    if (over)
        manager_bed_make_report(&m, r, "code", 0, "none");
    else
        manager_bed_make_state(&m, r);
    capture_begin(&c);
    manager_bed_restart();
    if (over)
        manager_bed_report(&m);
    else
        manager_bed_found_guard(id);
    manager_bed_recovered();
    if (!over) { /* on both connections */
        manager_bed_guard_state(manager_bed_guard(), &m);
        manager_bed_guard_state(manager_bed_guard(), &m);
    }
    text = capture_end(&c);
    TEST_INT(count(text, "started:"), !logged);
    TEST_INT(count(text, "exited:"), over);
    TEST_INT(manager_bed_count_files("waiting"), 0);
    r = manager_find_run(manager_bed.manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    TEST_INT(r->state, over ? RUN_STATE_DONE : RUN_STATE_RUNNING);
    TEST_INT(r->started.pid, over ? 0 : getpid());
    if (!over)
        manager_bed_guard_report(r, "code", 0, "none");
    CU_ASSERT(manager_bed_await_released(r));
}

static void test_start_logged(void) {
    for (int i = 0; i < 4; i++)
        check_start_logged(i & 1, i & 2);
}

/* A run that began without permits has no token, and a recovery gives it none. */
static void test_run_without_pools(void) {
    struct run *r = manager_bed_run("first");
    char id[ID_TEXT_SIZE];
    struct message state;

    TEST_INT(run_token(r), 0);
    memcpy(id, r->id, sizeof(id));
    manager_bed_make_state(&state, r);
    manager_bed_restart();
    manager_bed_found_guard(id);
    manager_bed_recovered();
    manager_bed_guard_state(manager_bed_guard(), &state);
    r = manager_find_run(manager_bed.manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    TEST_INT(run_token(r), 0);
    manager_bed_guard_report(r, "code", 0, "none");
    CU_ASSERT(manager_bed_await_released(r));
}

/* berthd was killed after it logged the end of a run and before it acknowledged the report. The runner sends it to the next
 * berthd, which does not log it again and still returns the permits. */
static void test_end_logged(void) {
    struct run *r = manager_bed_run("one");
    _cleanup_free_ char *text = NULL;
    char id[ID_TEXT_SIZE];
    struct message report;
    struct capture c;

    memcpy(id, r->id, sizeof(id));
    manager_bed_make_report(&report, r, "signal", SIGTERM, "lease-lost");
    manager_bed_guard_report(r, "signal", SIGTERM, "lease-lost");
    capture_begin(&c);
    manager_bed_restart();
    manager_bed_report(&report);
    manager_bed_recovered();
    r = manager_find_run(manager_bed.manager, id);
    CU_ASSERT(r && manager_bed_await_released(r));
    text = capture_end(&c);
    TEST_INT(count(text, "exited:"), 0);
    TEST_INT(count(text, "fenced:"), 0);
    TEST_INT(count(text, "started:"), 0);
    TEST_INT(count(text, "released:"), 1);
    TEST_INT(r ? r->end.result : 0, RUN_RESULT_LEASE_LOST);
    TEST_INT(manager_bed.n_forgotten, 1);
}

/* A run that is queued behind another keeps its id over a restart, and begins when the other is over. */
static void test_queued_behind(void) {
    struct run *r = manager_bed_run("queued"), *next = manager_bed_begin("queued");
    char running[ID_TEXT_SIZE], queued[ID_TEXT_SIZE];
    struct message state;

    memcpy(running, r->id, sizeof(running));
    memcpy(queued, next->id, sizeof(queued));
    manager_bed_make_state(&state, r);
    manager_bed_restart();
    manager_bed_found_guard(running);
    manager_bed_recovered();
    manager_bed_guard_state(manager_bed_guard(), &state);
    next = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(next && next->state == RUN_STATE_PENDING);
    TEST_INT(manager_bed_count_runs("queued"), 2);
    manager_bed.n_started = 0;
    manager_bed_guard_state(manager_bed_guard(), &state); /* on the second connection */
    manager_bed_guard_report(manager_find_run(manager_bed.manager, running), "code", 0, "none");
    CU_ASSERT(manager_bed_await_starts(1));
    next = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(next && next->state == RUN_STATE_STARTING);
    TEST_INT(manager_bed_count_runs("queued"), 1);
}

/* A run that was queued behind another and is starting, while the job's record still has it queued. */
static struct run *begin_unnoted(char ret_id[static ID_TEXT_SIZE]) {
    struct run *r = manager_bed_run("queued"), *next = manager_bed_begin("queued");
    _cleanup_free_ char *record = NULL;
    char path[64];
    size_t size;

    memcpy(ret_id, next->id, ID_TEXT_SIZE);
    snprintf(path, sizeof(path), "%s/jobs/queued", manager_bed.directory);
    TEST_INT(file_read(path, MESSAGE_SIZE_MAX, &record, &size), 0);
    manager_bed_guard_report(r, "code", 0, "none");
    next = manager_find_run(manager_bed.manager, ret_id);
    CU_ASSERT_FATAL(next && manager_bed_await_starting(next));
    TEST_INT(file_write_atomic(path, record, size, 0600), 0);
    return next;
}

/* berthd was killed after it began a queued run, and before it noted that. The run begins once. */
static void test_queued_and_begun(void) {
    char queued[ID_TEXT_SIZE];
    struct run *next;

    begin_unnoted(queued);
    manager_bed_restart();
    manager_bed_recovered();
    TEST_INT(manager_bed_count_runs("queued"), 1);
    next = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(next && manager_bed_await_starting(next));
}

/* The same, with a run that ended before the next berthd started. */
static void test_queued_and_over(void) {
    char queued[ID_TEXT_SIZE];
    struct message report;
    struct run *next = begin_unnoted(queued);

    manager_bed_make_report(&report, next, "code", 0, "none");
    manager_bed_restart();
    manager_bed_report(&report);
    manager_bed.n_started = 0;
    manager_bed_recovered();
    next = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(next && next->state == RUN_STATE_DONE);
    TEST_INT(manager_bed_count_runs("queued"), 0);
    manager_bed_turn();
    TEST_INT(manager_bed.n_started, 0);
}

static CU_TestInfo tests[] = {
    {"nothing before recovered", test_nothing_before_recovered},
    {"guard gone", test_guard_gone},
    {"runner away", test_runner_away},
    {"stopped before its start", test_stopped_before_start},
    {"restart", test_restart},
    {"a guard named twice", test_guard_named_twice},
    {"an end that was logged before", test_end_logged},
    {"queued behind another", test_queued_behind},
    {"queued, and begun already", test_queued_and_begun},
    {"queued, and over already", test_queued_and_over},
    {"a restart keeps the order", test_restart_keeps_order},
    {"a guard found at start is gone", test_found_guard_gone},
    {"report of an unknown run", test_report_of_unknown_run},
    {"a start that nobody logged", test_start_logged},
    {"a run without pools", test_run_without_pools},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager-recover", .pSetUpFunc = manager_bed_up_recovered,
             .pTearDownFunc = manager_bed_down, .pTests = tests});
