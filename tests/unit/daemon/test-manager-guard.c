/* SPDX-License-Identifier: MIT */

/* berthd cannot connect to a guard, because the guard is gone or because berthd lacks a resource. Only if
 * the guard is gone, berthd sends `kill` to the runner. Until it knows, it grants and frees nothing. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/protocol.h"
#include "daemon/runs/run.h"
#include "tests/harness/capture.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"

static const struct {
    int error;
    bool is_gone;
} errors[] = {
    {-EMFILE, false},  {-ENFILE, false}, {-ENOMEM, false},     {-EAGAIN, false},
    {-ENOBUFS, false}, {-EACCES, false}, {-ECONNREFUSED, true}, {-ENOENT, true},
};

static bool has_connected(void *n) {
    return manager_bed.n_guards > *(size_t *) n;
}

static bool await_connection(size_t before) {
    return manager_bed_await(has_connected, &before);
}

static void check_lost(struct run *r) {
    struct message report;

    manager_bed_make_report(&report, r, "lost", 1, "none");
    manager_bed_report(&report);
    TEST_INT(r->end.result, RUN_RESULT_GUARD_DIED);
    CU_ASSERT(manager_bed_await_released(r));
}

static void check_runs_on(struct run *r) {
    struct message state;

    manager_bed_make_state(&state, r);
    manager_bed_guard_state(manager_bed_guard(), &state);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    TEST_INT(manager_bed.n_killed, 0);
    manager_bed_guard_report(r, "code", 0, "none");
    TEST_INT(r->end.result, RUN_RESULT_SUCCESS);
    CU_ASSERT(manager_bed_await_released(r));
}

/* The runner has started the guard, and berthd cannot connect to it. */
static void check_started(int error, bool is_gone) {
    struct run *r = manager_bed_begin("one");
    size_t before = manager_bed.n_guards;

    CU_ASSERT(manager_bed_await_starting(r));
    manager_bed.guard_error = error;
    manager_bed.n_started = manager_bed.n_killed = 0;
    manager_bed_started(r);
    TEST_INT(manager_bed.n_killed, is_gone);
    TEST_INT(manager_bed.n_guards, before);
    TEST_INT(r->state, RUN_STATE_STARTING);
    if (is_gone) {
        check_lost(r);
        return;
    }
    manager_bed_recovered(); /* the runner was away and is back */
    TEST_INT(manager_bed.n_started, 0);
    manager_bed.guard_error = 0;
    CU_ASSERT_FATAL(await_connection(before));
    check_runs_on(r);
}

/* The connection to a running guard ends, and berthd cannot connect again. */
static void check_ended(int error, bool is_gone) {
    struct run *r;
    struct guard_link *g;
    size_t before;

    manager_bed.guard_error = 0;
    r = manager_bed_run("one");
    before = manager_bed.n_guards;
    manager_bed.guard_error = error;
    manager_bed.n_killed = 0;
    g = manager_bed_guard();
    g->handler.on_gone(g, g->handler.userdata);
    TEST_INT(manager_bed.n_killed, is_gone);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    if (is_gone) {
        check_lost(r);
        return;
    }
    manager_bed_recovered();
    TEST_INT(manager_bed.n_killed, 0); /* the run has no connection, but still a guard */
    manager_bed.guard_error = 0;
    CU_ASSERT_FATAL(await_connection(before));
    check_runs_on(r);
}

/* berthd finds the guard when it starts, and cannot connect to it. */
static void check_found(int error, bool is_gone) {
    struct message state, report;
    struct run *r, *w;
    char id[ID_TEXT_SIZE];
    size_t before;

    manager_bed.guard_error = 0;
    r = manager_bed_run("one");
    memcpy(id, r->id, sizeof(id));
    manager_bed_make_state(&state, r);
    manager_bed_make_report(&report, r, "lost", 1, "none");
    manager_bed.guard_error = error;
    manager_bed.n_killed = manager_bed.n_started = 0;
    manager_bed_restart();
    before = manager_bed.n_guards;
    manager_bed_found_guard(id);
    manager_bed_recovered();
    TEST_INT(manager_bed.n_killed, is_gone);
    w = manager_bed_begin("one");
    manager_bed_turn();
    TEST_INT(w->state, RUN_STATE_PENDING);
    if (is_gone) {
        manager_bed_report(&report);
        TEST_INT(manager_find_run(manager_bed.manager, id)->end.result, RUN_RESULT_GUARD_DIED);
    } else {
        manager_bed.guard_error = 0;
        CU_ASSERT_FATAL(await_connection(before));
        manager_bed_guard_state(manager_bed_guard(), &state);
        CU_ASSERT(manager_bed_await_waiting(w)); /* the recovered run has the permit */
        r = manager_find_run(manager_bed.manager, id);
        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        check_runs_on(r);
    }
    CU_ASSERT(manager_bed_await_starting(w));
    manager_stop_run(w, "stopped");
    check_lost(w);
}

