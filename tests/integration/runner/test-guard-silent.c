/* SPDX-License-Identifier: MIT */

/* After a restart of berthd a guard does not report what it holds, because it is stopped (SIGSTOP) or
 * because berthd lacks descriptors. Nothing is granted that may be held, and no healthy run is ended. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/audit/check.h"
#include "tests/harness/host/host.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define RUNS 6

static struct host *ant;
static struct witness w;

static void down(void) {
    witness_done(&w);
    cluster_down();
}

static size_t find_guards(pid_t guards[static RUNS]) {
    size_t n = 0;

    witness_read(&w, cluster.witness);
    for (size_t i = 0; i < w.n && n < RUNS; i++)
        if (witness_is_alive(cluster.witness, &w.runs[i])) {
            guards[n] = child_parent((pid_t) w.runs[i].pid);
            TEST_FATAL(guards[n] > 1 && guards[n] != ant->berthd->pid && guards[n] != getpid(), "a command has no guard");
            n++;
        }
    return n;
}

static void signal_guards(const pid_t *guards, size_t n, int signal) {
    for (size_t i = 0; i < n; i++)
        TEST_INT(kill(guards[i], signal), 0);
}

/* Kills berthd and starts it again. berthd listens to clients while it recovers. */
static void restart(const char *pool) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    int status;

    host_kill(ant);
    host_launch(ant);
    do
        status = berth(ant, "run -n -p %s -- true", pool);
    while (status == 69 && clock_boottime() < until);
    TEST_INT(status, 75);
    CU_ASSERT(strstr(berth_err, "recovering") != NULL);
}

/* The run is ended before its lease is over. Only then does another host get its permits. */
static void is_ended(void) {
    static const char pools[] = "pool \"db\" { limit = 2 }\n";
    pid_t guards[RUNS];
    struct child *next;
    struct host *bee;
    usec_t killed, ended;

    ant = host_up("ant", "%s job \"job\" { %s pools = {\"db:2\"} stop-timeout = \"300ms\" }\n", pools, witness_at_gate("job", 7));
    bee = host_up("bee", "%s", pools);
    TEST_INT(berth(ant, "start job"), 0);
    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    next = berth_start(bee, "run -p db --name next -- %s --id next", cluster.command);
    host_await(bee, "queued", "job=next");
    TEST_INT(find_guards(guards), 1);
    stall_start();
    signal_guards(guards, 1, SIGSTOP);
    killed = clock_boottime();
    restart("db");
    witness_await_alive(cluster.witness, 0);
    ended = clock_boottime();
    (void) kill(guards[0], SIGCONT); /* the guard can do no harm any more */
    host_await(ant, "guard-died", "job=job");
    host_await(ant, "exited", "job=job result=guard-died");
    host_await(ant, "released", "job=job");
    host_await(ant, "ready", " ");
    TEST_INT(berth_end(next), 0);
    witness_read(&w, cluster.witness);
    if (stall_excuses(killed)) {
        cluster.broken = 1U << AUDIT_ABOVE_LIMIT;
    } else {
        CU_ASSERT(ended - killed < CLUSTER_LEASE_USEC);
        CU_ASSERT(witness_max(&w, "db") <= 2);
    }
    test_gate_open(&cluster.gate);
    TEST_INT(berth(ant, "start job --wait"), 7); /* and goes on as ever */
}

/* The guard was stopped for a while only: its run continues, and keeps its permit. */
static void goes_on(void) {
    pid_t guards[RUNS];
    struct child *next;

    ant = host_add_alone("ant", "pool \"slot\" { limit = 1 scope = \"host\" } job \"job\" { %s pools = {\"slot\"} }\n",
                         witness_at_gate("job", 7));
    host_start(ant);
    TEST_INT(berth(ant, "start job"), 0);
    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    TEST_INT(find_guards(guards), 1);
    signal_guards(guards, 1, SIGSTOP);
    restart("slot");
    TEST_INT(host_count(ant, "ready", " "), 0);
    TEST_INT(berth(ant, "stop job"), 69); /* not "nothing to stop": there may be something */
    CU_ASSERT(strstr(berth_err, "does not yet know") != NULL);
    for (size_t i = 0; i < 5; i++) { /* more than "nothing waits or runs" */
        static const char *const words[] = {"runs", "jobs", "pools", "explain job", "explain ffffffff"};

        TEST_INT(berth(ant, "%s", words[i]), i == 4 ? 65 : 0);
        CU_ASSERT(strstr(berth_err, "is recovering") != NULL);
    }
    TEST_INT(berth(ant, "limit slot 1"), 69); /* no event would record it */
    TEST_INT(berth(ant, "revoke 0123456789abcdef0123456789abcdef"), 69);
    next = berth_start(ant, "run -p slot --name next -- %s --id next", cluster.command);
    signal_guards(guards, 1, SIGCONT);
    host_await(ant, "ready", " ");
    host_await(ant, "queued", "job=next");
    TEST_INT(berth(ant, "runs"), 0);
    TEST_STRING(berth_err, "");
    TEST_INT(berth(ant, "run -n -p slot -- true"), 75);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=job result=failure exit_code=7");
    TEST_INT(berth_end(next), 0);
    TEST_INT(host_count(ant, "guard-died", " "), 0);
    witness_read(&w, cluster.witness);
    TEST_INT(witness_max(&w, "slot"), 1);
}

