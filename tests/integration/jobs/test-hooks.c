/* SPDX-License-Identifier: MIT */

/* Jobs that other jobs start: at an end, at a change between well and broken, and after a silence. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static struct host *ant;

/* `tell NAME` writes its BERTH_ variables to FOLDER/NAME.RUN. The job "flaky" ends as the file FOLDER/status
 * says. */
static void up(void) {
    char tell[512], flaky[256];

    cluster_up_without_redis();
    snprintf(tell, sizeof(tell), "command = {\"/bin/sh\", \"-c\", 'env | sort > %s/$BERTH_JOB.$BERTH_RUN'}",
             cluster.folder);
    snprintf(flaky, sizeof(flaky), "command = {\"/bin/sh\", \"-c\", 'exit $(cat %s/status)'}",
             cluster.folder);
    ant = host_add_alone("ant",
                         "pool \"one\" { limit = 1 scope = \"host\" }\n"
                         "job \"success\" { %1$s }\njob \"failure\" { %1$s pools = {\"one\"} }\njob "
                         "\"broken\" { %1$s }\njob \"recovered\" { %1$s }\n"
                         "job \"flaky\" { %2$s on-success = {\"success\"} on-failure = {\"failure\"} "
                         "on-broken = {\"broken\"} on-recovered = {\"recovered\"} }\n"
                         "job \"patient\" { %2$s on-broken = {\"broken\"} broken-after = 3 }\n"
                         "job \"tried\" { command = {\"/bin/sh\", \"-c\", 'test $BERTH_ATTEMPT = 3'} retry "
                         "= 5 retry-delay = \"10ms\" on-success = {\"success\"}"
                         " on-failure = {\"failure\"} }\n"
                         "job \"stuck\" { command = {\"/bin/sh\", \"-c\", \"exec sleep 1000\"} on-success = "
                         "{\"success\"} on-failure = {\"failure\"} on-broken = {\"broken\"} }\n"
                         "job \"silent\" { command = {\"/bin/true\"} max-silence = \"1s\" on-broken = "
                         "{\"broken\"} on-recovered = {\"recovered\"} }\n"
                         "job \"deep1\" { command = {\"/bin/true\"} on-success = {\"deep2\"} }\njob "
                         "\"deep2\" { command = {\"/bin/true\"} on-success = {\"success\"} }\n",
                         tell, flaky);
}

static void set_status(int status) {
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/status", cluster.folder);
    f = fopen(path, "w");
    TEST_FATAL(f != NULL, "status");
    if (!f)
        return;
    fprintf(f, "%d\n", status);
    CU_ASSERT(fclose(f) == 0);
}

/* The BERTH_ variables of a run of the hook, until the next call. */
static const char *facts_of(const char *hook, const char *run) {
    static char text[8192];
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s.%s", cluster.folder, hook, run);
    f = fopen(path, "r");
    text[0] = '\0';
    if (f) {
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        (void) fclose(f);
    }
    return text;
}

static void expect_fact(const char *text, const char *fact) {
    char line[256];

    snprintf(line, sizeof(line), "\n%s\n", fact);
    if (!strstr(text, line)) {
        printf("no fact %s in:\n%s", fact, text);
        CU_FAIL("a hook lacks a fact");
    }
}

/* ---- the end of a run ---- */

