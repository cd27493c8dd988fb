/* SPDX-License-Identifier: MIT */

/* `berth doctor`: processes that runs left behind or that cannot be stopped. Other tests run as the same
 * user at the same time, so the host has a name of its own. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/doctor/doctor.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/remedy.h"
#include "tests/harness/judge/witness.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\n"
/* Its stop signal ends no process. */
#define JOB "job \"deaf\" { pools = {\"db\"} output = \"null\" stop-signal = \"WINCH\" stop-timeout = \"100ms\" script = 'setsid sleep 1000 & wait' }\n"

static char own_name[32];
static struct host *ant;

static void up(void) {
    cluster_up_patient();
    (void) snprintf(own_name, sizeof(own_name), "doctor-%d", (int) getpid());
    ant = host_add("ant", POOLS);
    ant->called = own_name;
    host_set_config(ant, POOLS JOB);
    host_clock_give(ant);
    host_start(ant);
    host_open(ant);
}

/* Returns whether the check reports this about processes, except those that it could not read. */
static bool tells(const char *check, const char *text) {
    (void) berth(ant, "doctor -c %s --only %s", ant->config, check);
    return strstr(berth_out, text) != NULL;
}

static void await(const char *check, const char *text) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (!tells(check, text) && clock_boottime() < until)
        ;
    if (!strstr(berth_out, text))
        TEST_STRING(berth_out, text);
}

static void has_none(const char *check) {
    if (tells(check, "WARN"))
        TEST_STRING(berth_out, "");
}

/* --- stray-process --- */