/* Limits a process to the standard descriptors, which are always open. A limit at the first free descriptor
 * is not enough, because another may become free. */
static void limit_descriptors(pid_t pid, struct rlimit *ret_before) {
    struct rlimit limit;

    TEST_INT(prlimit(pid, RLIMIT_NOFILE, NULL, ret_before), 0);
    limit = *ret_before;
    limit.rlim_cur = STDERR_FILENO + 1;
    TEST_INT(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

static void await_waiting(struct child *c) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (!strstr(child_text(c, 2), "waiting") && clock_boottime() < until && !c->ended)
        child_turn(until);
    if (!strstr(child_text(c, 2), "waiting"))
        printf("it said: %s\n%s", child_text(c, 2), host_log(ant));
    TEST_FATAL(strstr(child_text(c, 2), "waiting") != NULL, "berth run does not wait");
}

/* Each end is reported, too: the audit judges the record at the end of the test. */
static void await_started(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (host_count(ant, "started", "job=job") < RUNS && clock_boottime() < until)
        child_turn(until);
    TEST_INT(host_count(ant, "started", "job=job"), RUNS);
}

/* berthd can connect to the guards only later. Their runs go on. */
static void out_of_descriptors(void) {
    pid_t guards[RUNS];
    struct child *next;
    struct rlimit before;

    ant = host_add_alone("ant", "pool \"slot\" { limit = %d scope = \"host\" } job \"job\" { %s pools = {\"slot\"} overlap = \"allow\" }\n",
                         RUNS, witness_at_gate("job", 7));
    host_start(ant);
    for (size_t i = 0; i < RUNS; i++)
        TEST_INT(berth(ant, "start job"), 0);
    witness_await_alive(cluster.witness, RUNS);
    await_started();
    TEST_INT(find_guards(guards), RUNS);
    signal_guards(guards, RUNS, SIGSTOP);
    restart("slot");
    next = berth_start(ant, "run -v -p slot --name next -- true");
    await_waiting(next); /* so the connection before this one is closed */
    limit_descriptors(ant->berthd->pid, &before);
    signal_guards(guards, 1, SIGCONT); /* reports what it holds; berthd then connects to it as the guard of a known run */
    host_await(ant, "warning", " "); /* that it cannot connect */
    CU_ASSERT(strstr(ant->event, "Too many open files") != NULL);
    TEST_INT(prlimit(ant->berthd->pid, RLIMIT_NOFILE, &before, NULL), 0);
    signal_guards(guards + 1, RUNS - 1, SIGCONT);
    host_await(ant, "ready", " ");
    TEST_INT(witness_count_alive(cluster.witness), RUNS);
    TEST_INT(host_pool(ant, "slot", "used"), RUNS);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(next), 0);
    host_await_pool(ant, "slot", "used", 0);
    TEST_INT(host_count(ant, "exited", "job=job result=failure exit_code=7"), RUNS);
    TEST_INT(host_count(ant, "guard-died", " "), 0);
}

static bool shows(json_t *runs, const char *job, const char *state) {
    char path[64];
    const char *text;

    (void) snprintf(path, sizeof(path), "runs.name=%s.stuck", job);
    text = json_string_value(berth_at(runs, path));
    return state ? text && strstr(text, state) : !text;
}

/* Awaits that `berth runs` shows both guards in this state; NULL: as healthy. */
static void await_shown(const char *state) {
    usec_t until = clock_boottime() + 2 * HOST_PATIENCE;
    bool is_shown = false;

    while (!is_shown && clock_boottime() < until) {
        json_t *runs = berth_json(ant, "runs");

        is_shown = shows(runs, "pooled", state) && shows(runs, "free", state);
        json_decref(runs);
        child_turn(clock_boottime() + 50 * USEC_PER_MSEC);
    }
    TEST_FATAL(is_shown, "`berth runs` does not show it");
}

/* Two guards are stopped while berthd goes on. One run has a deadline, which is sent again and again. The other one has
 * none: its guard is asked when somebody looks. */