static void facts(void) {
    char run[ID_TEXT_SIZE], hook[ID_TEXT_SIZE], fact[128];
    const char *text;

    host_start(ant);
    set_status(9);
    TEST_INT(berth(ant, "start flaky --wait"), 9);
    snprintf(run, sizeof(run), "%s", event_get(host_await(ant, "exited", "job=flaky"), "run"));
    snprintf(hook, sizeof(hook), "%s",
             event_get(host_await(ant, "exited", "job=failure of_job=flaky of_run=%s", run), "run"));
    text = facts_of("failure", hook);
    snprintf(fact, sizeof(fact), "BERTH_OF_RUN=%s", run);
    expect_fact(text, fact);
    snprintf(fact, sizeof(fact), "BERTH_OF_FIRST_RUN=%s", run);
    expect_fact(text, fact);
    expect_fact(text, "BERTH_OF_JOB=flaky");
    expect_fact(text, "BERTH_OF_RESULT=failure");
    expect_fact(text, "BERTH_OF_EXIT_CODE=9");
    expect_fact(text, "BERTH_OF_EVENT=failure");
    expect_fact(text, "BERTH_OF_HOST=ant");
    expect_fact(text, "BERTH_OF_TRIGGER=start");
    expect_fact(text, "BERTH_OF_ATTEMPT=1");
    expect_fact(text, "BERTH_OF_BAD=1");
    expect_fact(text, "BERTH_DEPTH=1");
    expect_fact(text, "BERTH_TRIGGER=hook");
    CU_ASSERT(strstr(text, "\nBERTH_OF_ENDED=2") != NULL);
    CU_ASSERT(strstr(text, "\nBERTH_OF_SINCE=2") != NULL);
    CU_ASSERT(strstr(text, "\nBERTH_OF_SIGNAL=") == NULL);
    host_await(ant, "exited", "job=broken of_job=flaky");
    set_status(0);
    TEST_INT(berth(ant, "start flaky --wait"), 0);
    snprintf(hook, sizeof(hook), "%s", event_get(host_await(ant, "exited", "job=recovered"), "run"));
    text = facts_of("recovered", hook);
    expect_fact(text, "BERTH_OF_EVENT=recovered");
    expect_fact(text, "BERTH_OF_BAD=1");
    expect_fact(text, "BERTH_OF_RESULT=success");
    host_await(ant, "exited", "job=success of_job=flaky");
}

/* The hook runs once, after the last attempt. */
static void after_the_chain(void) {
    host_start(ant);
    TEST_INT(berth(ant, "start tried --wait"), 0);
    host_await(ant, "exited", "job=success of_job=tried");
    TEST_INT(host_count(ant, "started", "job=tried"), 3);
    TEST_INT(host_count(ant, "queued", "job=failure"), 0);
    TEST_INT(host_count(ant, "started", "job=failure"), 0);
    TEST_INT(host_count(ant, "started", "job=success"), 1);
}

static void not_after_a_stop(void) {
    host_start(ant);
    TEST_INT(berth(ant, "start stuck"), 0);
    host_await(ant, "started", "job=stuck");
    TEST_INT(berth(ant, "stop stuck"), 0);
    host_await(ant, "exited", "job=stuck result=stopped");
    TEST_INT(berth(ant, "start deep1 --wait"), 0);
    host_await(ant, "exited", "job=success of_job=deep2"); /* a hook's own hook */
    TEST_INT(host_count(ant, "started", "job=failure"), 0);
    TEST_INT(host_count(ant, "started", "job=broken of_job=stuck"), 0);
    TEST_INT(host_count(ant, "broken", "job=stuck"), 0);
}

/* ---- well and broken ---- */

#define MANY 40 /* BERTH_TEST_RUNS=1000 for more */

static int how_many(void) {
    const char *text = getenv("BERTH_TEST_RUNS");

    return text && atoi(text) > 1 ? atoi(text) : MANY;
}

/* Bad many times in a row, then good: one alert, one all-clear, and on-failure each time. */
static void bad_many_times(void) {
    int n = how_many();

    host_start(ant);
    set_status(1);
    for (int i = 0; i < n; i++)
        TEST_INT(berth(ant, "start flaky --wait"), 1);
    set_status(0);
    TEST_INT(berth(ant, "start flaky --wait"), 0);
    host_await(ant, "exited", "job=recovered");
    host_await_count(ant, (unsigned) n, "exited", "job=failure");
    TEST_INT(host_count(ant, "started", "job=failure"), n);
    TEST_INT(host_count(ant, "started", "job=broken of_job=flaky"), 1);
    TEST_INT(host_count(ant, "started", "job=recovered of_job=flaky"), 1);
    TEST_INT(host_count(ant, "broken", "job=flaky"), 1);
    TEST_INT(host_count(ant, "recovered", "job=flaky"), 1);
}