static void test_started(void) {
    for (size_t i = 0; i < ELEMENTSOF(errors); i++)
        check_started(errors[i].error, errors[i].is_gone);
}
static void test_ended(void) {
    for (size_t i = 0; i < ELEMENTSOF(errors); i++)
        check_ended(errors[i].error, errors[i].is_gone);
}
static void test_found(void) {
    for (size_t i = 0; i < ELEMENTSOF(errors); i++)
        check_found(errors[i].error, errors[i].is_gone);
}

/* berthd pauses before it connects again to a guard that keeps closing the connection. */
static void test_closes(void) {
    struct run *r = manager_bed_run("one");
    struct message state;
    struct guard_link *g;
    struct capture c;
    char id[ID_TEXT_SIZE], *text;
    size_t before;

    memcpy(id, r->id, sizeof(id));
    manager_bed_make_state(&state, r);
    manager_bed_restart();
    manager_bed_found_guard(id);
    manager_bed_recovered();
    before = manager_bed.n_guards;
    g = manager_bed_guard();
    g->handler.on_gone(g, g->handler.userdata);
    TEST_INT(manager_bed.n_guards, before + 1);
    g = manager_bed_guard();
    g->handler.on_gone(g, g->handler.userdata);
    TEST_INT(manager_bed.n_guards, before + 1);
    CU_ASSERT_FATAL(await_connection(before + 1));
    capture_begin(&c);
    g = manager_bed_guard();
    g->handler.on_gone(g, g->handler.userdata);
    text = capture_end(&c);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "cannot connect to its guard, retrying: Connection reset by peer"));
    free(text);
    CU_ASSERT_FATAL(await_connection(before + 2));
    manager_bed_guard_state(manager_bed_guard(), &state);
    r = manager_find_run(manager_bed.manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    check_runs_on(r);
}

static bool has_killed(void *userdata) {
    (void) userdata;
    return manager_bed.n_killed > 0;
}

/* The command was short: its guard leaves a report and ends without accepting the connection. That is no fault, and logged as
 * none. */
static void test_ended_unaccepted(void) {
    struct run *r = manager_bed_begin("one");
    struct capture c;
    char *text;

    CU_ASSERT(manager_bed_await_starting(r));
    manager_bed_started(r);
    manager_bed.n_killed = 0;
    manager_bed.is_unaccepted = true;
    capture_begin(&c);
    manager_bed_guard_gone(manager_bed_guard());
    CU_ASSERT_FATAL(manager_bed_await(has_killed, NULL));
    text = capture_end(&c);
    CU_ASSERT_PTR_NULL(strstr(text, "warning"));
    free(text);
    check_lost(r);
    manager_bed.is_unaccepted = false;
    manager_bed.guard_error = 0;
}

/* The runner is away when its message is due. */
static void test_without_runner(void) {
    struct run *r = manager_bed_begin("one");
    char why[MANAGER_WHY_SIZE];

    CU_ASSERT(manager_bed_await_starting(r));
    CU_ASSERT_PTR_NULL(manager_blocked_by(manager_bed.manager, r, NULL, NULL, why, sizeof(why)));
    manager_bed.runner_up = false;
    TEST_STRING(manager_blocked_by(manager_bed.manager, r, NULL, NULL, why, sizeof(why)), "no berth-runner");
    manager_bed.runner_up = true;
    manager_bed_recovered();
    CU_ASSERT_PTR_NULL(manager_blocked_by(manager_bed.manager, r, NULL, NULL, why, sizeof(why)));
    manager_bed_started(r);
    check_runs_on(r);
}

