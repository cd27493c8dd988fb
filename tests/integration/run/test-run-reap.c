/* SPDX-License-Identifier: MIT */

/* A `berth run` is frozen or killed, and cannot stop its command: berth-runner kills the processes of the run, before the lease ends
 * (R8) and after `berth stop`. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/judge/witness.h"
#include "cli/audit/check.h"
#include "tests/harness/redis/proxy.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 1 }\n"

static struct host *ant, *bee;
static struct proxy way; /* from ant to Redis */
static struct witness w;

static void stop_proxy(void) {
    proxy_done(&way);
}

static void up(void) {
    cluster_up();
    cluster.on_stopped = stop_proxy;
}

static void down(void) {
    witness_done(&w);
    cluster_down();
}

static void two_hosts(void) {
    char path[64];

    snprintf(path, sizeof(path), "%s/ant.redis", cluster.folder);
    TEST_FATAL(proxy_start(&way, path, cluster.redis.socket) == 0, "no proxy");
    ant = host_add("ant", POOLS);
    ant->redis = way.path;
    host_set_config(ant, POOLS);
    host_start(ant);
    host_open(ant);
    bee = host_up("bee", POOLS);
}

/* A command that ignores SIGTERM, below a shell: it outlives a `berth run` that is killed. before: words before the command. */
static struct child *start_deaf(const char *options, const char *before) {
    struct child *c = berth_start(ant, "run -p db --name deaf %s -- sh -c '%s %s --id deaf --ignore-term --for 60000 & wait'", options, before, cluster.command);

    host_await(ant, "started", "job=deaf");
    witness_await_start(cluster.witness, "deaf");
    return c;
}

/* ant loses its lease. bee gets the permit when the command is gone, not before. */
static void lose_lease(void) {
    struct child *next = berth_start(bee, "run -p db --name next -- %s --id next", cluster.command);
    unsigned n_granted;
    usec_t cut;

    stall_start();
    host_await(bee, "queued", "job=next");
    cut = clock_boottime();
    proxy_set(&way, PROXY_CUT, 0, false);
    host_await(ant, "lease-lost", "job=deaf");
    witness_await_alive(cluster.witness, 0);
    n_granted = host_count(bee, "granted", "job=next");
    TEST_INT(berth_end(next), 0);
    witness_read(&w, cluster.witness);
    if (stall_excuses(cut)) {
        cluster.broken = 1U << AUDIT_ABOVE_LIMIT;
    } else {
        TEST_INT(n_granted, 0);
        TEST_INT(witness_max(&w, "db"), 1);
    }
    proxy_set(&way, PROXY_PASS, 0, false);
    host_await_redis(ant);
}

static void frozen_and_lease_lost(void) {
    struct child *c;

    two_hosts();
    c = start_deaf("", "");
    child_kill(c, SIGSTOP);
    lose_lease();
    child_kill(c, SIGCONT);
    TEST_INT(berth_end(c), 137); /* it does not know why its command was killed; the journal does */
    host_await(ant, "fenced", "job=deaf");
    host_await(ant, "exited", "job=deaf result=lease-lost signal=9");
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0);
}

/* berth-runner reads the begin of each environment alone. */
static void frozen_with_a_large_environment(void) {
    static char large[2][100 * 1024];
    char *const environment[] = {large[0], large[1], NULL};
    struct child *c;

    for (int i = 0; i < 2; i++) {
        memset(large[i], 'x', sizeof(large[i]) - 1);
        large[i][0] = (char) ('A' + i);
        large[i][1] = '=';
    }
    two_hosts();
    ant->environment = environment;
    c = start_deaf("", "");
    ant->environment = NULL;
    child_kill(c, SIGSTOP);
    lose_lease();
    child_kill(c, SIGCONT);
    TEST_INT(berth_end(c), 137);
}

static void killed_and_lease_lost(void) {
    struct child *c;

    two_hosts();
    c = start_deaf("", "");
    child_kill(c, SIGKILL);
    TEST_INT(berth_end(c), 137);
    lose_lease();
    host_await(ant, "exited", "job=deaf result=guard-died");
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0);
}

/* A process of the run, as far as berth-runner can see. */
static struct child *start_marked(const char *granted) {
    char run[64], token[64];
    char *argv[] = {(char *) "env", run, token, (char *) "sleep", (char *) "1000", NULL};

    snprintf(run, sizeof(run), "BERTH_RUN=%s", event_get(granted, "run"));
    snprintf(token, sizeof(token), "BERTH_TOKEN=%s", event_get(granted, "token"));
    return child_start(argv, NULL);
}

/* berth-runner looks for processes of the lost grant. The client returns that grant, is granted another one, and its command ends by
 * itself. */
static void frozen_before_its_start(void) {
    struct child *hold, *c, *marked;

    two_hosts();
    hold = berth_at_gate(bee, "-p db", "hold", "started");
    c = berth_start(ant, "run -p db --name late -- %s --id late --for 300", cluster.command);
    host_await(ant, "queued", "job=late");
    child_kill(c, SIGSTOP);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(hold), 0);
    marked = start_marked(host_await(ant, "granted", "job=late"));
    proxy_set(&way, PROXY_CUT, 0, false);
    host_await(ant, "lease-lost", "job=late");
    TEST_INT(berth_end(marked), 137);
    for (int i = 0; i < 10; i++) /* until berthd has the runner's answer */
        TEST_INT(berth(ant, "runs"), 0);
    child_kill(c, SIGCONT);
    proxy_set(&way, PROXY_PASS, 0, false);
    TEST_INT(berth_end(c), 0);
    CU_ASSERT(event_get_u64(host_await(ant, "exited", "job=late result=success"), "run_ms") >= 300);
}

static void stop_it(void) {
    json_t *json = berth_json(ant, "runs");

    TEST_INT(berth(ant, "stop %s", json_string_value(berth_at(json, "runs.0.run"))), 0);
    json_decref(json);
    witness_await_alive(cluster.witness, 0);
}

/* As sudo(8) does, the command gives its child another environment. */
static void frozen_and_stopped(void) {
    struct child *c;

    ant = host_up("ant", POOLS);
    c = start_deaf("--stop-timeout 100ms", "env -u BERTH_RUN");
    child_kill(c, SIGSTOP);
    stop_it();
    TEST_INT(host_count(ant, "released", "job=deaf"), 0); /* `berth run` has the hold, and has not reported the end */
    child_kill(c, SIGCONT);
    TEST_INT(berth_end(c), 137);
    host_await(ant, "exited", "job=deaf result=stopped signal=9");
    host_await(ant, "released", "job=deaf");
}

static void killed_and_stopped(void) {
    struct child *c;

    ant = host_up("ant", POOLS);
    c = start_deaf("--stop-timeout 100ms", "");
    child_kill(c, SIGKILL);
    TEST_INT(berth_end(c), 137);
    stop_it();
    host_await(ant, "exited", "job=deaf result=guard-died");
    host_await(ant, "released", "job=deaf");
    TEST_INT(berth(ant, "run -n -p db -- true"), 0);
}

static CU_TestInfo tests[] = {
    {"berth run is frozen and its lease lost", frozen_and_lease_lost},
    {"berth run is frozen, with a large environment", frozen_with_a_large_environment},
    {"berth run is killed and its lease lost", killed_and_lease_lost},
    {"berth run is frozen before its start", frozen_before_its_start},
    {"berth run is frozen and stopped", frozen_and_stopped},
    {"berth run is killed and stopped", killed_and_stopped},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run-reap", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
