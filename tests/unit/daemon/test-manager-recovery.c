/* SPDX-License-Identifier: MIT */

/* What the manager finds at start and after its runner was away: guards, reports, queued runs; nothing is granted before it knows. */

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/harness/capture.h"
#include "tests/harness/manager-bed.h"
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
    TEST_INT(r->state, RUN_STATE_RUNNING); /* nothing is given back without a report */
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

/* A killed berthd: its guard and its queued run are found again, nothing is started twice. */
static void test_restart(void) {
    struct run *r, *w, *found;
    char running[ID_TEXT_SIZE], waiting[ID_TEXT_SIZE];
    uint64_t ticket, token;
    struct message state;

    r = manager_bed_run("one");
    w = manager_bed_begin("one");
    CU_ASSERT(manager_bed_await_waiting(w));
    ticket = r->host_claim.ticket;
    token = run_token(r);
    CU_ASSERT(ticket > 0 && token > 0);
    memcpy(running, r->id, sizeof(running));
    memcpy(waiting, w->id, sizeof(waiting));
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
    TEST_INT(found->host_claim.ticket, ticket);
    TEST_INT(run_token(found), token);
    w = manager_find_run(manager_bed.manager, waiting);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    TEST_INT(w->state, RUN_STATE_WAITING);
    manager_bed_turn();
    TEST_INT(w->state, RUN_STATE_WAITING); /* the limit of 1 is used by what was found */
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

/* What waited without a ticket (Redis was away) keeps its order over a restart. */
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

/* A guard that died before it sent what it held: nothing is granted before the runner's report says that nothing is left. */
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

/* A berthd that was killed between a command's start and its event, or after that: the next one logs what is not logged. */
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

/* What was begun without permits has no token, and gets none. */
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

static size_t n_runs(const char *name) {
    struct manager_job job;

    manager_get_job(manager_bed.manager, settings_find_job(manager_settings(manager_bed.manager), name),
                    &job);
    return job.n_runs;
}

/* What is queued behind another keeps its id over a restart, and begins when that is over. */
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
    TEST_INT(n_runs("queued"), 2);
    manager_bed.n_started = 0;
    manager_bed_guard_state(manager_bed_guard(), &state); /* on the second connection */
    manager_bed_guard_report(manager_find_run(manager_bed.manager, running), "code", 0, "none");
    CU_ASSERT(manager_bed_await_starts(1));
    next = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(next && next->state == RUN_STATE_STARTING);
    TEST_INT(n_runs("queued"), 1);
}

/* A run that was queued behind another and is starting, while the job's record says still that it is queued. */
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

/* berthd was killed when it had begun what was queued, and had not noted that: it is begun once. */
static void test_queued_and_begun(void) {
    char queued[ID_TEXT_SIZE];
    struct run *next;

    begin_unnoted(queued);
    manager_bed_restart();
    manager_bed_recovered();
    TEST_INT(n_runs("queued"), 1);
    next = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(next && manager_bed_await_starting(next));
}

/* The same, and it was over before the next berthd came. */
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
    TEST_INT(n_runs("queued"), 0);
    manager_bed_turn();
    TEST_INT(manager_bed.n_started, 0);
}