/* The guard was stopped before it answered the first deadline, which berthd sends by itself. */
static void test_silent_from_the_start(void) {
    struct run *r = manager_bed_run("one");

    manager_bed.is_silent = true;
    manager_ask_guards(manager_bed.manager);
    CU_ASSERT_PTR_NOT_NULL(r->end.stuck);
    manager_bed.is_silent = false;
    check_runs_on(r);
}

/* A guard with an invalid state may hold permits. berthd has it killed, and grants nothing before it is
 * gone. */
static void test_bad_state(void) {
    struct run *r = manager_bed_run("one"), *w;
    struct message state, report;
    char id[ID_TEXT_SIZE];

    memcpy(id, r->id, sizeof(id));
    manager_bed_make_report(&report, r, "lost", 1, "none");
    manager_bed_make_state(&state, r);
    for (size_t i = 0; i < state.n_fields; i++)
        if (strcmp(state.fields[i].key, "pools") == 0)
            state.fields[i].value = "slot:no number";
    manager_bed_restart();
    manager_bed_found_guard(id);
    manager_bed_recovered();
    manager_bed.n_killed = 0;
    manager_bed_guard_state(manager_bed_guard(), &state);
    TEST_INT(manager_bed.n_killed, 1);
    w = manager_bed_begin("one");
    manager_bed_turn();
    TEST_INT(w->state, RUN_STATE_PENDING);
    manager_bed_report(&report);
    CU_ASSERT(manager_bed_await_starting(w));
}

/* Lets the timer of the stop elapse at once, not after seconds of real time. */
static void stop_is_overdue(struct run *r) {
    CU_ASSERT_FATAL(r->timer.due.heap_index > 0);
    timer_heap_unset(&r->timer.due);
    r->timer.on_elapsed(r);
}

/* While a guard hangs in a stop, the manager sends `kill` to the runner again and again. */
static void test_hangs_in_stop(void) {
    for (int by_guard = 0; by_guard < 2; by_guard++) {
        struct run *r = manager_bed_run("one");
        struct message report;

        if (by_guard)
            manager_bed_guard()->handler.on_stopping(manager_bed_guard(), SUPERVISE_REASON_TIMEOUT, r);
        else
            manager_stop_run(r, "stopped");
        TEST_INT(r->state, RUN_STATE_STOPPING);
        manager_bed.n_killed = 0;
        manager_bed.runner_up = false; /* the runner is restarting */
        stop_is_overdue(r);
        TEST_INT(manager_bed.n_killed, 0);
        manager_bed.runner_up = true;
        manager_bed_recovered();
        stop_is_overdue(r);
        TEST_INT(manager_bed.n_killed, 1);
        stop_is_overdue(r);
        TEST_INT(manager_bed.n_killed, 2);
        manager_bed_make_report(&report, r, "lost", 1, "none");
        manager_bed_report(&report);
        TEST_INT(r->state, RUN_STATE_DONE);
        TEST_INT(r->timer.due.heap_index, 0);
    }
}

static void answer_kill(const struct run *r, uint64_t token) {
    struct message_writer w;
    struct message m;

    message_begin(&w, PROTOCOL_REPORT);
    message_put(&w, "run", r->id);
    message_put(&w, "lost", "1");
    message_put_u64(&w, "killed", token);
    manager_bed_parse(&m, &w);
    manager_bed_report(&m);
}

/* The runner reports the kill of an earlier attempt, with an older token. The attempt that runs now has a
 * guard, and goes on. */
static void test_older_kill(void) {
    struct run *r = manager_bed_run("one");

    answer_kill(r, run_token(r) - 1);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    answer_kill(r, run_token(r));
    TEST_INT(r->end.result, RUN_RESULT_GUARD_DIED);
    CU_ASSERT(manager_bed_await_released(r));
}

static CU_TestInfo tests[] = {
    {"the guard of a run just started", test_started},
    {"a guard whose connection has ended", test_ended},
    {"a guard found at start", test_found},
    {"a guard that closes its connections", test_closes},
    {"a guard that ends unaccepted", test_ended_unaccepted},
    {"a start without the runner", test_without_runner},
    {"a guard that is silent from the start", test_silent_from_the_start},
    {"a guard with an invalid state", test_bad_state},
    {"a guard that hangs in a stop", test_hangs_in_stop},
    {"the kill of an older attempt", test_older_kill},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager-guard", .pSetUpFunc = manager_bed_up_recovered,
             .pTearDownFunc = manager_bed_down, .pTests = tests});
