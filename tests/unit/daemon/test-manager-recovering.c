/* SPDX-License-Identifier: MIT */

/* Calls to a manager that has not recovered yet: triggers, stops, drain. */

#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/harness/capture.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

/* A run is triggered before berthd knows what runs. The manager applies `overlap` as soon as it knows. */
static void test_overlap_after_recovering(void) {
    static const char *const jobs[] = {"skipped", "queued"};

    for (size_t i = 0; i < ELEMENTSOF(jobs); i++) {
        struct run *r = manager_bed_run(jobs[i]), *next;
        struct message state;
        char id[ID_TEXT_SIZE], why[128];

        memcpy(id, r->id, sizeof(id));
        manager_bed_make_state(&state, r);
        manager_bed_restart();
        next = manager_bed_begin(jobs[i]);
        TEST_STRING(manager_blocked_by(manager_bed.manager, next, NULL, NULL, why, sizeof(why)), "recovering");
        manager_bed_found_guard(id);
        manager_bed_recovered();
        manager_bed_guard_state(manager_bed_guard(), &state);
        TEST_INT(next->state, i == 0 ? RUN_STATE_DONE : RUN_STATE_PENDING);
        TEST_STRING(next->reason, i == 0 ? "a run of the job is not over" : "");
        manager_bed_guard_state(manager_bed_guard(), &state);
        r = manager_find_run(manager_bed.manager, id);
        manager_bed_guard_report(r, "code", 0, "none");
        CU_ASSERT(manager_bed_await_released(r));
    }
    CU_ASSERT(!manager_is_idle(manager_bed.manager));
}

/* berthd is killed after it accepted a trigger during its recovery. The client has the run's id, and the
 * next berthd begins the run. */
static void test_begun_while_recovering(void) {
    char begun[ID_TEXT_SIZE], running[ID_TEXT_SIZE], queued[ID_TEXT_SIZE];
    struct run *r = manager_bed_run("queued");
    struct message state;

    memcpy(running, r->id, sizeof(running));
    manager_bed_make_state(&state, r);
    manager_bed_restart();
    memcpy(begun, manager_bed_begin("one")->id, sizeof(begun));
    memcpy(queued, manager_bed_begin("queued")->id, sizeof(queued));
    for (int i = 0; i < 3; i++) { /* the second berthd notes that one run is queued behind another */
        manager_bed_restart();
        if (i == 0)
            continue;
        manager_bed_found_guard(running);
        manager_bed_recovered();
        manager_bed_guard_state(manager_bed_guard(), &state);
        r = manager_find_run(manager_bed.manager, begun);
        CU_ASSERT(r && r->state == RUN_STATE_WAITING);
        r = manager_find_run(manager_bed.manager, queued);
        CU_ASSERT(r && r->state == RUN_STATE_PENDING && r->job.queued_by_overlap);
        TEST_INT(manager_bed_count_runs("queued"), 2);
        TEST_INT(manager_bed_count_files("waiting"), 2);
    }
    manager_bed_guard_state(manager_bed_guard(), &state); /* on the second connection */
    manager_bed.n_started = 0;
    manager_bed_guard_report(manager_find_run(manager_bed.manager, running), "code", 0, "none");
    CU_ASSERT(manager_bed_await_starts(1)); /* "one": there is one slot */
    r = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(r && manager_bed_await_waiting(r));
}

/* Records that cannot be recovered are named; the others are recovered. */
static void test_bad_waiting(void) {
    static const struct {
        const char *id, *fields;
    } bad[] = {
        {"0000000000000000000000000000bad1", ""},
        {"0000000000000000000000000000bad2", "job=one\npools=slot:1\n"},
        {"0000000000000000000000000000bad3", "job=one\npools=slot:1\nscopes=\n"},
        {"0000000000000000000000000000bad4", "job=one\nscopes=\n"},
    };
    _cleanup_free_ char *text = NULL;
    struct capture c;
    char path[96], record[128];

    manager_bed_restart();
    for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
        snprintf(path, sizeof(path), "%s/waiting/%s", manager_bed.directory, bad[i].id);
        snprintf(record, sizeof(record), "waiting\nrun=%s\n%s", bad[i].id, bad[i].fields);
        TEST_INT(file_write_atomic(path, record, strlen(record), 0600), 0);
    }
    capture_begin(&c);
    manager_bed_recovered();
    text = capture_end(&c);
    for (size_t i = 0; i < ELEMENTSOF(bad); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(text, bad[i].id));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "ready: "));
}

