/* SPDX-License-Identifier: MIT */

/* A restart with a config that has another idea of where the permits are that runs hold: the limit holds (R1). */

#include "tests/harness/host/host.h"
#include "tests/harness/judge/witness.h"
#include "tests/harness/test.h"

#define POOL "pool \"db\" { limit = 2 }\n"
#define HOST_POOL "pool \"db\" { limit = 2 scope = \"host\" }\n"

static struct host *ant, *bee;
static struct child *held, *waiter;

/* A job and a `berth run` of ant hold all permits. */
static void hold(void) {
    host_mark(ant);
    held = berth_start(ant, "run -p db --name held -- %s --id held", cluster.at_gate);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "started", "job=held");
    host_await(ant, "started", "job=job");
    witness_await_alive(cluster.witness, 2);
}

/* They hold, and bee waits for the permits. */
static void begin(void) {
    hold();
    host_mark(bee);
    waiter = berth_start(bee, "run -p db:2 --name waiter -- true");
    host_await(bee, "queued", "job=waiter");
}

static void restart(const char *pool) {
    host_set_config(ant, "%sjob \"job\" { %s pools = {\"db\"} }\n", pool, witness_at_gate("job", 0));
    host_kill(ant);
    host_mark(ant);
    host_start(ant);
}

static void add_hosts(void) {
    ant = host_up("ant", POOL "job \"job\" { %s pools = {\"db\"} }\n", witness_at_gate("job", 0));
    bee = host_up("bee", POOL);
}

static void up(void) {
    cluster_up();
    add_hosts();
}

static void up_patient(void) {
    cluster_up_patient();
    add_hosts();
}

/* Nothing was stopped, and nobody else has the permits. */
static void all_go_on(void) {
    host_await(ant, "redis-connected", " ");
    TEST_INT(host_pool(bee, "db", "used"), 2);
    TEST_INT(witness_count_alive(cluster.witness), 2);
    TEST_INT(host_count(bee, "granted", "job=waiter"), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(held), 0);
    TEST_INT(berth_end(waiter), 0);
}

static void another_scope(void) {
    begin();
    restart(HOST_POOL);
    all_go_on();
}

/* The pool of this host is gone, and its permits are not above any limit. */
static void from_host_to_cluster(void) {
    restart(HOST_POOL);
    hold();
    restart(POOL);
    host_await(ant, "redis-connected", " ");
    TEST_INT(host_pool(bee, "db", "used"), 0);
    TEST_INT(host_count(ant, "overcommitted", " "), 0);
    TEST_INT(witness_count_alive(cluster.witness), 2);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(held), 0);
    host_await(ant, "exited", "job=job result=success");
}

/* The runs end before bee gets their permits. */
static void stopped_in_time(void) {
    host_await(ant, "warning", "no redis section");
    host_await(ant, "fenced", "job=held");
    host_await(ant, "fenced", "job=job");
    TEST_INT(berth_end(held), 76);
    TEST_INT(berth_end(waiter), 0);
    test_gate_open(&cluster.gate);
}

static void no_redis(void) {
    begin();
    ant->has_redis = false;
    restart(HOST_POOL);
    stopped_in_time();
}

/* The section comes back in time: nothing is stopped. */
static void and_back(void) {
    begin();
    ant->has_redis = false;
    restart(HOST_POOL);
    ant->has_redis = true;
    restart(POOL);
    all_go_on();
}

static CU_TestInfo tests[] = {
    {"no redis", no_redis},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo patient_tests[] = {
    {"another scope", another_scope},
    {"from host to cluster", from_host_to_cluster},
    {"and back", and_back},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "config-restart", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
            {.pName = "config-restart-patient", .pSetUpFunc = up_patient, .pTearDownFunc = cluster_down,
             .pTests = patient_tests});