static void is_reported(void) {
    static const char *const jobs[] = {"pooled", "free"};
    char at_gate[2][512];
    pid_t guards[RUNS];

    cluster.lease = "5m"; /* longer than the guards are stopped */
    cluster.heartbeat = "1s";
    for (size_t i = 0; i < 2; i++)
        (void) snprintf(at_gate[i], sizeof(at_gate[i]), "%s", witness_at_gate(jobs[i], 0));
    ant = host_up("ant", "pool \"db\" { limit = 1 }\njob \"pooled\" { %s pools = {\"db\"} }\njob \"free\" { %s }\n", at_gate[0], at_gate[1]);
    for (size_t i = 0; i < 2; i++) {
        TEST_INT(berth(ant, "start %s", jobs[i]), 0);
        host_await(ant, "started", "job=%s", jobs[i]);
    }
    witness_await_alive(cluster.witness, 2);
    TEST_INT(find_guards(guards), 2);
    await_shown(NULL);
    signal_guards(guards, 2, SIGSTOP);
    await_shown("(berth-guard), state T");
    TEST_INT(berth(ant, "doctor --only stuck-run"), 1);
    CU_ASSERT(strstr(berth_out, "the guard of pooled (run ") != NULL);
    CU_ASSERT(strstr(berth_out, "the guard of free (run ") != NULL);
    TEST_INT(berth(ant, "explain free"), 0);
    CU_ASSERT(strstr(berth_out, "; its guard does not answer: process ") != NULL);
    signal_guards(guards, 2, SIGCONT);
    await_shown(NULL);
    for (size_t i = 0; i < 2; i++)
        TEST_INT(host_count(ant, "guard-silent", "job=%s", jobs[i]), 1);
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < 2; i++)
        host_await(ant, "exited", "job=%s result=success", jobs[i]);
}

/* Returns the pid of a prepared guard other than `other`; 0: there is none yet. */
static pid_t find_prepared(pid_t other) {
    char path[64];
    FILE *children;
    int pid, ret = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) child_parent(other), (int) child_parent(other));
    children = fopen(path, "re");
    TEST_FATAL(children != NULL, "berth-runner has no list of children");
    while (ret == 0 && fscanf(children, "%d", &pid) == 1)
        if (pid != other)
            ret = pid;
    (void) fclose(children);
    return ret;
}

/* A guard hangs before it reports the start, and its run has no deadline. The time limit of the job bounds how long it keeps
 * its permits. */
static void is_bounded(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char at_gate[512];
    pid_t guards[RUNS], guard = 0;

    (void) snprintf(at_gate, sizeof(at_gate), "%s", witness_at_gate("first", 0));
    ant = host_add_alone("ant", "pool \"slot\" { limit = 1 scope = \"host\" }\njob \"first\" { %s pools = {\"slot\"} }\n"
                         "job \"next\" { %s pools = {\"slot\"} timeout = \"1s\" stop-timeout = \"100ms\" }\n"
                         "job \"last\" { command = {\"/bin/true\"} pools = {\"slot\"} }\n", at_gate, witness_command("--id next"));
    host_start(ant);
    TEST_INT(berth(ant, "start first"), 0);
    witness_await_start(cluster.witness, "first");
    host_await(ant, "started", "job=first");
    TEST_INT(find_guards(guards), 1);
    TEST_INT(berth(ant, "start next"), 0);
    while (guard == 0 && clock_boottime() < until) {
        child_turn(clock_boottime() + 10 * USEC_PER_MSEC);
        guard = find_prepared(guards[0]);
    }
    TEST_FATAL(guard > 0, "no guard is ready");
    TEST_INT(kill(guard, SIGSTOP), 0);
    test_gate_open(&cluster.gate);
    host_await(ant, "granted", "job=next");
    TEST_INT(berth(ant, "start last"), 0);
    host_await_within(ant, 3 * HOST_PATIENCE, "stopping", "job=next");
    host_await(ant, "exited", "job=next result=not-started");
    CU_ASSERT_PTR_NOT_NULL(strstr(ant->event, "next was not started: its guard did not report the start within the timeout"));
    host_await(ant, "exited", "job=last result=success");
    TEST_INT(host_count(ant, "started", "job=next"), 0);
}

static CU_TestInfo tests[] = {
    {"a stopped guard is ended", is_ended},
    {"a stopped guard is reported", is_reported},
    CU_TEST_INFO_NULL,
};
static CU_TestInfo alone[] = {
    {"a stopped guard goes on", goes_on},
    {"a guard that stops before the start", is_bounded},
    {"berthd is out of descriptors", out_of_descriptors},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "silent guard", .pSetUpFunc = cluster_up, .pTearDownFunc = down, .pTests = tests},
            {.pName = "silent guard, without Redis", .pSetUpFunc = cluster_up_without_redis,
             .pTearDownFunc = down, .pTests = alone});
