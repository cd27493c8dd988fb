/* SPDX-License-Identifier: MIT */

/* A berthd restarts with a config that names another namespace or another Redis, while its host holds a permit. */

#include <stdio.h>
#include <string.h>

#include "cli/audit/check.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/witness.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"

#define POOL "pool \"one\" { limit = 1 }\n"
#define JOB "job \"held\" { %s pools = {\"one\"} }\n"
#define LEASE_LOST 76 /* status of a run that its lease ended */

static struct host *ant, *bee;
static struct redis_server second;

static void stop_second(void) {
    redis_server_done(&second);
}

static void set_up(void) {
    cluster_up();
    cluster.on_stopped = stop_second;
    TEST_FATAL(redis_server_start(&second, NULL) == 0, "no second Redis");
}

/* Restarts ant with what its record names now. */
static void restart_ant(void) {
    host_kill(ant);
    host_mark(ant);
    host_set_config(ant, POOL JOB, witness_at_gate("held", 0));
    host_start(ant);
}

static unsigned count_at_once(void) {
    struct witness w = {0};
    unsigned n;

    witness_read(&w, cluster.witness);
    n = witness_max(&w, "one");
    witness_done(&w);
    return n;
}

static void start_hosts(void) {
    ant = host_up("ant", POOL JOB, witness_at_gate("held", 0));
    bee = host_up("bee", POOL);
}

/* Ant's run is stopped before bee can have its permit; then ant uses the other place. */
static void check_moved(void) {
    struct child *waiting = berth_start(bee, "run -p one --name waiting -- %s --id waiting", cluster.command);
    usec_t begun;

    host_await(bee, "queued", "job=waiting");
    stall_start();
    begun = clock_boottime();
    restart_ant();
    TEST_INT(berth_end(waiting), 0);
    if (stall_excuses(begun))
        cluster.broken = 1U << AUDIT_ABOVE_LIMIT;
    else
        TEST_INT(count_at_once(), 1);
    host_await(ant, "exited", "job=held result=lease-lost");
    TEST_INT(host_count(ant, "namespace-differs", " "), 1);
    host_await(ant, "redis-connected", " ");
    host_end_grace(ant);
    TEST_INT(berth(ant, "run -p one -- true"), 0);
}

static void test_namespace(void) {
    struct child *held;

    start_hosts();
    held = berth_at_gate(ant, "-p one", "held", "started");
    ant->namespace = "other";
    check_moved();
    TEST_INT(berth_end(held), LEASE_LOST);
}

static void test_url(void) {
    start_hosts();
    TEST_INT(berth(ant, "start held"), 0);
    host_await(ant, "started", "job=held");
    ant->redis = second.socket;
    check_moved();
}

static CU_TestInfo tests[] = {
    {"namespace", test_namespace},
    {"url", test_url},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "elsewhere", .pSetUpFunc = set_up, .pTearDownFunc = cluster_down, .pTests = tests});
