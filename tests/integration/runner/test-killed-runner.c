/* SPDX-License-Identifier: MIT */

/* kill -9 of guards and of the runner, and a runner that hangs. */

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 2 }\n"

static struct host *ant, *bee;
static struct witness w;

static void down(void) {
    witness_done(&w);
    cluster_down();
}

/* A host with a job named "job" on all of db. */
static struct host *host_with_job(const char *command) {
    return host_up("ant", POOLS "job \"job\" { %s pools = {\"db:2\"} stop-timeout = \"700ms\" }\n", command);
}

/* Returns the guard of the only run. */
static pid_t guard_pid(void) {
    pid_t guard;

    witness_read(&w, cluster.witness);
    CU_ASSERT_FATAL(w.n > 0);
    guard = child_parent((pid_t) w.runs[0].pid);
    TEST_FATAL(guard > 1 && guard != ant->berthd->pid && guard != getpid(), "the command has no guard");
    return guard;
}

static pid_t runner_pid(void) {
    pid_t runner = child_parent(guard_pid());

    TEST_FATAL(runner > 1 && runner != ant->berthd->pid && runner != getpid(), "the guard has no runner");
    return runner;
}

static void guard_is_killed(void) {
    struct child *c;

    ant = host_with_job(witness_command("--id job --ignore-term --for 60000"));
    c = berth_start(ant, "start job --wait");
    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    TEST_INT(kill(guard_pid(), SIGKILL), 0);
    host_await(ant, "guard-died", "job=job");
    TEST_INT(berth_end(c), 125);
    TEST_INT(witness_count_alive(cluster.witness), 0);
    host_await(ant, "released", "job=job");
}

/* A guard that hangs does not stop its run at the time limit. berthd does, and the permits return. */
static void guard_hangs_past_the_timeout(bool is_restarted) {
    pid_t guard;

    cluster.lease = "60s"; /* the lease is not what ends the run */
    ant = host_add("ant", POOLS "job \"job\" { %s pools = {\"db:2\"} timeout = \"20s\" stop-timeout = \"100ms\" }\n",
                   witness_command("--id job --for 60000"));
    host_clock_give(ant);
    host_start(ant);
    host_open(ant);
    TEST_INT(berth(ant, "start job"), 0);
    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    guard = guard_pid();
    if (is_restarted) {
        host_kill(ant);
        host_start(ant);
    }
    TEST_INT(kill(guard, SIGSTOP), 0);
    host_clock_jump(ant, 20 * USEC_PER_SEC);
    host_await(ant, "stopping", "job=job reason=timeout");
    host_await(ant, "exited", "job=job result=guard-died reason=timeout");
    host_await(ant, "released", "job=job");
    TEST_INT(witness_count_alive(cluster.witness), 0);
    TEST_INT(berth(ant, "run -n -p db:2 -- true"), 0);
}

static void guard_hangs(void) {
    guard_hangs_past_the_timeout(false);
}

static void guard_hangs_after_a_restart(void) {
    guard_hangs_past_the_timeout(true);
}

/* berthd's own runner dies: a new one finds the guards. */
static void runner_is_killed(void) {
    ant = host_with_job(witness_at_gate("job", 7));
    TEST_INT(berth(ant, "start job"), 0);
    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    TEST_INT(kill(runner_pid(), SIGKILL), 0);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=job result=failure exit_code=7");
    host_await(ant, "released", "job=job");
    TEST_INT(berth(ant, "start job --wait"), 7);
}

/* The socket exists before the guard, the report after it, until berthd acknowledges the report. */
static void await_files_gone(struct host *h, const char *run) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char pattern[160];
    glob_t found;
    int k;

    snprintf(pattern, sizeof(pattern), "%s/runner/runs/%s*", h->runtime, run);
    while ((k = glob(pattern, 0, NULL, &found)) == 0 && clock_boottime() < until) {
        globfree(&found);
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    }
    TEST_INT(k, GLOB_NOMATCH);
}

/* A runner that hangs starts nothing, and the host gives its permits back. The run waits in its place, and
 * begins when the runner goes on. A run that is stopped meanwhile does not begin. */
static void hang(bool is_stopped) {
    char run[64];
    struct child *c;
    pid_t runner;

    cluster.lease = "6s"; /* none is lost here, however busy the machine is */
    ant = host_with_job(witness_at_gate("@run", 0));
    bee = host_up("bee", POOLS);
    c = berth_start(ant, "start job --wait");
    witness_await_alive(cluster.witness, 1);
    runner = runner_pid();
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
    host_await(ant, "released", "job=job");
    TEST_INT(kill(runner, SIGSTOP), 0);
    host_mark(ant);
    c = berth_start(ant, "start job --wait");
    snprintf(run, sizeof(run), "%s", event_get(host_await(ant, "granted", "job=job"), "run"));
    if (is_stopped)
        TEST_INT(berth(ant, "stop job"), 0);
    TEST_INT(berth(bee, "run -p db:2 -- true"), 0);
    if (is_stopped) {
        TEST_INT(berth_end(c), 125);
        host_await(ant, "exited", "run=%s result=not-started", run);
    } else {
        host_await(ant, "released", "run=%s result=not-started", run);
    }
    TEST_INT(kill(runner, SIGCONT), 0);
    TEST_INT(is_stopped ? berth(ant, "start job --wait") : berth_end(c), 0);
    await_files_gone(ant, run);
    witness_read(&w, cluster.witness);
    TEST_INT(w.n, 2);
}

static void runner_hangs(void) {
    hang(false);
}
static void runner_hangs_and_stop(void) {
    hang(true);
}

static CU_TestInfo tests[] = {
    {"a guard is killed", guard_is_killed},
    {"a guard hangs past the timeout", guard_hangs},
    {"a guard hangs past the timeout, after a restart of berthd", guard_hangs_after_a_restart},
    {"the runner is killed", runner_is_killed},
    {"the runner hangs", runner_hangs},
    {"the runner hangs, and what it should start is stopped", runner_hangs_and_stop},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "killed-runner", .pSetUpFunc = cluster_up, .pTearDownFunc = down, .pTests = tests});