/* Triggered while it is not known yet what runs: overlap is judged when it is. */
static void test_overlap_after_recovering(void) {
    static const char *const jobs[] = {"skipped", "queued"};

    for (size_t i = 0; i < ELEMENTSOF(jobs); i++) {
        struct run *r = manager_bed_run(jobs[i]), *next;
        struct message state;
        char id[ID_TEXT_SIZE];

        memcpy(id, r->id, sizeof(id));
        manager_bed_make_state(&state, r);
        manager_bed_restart();
        next = manager_bed_begin(jobs[i]);
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

/* A run triggered while berthd recovers. berthd is killed then: the client has the id, and the next berthd begins the run. */
static void test_begun_while_recovering(void) {
    char begun[ID_TEXT_SIZE], running[ID_TEXT_SIZE], queued[ID_TEXT_SIZE];
    struct run *r = manager_bed_run("queued");
    struct message state;

    memcpy(running, r->id, sizeof(running));
    manager_bed_make_state(&state, r);
    manager_bed_restart();
    memcpy(begun, manager_bed_begin("one")->id, sizeof(begun));
    memcpy(queued, manager_bed_begin("queued")->id, sizeof(queued));
    for (int i = 0; i < 3; i++) { /* the second time it is known that one is queued behind another, and noted as that */
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
        TEST_INT(n_runs("queued"), 2);
        TEST_INT(manager_bed_count_files("waiting"), 2);
    }
    manager_bed_guard_state(manager_bed_guard(), &state); /* on the second connection */
    manager_bed.n_started = 0;
    manager_bed_guard_report(manager_find_run(manager_bed.manager, running), "code", 0, "none");
    CU_ASSERT(manager_bed_await_starts(1)); /* "one": there is one slot */
    r = manager_find_run(manager_bed.manager, queued);
    CU_ASSERT(r && manager_bed_await_waiting(r));
}

/* The record that cannot be recovered is named; the others are recovered. */
static void test_bad_waiting(void) {
    static const char id[] = "00000000000000000000000000000bad";
    _cleanup_free_ char *text = NULL;
    struct message_writer w;
    struct capture c;
    char path[96];

    manager_bed_restart();
    message_begin(&w, "waiting");
    message_put(&w, "run", id);
    snprintf(path, sizeof(path), "%s/waiting/%s", manager_bed.directory, id);
    TEST_INT(file_write_atomic(path, w.text, w.size, 0600), 0);
    capture_begin(&c);
    manager_bed_recovered();
    text = capture_end(&c);
    CU_ASSERT(strstr(text, id) && strstr(text, "ready: "));
}

/* What is to be stopped may be there, and not be known yet. */
static void test_stop_while_recovering(void) {
    struct run *w;
    size_t n;

    (void) manager_bed_run("one");
    manager_bed_restart();
    w = manager_bed_begin("one");
    TEST_INT(manager_stop_target(manager_bed.manager, "00000000000000000000000000000000", &n),
             MANAGER_E_RECOVERING);
    TEST_INT(manager_stop_target(manager_bed.manager, "nothing", &n), MANAGER_E_UNKNOWN);
    TEST_INT(manager_stop_target(manager_bed.manager, "one", &n), MANAGER_E_RECOVERING);
    CU_ASSERT(run_is_over(w)); /* what is known is stopped */
}

static unsigned n_idle;

static void watch_on_idle(_unused_ struct manager_idle_watch *watch) {
    n_idle++;
}

/* Drained while it is not known yet what runs and waits: what is found waiting is withdrawn, and no client is notified that the host is empty
 * before that is known. */
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
    TEST_INT(manager_drain(manager_bed.manager, 0), 0);
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

/* The same, and there is nothing. */
static void test_drained_and_nothing_found(void) {
    struct manager_idle_watch watch = {.on_idle = watch_on_idle};

    n_idle = 0;
    manager_bed_restart();
    TEST_INT(manager_drain(manager_bed.manager, 0), 0);
    CU_ASSERT(!manager_is_idle(manager_bed.manager));
    manager_watch_idle(manager_bed.manager, &watch);
    manager_bed_recovered();
    TEST_INT(n_idle, 1);
    CU_ASSERT(manager_is_idle(manager_bed.manager));
}

static CU_TestInfo tests[] = {
    {"nothing before recovered", test_nothing_before_recovered},
    {"guard gone", test_guard_gone},
    {"runner away", test_runner_away},
    {"restart", test_restart},
    {"a guard named twice", test_guard_named_twice},
    {"an end that was logged before", test_end_logged},
    {"queued behind another", test_queued_behind},
    {"queued, and begun already", test_queued_and_begun},
    {"queued, and over already", test_queued_and_over},
    {"overlap after recovering", test_overlap_after_recovering},
    {"begun while recovering", test_begun_while_recovering},
    {"a malformed record of a waiting run", test_bad_waiting},
    {"stop while recovering", test_stop_while_recovering},
    {"drained while recovering", test_drained_while_recovering},
    {"drained, and nothing found", test_drained_and_nothing_found},
    {"a restart keeps the order", test_restart_keeps_order},
    {"a guard found at start is gone", test_found_guard_gone},
    {"report of an unknown run", test_report_of_unknown_run},
    {"a start that nobody logged", test_start_logged},
    {"a run without pools", test_run_without_pools},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "manager-recover",
         .pSetUpFunc = manager_bed_up_recovered,
         .pTearDownFunc = manager_bed_down,
         .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