/* The next berthd remembers the number of bad runs. */
static void bad_over_a_restart(void) {
    json_t *jobs;

    host_start(ant);
    set_status(2);
    TEST_INT(berth(ant, "start patient --wait"), 2);
    TEST_INT(berth(ant, "start patient --wait"), 2);
    TEST_INT(host_count(ant, "broken", "job=patient"), 0);
    host_kill(ant);
    host_start(ant);
    TEST_INT(berth(ant, "start patient --wait"), 2);
    host_await(ant, "broken", "job=patient");
    host_await(ant, "exited", "job=broken of_job=patient");
    jobs = berth_json(ant, "jobs");
    CU_ASSERT(json_is_true(berth_at(jobs, "jobs.name=patient.broken")));
    AT_INT(jobs, "jobs.name=patient.bad", 3);
    json_decref(jobs);
}

static void silence(void) {
    host_start(ant);
    host_await(ant, "overdue", "job=silent");
    host_await(ant, "broken", "job=silent");
    expect_fact(facts_of("broken", event_get(host_await(ant, "exited", "job=broken of_job=silent"), "run")),
                "BERTH_OF_EVENT=overdue");
    host_await_count(ant, 2, "overdue", "job=silent");
    TEST_INT(berth(ant, "jobs silent"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " overdue "));
    TEST_INT(host_count(ant, "broken", "job=silent"), 1);
    TEST_INT(berth(ant, "start silent --wait"), 0);
    host_await(ant, "recovered", "job=silent");
    host_await(ant, "exited", "job=recovered of_job=silent");
}

/* ---- many at once ---- */

#define STORM 60

static void count_mails(char seen[static STORM]) {
    char path[64], line[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/mails", cluster.folder);
    f = fopen(path, "r");
    TEST_FATAL(f != NULL, "mails");
    if (!f)
        return;
    while (fgets(line, sizeof(line), f)) {
        int i = atoi(line + 1);

        if (line[0] == 'j' && i >= 0 && i < STORM)
            seen[i]++;
    }
    (void) fclose(f);
}

/* Jobs that fail in the same moment: a run of the hook for each, with its own facts, one at a time by the
 * hook's pool. */
static void storm(void) {
    _cleanup_free_ char *text = NULL;
    char seen[STORM] = {};
    size_t size;
    FILE *f = open_memstream(&text, &size);

    TEST_FATAL(f != NULL, "memory");
    if (!f)
        return;
    fprintf(f,
            "pool \"one\" { limit = 1 scope = \"host\" }\n"
            "job \"mail\" { command = {\"/bin/sh\", \"-c\", 'mkdir %s/alone && echo $BERTH_OF_JOB >> "
            "%s/mails; rmdir %s/alone'} pools = {\"one\"} }\n",
            cluster.folder, cluster.folder, cluster.folder);
    for (int i = 0; i < STORM; i++)
        fprintf(f, "job \"j%d\" { command = {\"/bin/false\"} on-failure = {\"mail\"} at-start = true }\n",
                i);
    CU_ASSERT(fclose(f) == 0);
    host_set_config(ant, "%s", text);
    host_start(ant);
    host_await_count(ant, STORM, "exited", "job=mail result=success");
    TEST_INT(host_count(ant, "started", "job=mail"), STORM);
    count_mails(seen);
    for (int i = 0; i < STORM; i++)
        TEST_INT(seen[i], 1);
}

/* Two runs of a hook overlap, whatever its own overlap option is. */
static void hooks_overlap(void) {
    host_set_config(ant,
                    "job \"hook\" { %s overlap = \"skip\" }\n"
                    "job \"bad\" { command = {\"/bin/false\"} on-failure = {\"hook\"} }\n"
                    "pool \"one\" { limit = 1 scope = \"host\" }\n",
                    witness_at_gate("hook", 0));
    host_start(ant);
    TEST_INT(berth(ant, "start bad --wait"), 1);
    TEST_INT(berth(ant, "start bad --wait"), 1);
    host_await_count(ant, 2, "started", "job=hook");
    TEST_INT(berth(ant, "start hook"), 75); /* any other trigger is skipped */
    test_gate_open(&cluster.gate);
    host_await_count(ant, 2, "exited", "job=hook result=success");
}

/* If a hook hangs, a hundred of its runs wait, and more are skipped. */
static void hook_limit(void) {
    struct child *c;

    host_start(ant);
    set_status(1);
    c = berth_at_gate(ant, "-p one", "holder", "started");
    for (int i = 0; i < 102; i++)
        TEST_INT(berth(ant, "start flaky --wait"), 1);
    host_await_count(ant, 100, "queued", "job=failure");
    host_await_count(ant, 2, "skipped", "job=failure reason=hook-limit of_job=flaky");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
    host_await_count(ant, 100, "exited", "job=failure");
}

/* Hooks of hooks end at the eighth. */
static void depth(void) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    TEST_FATAL(f != NULL, "memory");
    if (!f)
        return;
    for (int i = 0; i < 10; i++)
        fprintf(f, "job \"h%d\" { command = {\"/bin/true\"} on-success = {\"h%d\"} }\n", i, i + 1);
    fprintf(f, "job \"h10\" { command = {\"/bin/true\"} }\npool \"one\" { limit = 1 scope = \"host\" }\n");
    CU_ASSERT(fclose(f) == 0);
    host_set_config(ant, "%s", text);
    host_start(ant);
    TEST_INT(berth(ant, "start h0"), 0);
    host_await(ant, "skipped", "job=h9 reason=hook-depth of_job=h8");
    TEST_INT(host_count(ant, "started", "job=h8 of_job=h7"), 1);
    TEST_INT(host_count(ant, "started", "job=h9"), 0);
}