static void ignore(_unused_ struct run *run, _unused_ void *userdata) {
}

/* berthd may not know yet of the run that is to be stopped. */
static void test_stop_while_recovering(void) {
    struct run *w;

    (void) manager_bed_run("one");
    manager_bed_restart();
    w = manager_bed_begin("one");
    TEST_INT(manager_stop_target(manager_bed.manager, "00000000000000000000000000000000", ignore, NULL),
             MANAGER_E_RECOVERING);
    TEST_INT(manager_stop_target(manager_bed.manager, "nothing", ignore, NULL), MANAGER_E_UNKNOWN);
    TEST_INT(manager_stop_target(manager_bed.manager, "one", ignore, NULL), MANAGER_E_RECOVERING);
    CU_ASSERT(run_is_over(w)); /* the known run is stopped */
}

static unsigned n_idle;

static void watch_on_idle(_unused_ struct manager_idle_watch *watch) {
    n_idle++;
}

/* The host is drained while berthd recovers. berthd withdraws the waiting runs that it finds. No client
 * is notified that the host is idle before all runs are known. */
static void test_drained_while_recovering(void) {
    struct manager_idle_watch watch = {.on_idle = watch_on_idle};
    struct run *r = manager_bed_run("queued"), *behind = manager_bed_begin("queued"),
               *w = manager_bed_begin("one");
    char running[ID_TEXT_SIZE], queued[ID_TEXT_SIZE], waiting[ID_TEXT_SIZE];
    struct message state;

    n_idle = 0;
    CU_ASSERT(manager_bed_await_waiting(w));
    memcpy(running, r->id, sizeof(running));
    memcpy(queued, behind->id, sizeof(queued));
    memcpy(waiting, w->id, sizeof(waiting));
    manager_bed_make_state(&state, r);
    manager_bed_restart();
    TEST_INT(manager_drain(manager_bed.manager, 0, NULL), 0);
    CU_ASSERT(!manager_is_idle(manager_bed.manager));
    manager_watch_idle(manager_bed.manager, &watch);
    manager_bed_found_guard(running);
    manager_bed_recovered();
    manager_bed_guard_state(manager_bed_guard(), &state);
    manager_bed_turn();
    TEST_INT(n_idle, 0);
    w = manager_find_run(manager_bed.manager, waiting);
    CU_ASSERT(w && run_is_over(w) && strcmp(w->reason, "drained") == 0);
    behind = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(behind && run_is_over(behind) && strcmp(behind->reason, "drained") == 0);
    TEST_INT(manager_bed_count_files("waiting"), 0);
    r = manager_find_run(manager_bed.manager, running);
    CU_ASSERT_FATAL(r && r->state == RUN_STATE_RUNNING);
    manager_bed_guard_state(manager_bed_guard(), &state); /* on the second connection */
    manager_bed.n_started = 0;
    manager_bed_guard_report(r, "code", 0, "none");
    CU_ASSERT(manager_bed_await_released(r));
    TEST_INT(n_idle, 1);
    TEST_INT(manager_bed.n_started, 0);
}

/* The same without a run to recover. */
static void test_drained_and_nothing_found(void) {
    struct manager_idle_watch watch = {.on_idle = watch_on_idle};

    n_idle = 0;
    manager_bed_restart();
    TEST_INT(manager_drain(manager_bed.manager, 0, NULL), 0);
    CU_ASSERT(!manager_is_idle(manager_bed.manager));
    manager_watch_idle(manager_bed.manager, &watch);
    manager_bed_recovered();
    TEST_INT(n_idle, 1);
    CU_ASSERT(manager_is_idle(manager_bed.manager));
}

static CU_TestInfo tests[] = {
    {"overlap after recovering", test_overlap_after_recovering},
    {"begun while recovering", test_begun_while_recovering},
    {"a malformed record of a waiting run", test_bad_waiting},
    {"stop while recovering", test_stop_while_recovering},
    {"drained while recovering", test_drained_while_recovering},
    {"drained, and nothing found", test_drained_and_nothing_found},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager-recovering", .pSetUpFunc = manager_bed_up_recovered,
             .pTearDownFunc = manager_bed_down, .pTests = tests});