static void test_stray(void) {
    struct child *holder = berth_at_gate(ant, "-p db", "holder", "started"), *stray;
    char host[64], text[64];
    char *argv[] = {(char *) "sleep", (char *) "1000", NULL};
    char *environment[] = {(char *) "BERTH_RUN=0123456789abcdef0123456789abcdef", host,
                           (char *) "BERTH_NAMESPACE=test", NULL};

    has_none("stray-process"); /* the command of a run */
    (void) snprintf(host, sizeof(host), "BERTH_HOST=%s", own_name);
    stray = child_start(argv, environment);
    (void) snprintf(text, sizeof(text), "WARN stray-process     process %d (sleep, ", (int) stray->pid);
    await("stray-process", text); /* once it is older than berthd's answer */
    CU_ASSERT(strstr(berth_out, "01234567") != NULL);
    remedy_run(ant, ant, "stray-process");
    CU_ASSERT(child_await(stray, HOST_PATIENCE));
    has_none("stray-process");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

/* A process of a run on another host, or in another namespace, belongs to another berthd. */
static void test_stray_elsewhere(void) {
    struct child *other, *old;
    char host[64];
    char *argv[] = {(char *) "sleep", (char *) "1000", NULL};
    char *of_other[] = {(char *) "BERTH_RUN=0123456789abcdef0123456789abcdef",
                        (char *) "BERTH_HOST=elsewhere", (char *) "BERTH_NAMESPACE=test", NULL};
    char *of_ours[] = {(char *) "BERTH_RUN=1123456789abcdef0123456789abcdef", host,
                       (char *) "BERTH_NAMESPACE=test", NULL};

    (void) snprintf(host, sizeof(host), "BERTH_HOST=%s", own_name);
    other = child_start(argv, of_other);
    old = child_start(argv, of_ours); /* younger than the other: when it is found, the other was looked at */
    await("stray-process", "11234567");
    CU_ASSERT(strstr(berth_out, "01234567") == NULL);
    child_free(other);
    child_free(old);
}

/* --- leaked-hold --- */

/* Runs the check at a later time. Returns the number of findings that are warnings, and the text and command of
 * the first: "kill PID". */
static size_t find_leaked(usec_t later, char text[static FINDING_TEXT_SIZE], pid_t *ret_killed) {
    struct report report = {.check = "leaked-hold"};
    struct facts facts;
    size_t n;

    client_set_socket(ant->socket);
    facts_collect(&facts, ant->config);
    CU_ASSERT_FATAL(facts.runs && facts.settings);
    facts.now = usec_add(facts.now, later);
    doctor_leaked_hold(&facts, &report);
    report_sort(&report);
    n = report_count(&report, SEVERITY_WARN);
    (void) snprintf(text, FINDING_TEXT_SIZE, "%s", n > 0 ? report.items[0].text : "");
    if (n > 0) {
        const json_t *command = json_array_get(report.items[0].commands, 0);

        TEST_STRING(json_string_value(json_array_get(command, 0)), "kill");
        *ret_killed = (pid_t) strtol(json_string_value(json_array_get(command, 1)), NULL, 10);
    }
    report_done(&report);
    facts_done(&facts);
    return n;
}

static void test_leaked(void) {
    char text[FINDING_TEXT_SIZE];
    usec_t until = clock_boottime() + HOST_PATIENCE;
    struct child *leaking;
    pid_t killed = 0;

    host_mark(ant);
    leaking = berth_start(ant, "run -p db --name leaking -- sh -c 'sleep 1000 & exit 0'");
    host_await(ant, "started", "job=leaking");
    while ((find_leaked(61 * USEC_PER_SEC, text, &killed) != 1 || !strstr(text, "(sleep")) && clock_boottime() < until)
        ; /* on a busy machine, doctor does not look at all processes in its second */
    CU_ASSERT_PTR_EQUAL(strstr(text, "leaking (run "), text);
    CU_ASSERT(strstr(text, " (sleep, 1m") && strstr(text, " old) has the hold open"));
    TEST_INT(find_leaked(0, text, &killed), 0); /* it has not lasted long */
    TEST_FATAL(killed > 0 && kill(killed, SIGTERM) == 0, text); /* as it says */
    TEST_INT(berth_end(leaking), 0);
    TEST_INT(find_leaked(61 * USEC_PER_SEC, text, &killed), 0);
}

/* A command that runs holds its permits rightly, and so do its children. */
static void test_not_leaked(void) {
    char text[FINDING_TEXT_SIZE];
    struct child *holder = berth_at_gate(ant, "-p db", "holder", "started");
    pid_t killed;

    TEST_INT(find_leaked(3600 * USEC_PER_SEC, text, &killed), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

/* --- stuck-run --- */

/* The kill of the run has no effect: all views show that. */
static void is_stuck(const char *name) {
    const char *what;
    json_t *runs;

    TEST_INT(berth(ant, "stop %s", name), 0);
    host_await(ant, "stopping", "job=%s", name);
    has_none("stuck-run"); /* it may end yet */
    for (int i = 0; i < 3; i++) /* the stop timeout; for a job, until the runner kills; then ten seconds */
        host_clock_jump(ant, 5 * USEC_PER_SEC);
    host_await(ant, "stuck", "job=%s", name);
    what = event_get(ant->event, "reason");
    CU_ASSERT(strncmp(what, "process ", 8) == 0 && strstr(what, ", state ") != NULL);
    runs = berth_json(ant, "runs %s", name);
    AT_STRING(runs, "runs.0.stuck", what);
    json_decref(runs);
    TEST_INT(berth(ant, "runs"), 0);
    CU_ASSERT(strstr(berth_out, "stuck: process ") != NULL);
    await("stuck-run", "WARN stuck-run         ");
    CU_ASSERT(strstr(berth_out, " was killed and does not end:") != NULL);
    remedy_run(ant, ant, "stuck-run"); /* until then others have its permit */
    host_await_pool(ant, "db", "limit", 3);
    TEST_INT(berth(ant, "limit db --clear"), 0);
    host_clock_lose_kills(ant, false);
    host_await(ant, "released", "job=%s", name);
    has_none("stuck-run");
}

static void test_stuck_job(void) {
    host_mark(ant);
    TEST_INT(berth(ant, "start deaf"), 0);
    host_await(ant, "started", "job=deaf");
    host_clock_lose_kills(ant, true);
    is_stuck("deaf");
}

static void test_stuck_run(void) {
    struct child *run;

    host_mark(ant);
    run = berth_start(ant, "run -p db --name mine --stop-timeout 100ms -- %s --id mine --ignore-term --for 1000000", cluster.command);
    host_await(ant, "started", "job=mine");
    witness_await_start(cluster.witness, "mine"); /* it ignores TERM from then on */
    host_clock_lose_kills(ant, true);
    is_stuck("mine");
    TEST_INT(berth_end(run), 137);
}

static CU_TestInfo tests[] = {
    {"a process of a run that is over", test_stray},
    {"a process of a run elsewhere", test_stray_elsewhere},
    {"a process has the hold of a command that is over", test_leaked},
    {"a command that runs", test_not_leaked},
    {"a job that outlives its kill", test_stuck_job},
    {"a run that outlives its kill", test_stuck_run},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor-runs", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