/* ---- over the death of berthd ---- */

#define ROUNDS 12 /* BERTH_TEST_RUNS=100 for more */

static void read_lines(const char *name, char *buffer, size_t size) {
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", cluster.folder, name);
    f = fopen(path, "r");
    buffer[0] = '\0';
    if (f) {
        buffer[fread(buffer, 1, size - 1, f)] = '\0';
        (void) fclose(f);
    }
}

static void forget_lines(const char *name) {
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", cluster.folder, name);
    (void) unlink(path);
}

/* berthd is killed at some moment of four attempts and of the hook after them: each is begun once. */
static void killed_at_any_time(void) {
    int n = getenv("BERTH_TEST_RUNS") ? how_many() : ROUNDS;
    char text[256];

    host_set_config(
        ant,
        "job \"count\" { command = {\"/bin/sh\", \"-c\", 'echo $BERTH_ATTEMPT >> %s/attempts; exit 1'} "
        "retry = 3"
        " retry-delay = \"20ms\" retry-delay-max = \"20ms\" on-failure = {\"mail\"} }\n"
        "job \"mail\" { command = {\"/bin/sh\", \"-c\", 'echo $BERTH_OF_ATTEMPT >> %s/mails'} }\n"
        "pool \"one\" { limit = 1 scope = \"host\" }\n",
        cluster.folder, cluster.folder);
    host_start(ant);
    for (int i = 0; i < n; i++) {
        usec_t until = clock_boottime() + HOST_PATIENCE;

        TEST_INT(berth(ant, "start count"), 0);
        (void) usleep((useconds_t) (i % 40) * 5000);
        host_kill(ant);
        host_start(ant);
        while (berth_count_runs(ant) > 0 && clock_boottime() < until) /* also attempts that are still to come */
            ;
        read_lines("mails", text, sizeof(text));
        TEST_STRING(text, "4\n");
        read_lines("attempts", text, sizeof(text));
        TEST_STRING(text, "1\n2\n3\n4\n");
        forget_lines("mails");
        forget_lines("attempts");
    }
}

static CU_TestInfo tests[] = {
    {"facts", facts},
    {"after the chain", after_the_chain},
    {"not after a stop", not_after_a_stop},
    {"bad many times", bad_many_times},
    {"bad over a restart", bad_over_a_restart},
    {"silence", silence},
    {"storm", storm},
    {"overlap", hooks_overlap},
    {"hook-limit", hook_limit},
    {"depth", depth},
    {"killed at any time", killed_at_any_time},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "hooks", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
