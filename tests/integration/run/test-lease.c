/* SPDX-License-Identifier: MIT */

/* Runs longer than a lease: heartbeats extend their deadline, also over a restart of berthd (R8). */

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 2 }\n"
#define LEASE (5 * USEC_PER_SEC) /* no busy machine loses it */

static struct host *ant;

static void up(void) {
    cluster_up();
    cluster.lease = "5s";
    cluster.heartbeat = "250ms";
}

/* Waits until a deadline without a new heartbeat would have passed. */
static void let_a_lease_pass(void) {
    child_pass(clock_boottime() + LEASE);
    TEST_INT(witness_count_alive(cluster.witness), 2);
}

static void longer_than_a_lease(void) {
    struct child *held;

    ant = host_up("ant", POOLS "job \"job\" { %s pools = {\"db\"} }\n", witness_at_gate("job", 0));
    held = berth_start(ant, "run -p db --name held -- %s --id held", cluster.at_gate);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "started", "job=held");
    host_await(ant, "started", "job=job");
    witness_await_alive(cluster.witness, 2);
    let_a_lease_pass();
    host_kill(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    let_a_lease_pass();
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(held), 0);
    host_await(ant, "exited", "job=held result=success");
    host_await(ant, "exited", "job=job result=success");
    TEST_INT(host_count(ant, "lease-lost", " "), 0);
}

static CU_TestInfo tests[] = {
    {"longer than a lease", longer_than_a_lease},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "lease", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
