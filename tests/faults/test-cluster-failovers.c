/* SPDX-License-Identifier: MIT */

/* The node of the namespace in a cluster is killed, or gives way by order, and its replica takes over, while
 * three hosts start and end runs. No run is stopped, and no limit is exceeded. Then the node is cut off
 * together with a host that holds a permit: that run has stopped before another one starts.
 * $BERTH_FAILOVERS: how many failovers are ordered (1); two fifths of that are kills, and as many are cut
 * off. Several kills have a node timeout of 5 s. Prints how long the slowest host needed to reconnect. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/audit/check.h"
#include "tests/harness/host/host.h"
#include "tests/harness/host/net.h"
#include "tests/harness/redis/redis-nodes.h"
#include "tests/harness/host/run-load.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define HOSTS 3
#define LIMIT 4 /* of pool db */
#define POOLS "pool \"db\" { limit = 4 }\npool \"long\" { limit = 3 }\n"
#define PATIENCE (60 * USEC_PER_SEC)
/* Time between two failovers: the nodes elect a replica of the same master once in two node timeouts. */
#define QUIET_LOAD (5 * USEC_PER_SEC / 2)
#define OWNER 1                       /* the node with the slot of namespace test, at first */
#define OLD_SIDE ((size_t) 0)         /* network nodes: that of the owner */
#define NEW_SIDE ((size_t) 1)

static struct redis_nodes nodes;
static struct host *hosts[HOSTS];
static unsigned owner, standby;
static char url[4 * 32], options[80];
static bool has_cluster;

static uint64_t asked_for(void) {
    return test_count("BERTH_FAILOVERS", 1);
}

static bool is_whole(void) {
    return asked_for() > 1;
}

static void stop_nodes(void) {
    redis_nodes_done(&nodes);
}

static void start_nodes(bool is_apart, const char *timeout) {
    nodes = (struct redis_nodes){.is_apart = is_apart, .alone = OWNER, .timeout = timeout};
    TEST_FATAL(redis_nodes_start(&nodes) == 0, "no cluster");
    owner = redis_nodes_owner(&nodes, redis_nodes_slot(&nodes, "berth:{test}:meta"));
    TEST_INT(owner, OWNER);
    standby = NODES;
    TEST_FATAL(redis_nodes_add_replica(&nodes, owner) == 0, "no replica");
    cluster.master = redis_nodes_get(&nodes, owner);
    (void) snprintf(url, sizeof(url), "redis://%s:%s,%s:%s,%s:%s", nodes.hosts[0], nodes.ports[0], nodes.hosts[1],
                    nodes.ports[1], nodes.hosts[2], nodes.ports[2]);
}

static void cluster_begin(const char *lease, const char *heartbeat) {
    cluster_up_without_redis();
    has_cluster = true;
    cluster.on_stopped = stop_nodes;
    cluster.lease = lease;
    cluster.heartbeat = heartbeat;
}

static void down(void) {
    if (has_cluster)
        cluster_down();
    has_cluster = false;
}

static struct host *add_host(const char *name, const char *network, const char *margin, const char *jobs) {
    struct host *h = host_add(name, " ");

    (void) snprintf(options, sizeof(options), "failover-margin = \"%s\"\n", margin);
    h->url = url;
    h->redis_options = options;
    h->network = network;
    host_set_config(h, POOLS "%s", jobs);
    host_start(h);
    host_await(h, "redis-connected", " ");
    return h;
}

/* --- failovers under load --- */

static void up(const char *timeout) {
    static const char *const names[HOSTS] = {"ant", "bee", "cow"};
    char jobs[700];

    cluster_begin("30s", "2s");
    start_nodes(false, timeout);
    (void) snprintf(jobs, sizeof(jobs), "job \"long\" { %s pools = {\"long\"} }\n", witness_at_gate("long", 0));
    for (size_t i = 0; i < HOSTS; i++)
        hosts[i] = add_host(names[i], NULL, "1s", jobs);
    host_end_grace(hosts[0]);
    run_load_begin(hosts, HOSTS);
}

/* Returns how long the slowest host needed to reconnect. */
static usec_t await_hosts(usec_t since) {
    for (size_t i = 0; i < HOSTS; i++) {
        while (host_count(hosts[i], "redis-connected", "redis=%s:%s", nodes.hosts[standby], nodes.ports[standby]) == 0 &&
               clock_boottime() < since + PATIENCE)
            (void) run_load_turn();
        TEST_FATAL(clock_boottime() < since + PATIENCE, "a host does not find the new node of the slot");
    }
    return clock_boottime() - since;
}

static void kill_owner(void) {
    redis_server_kill(redis_nodes_get(&nodes, owner));
}

static bool is_master(unsigned i) {
    _cleanup_reply_ redisReply *role = redis_command(redis_nodes_get(&nodes, i), "ROLE");

    return role && role->type == REDIS_REPLY_ARRAY && strcmp(role->element[0]->str, "master") == 0;
}

/* Returns when the replica is the master: the other nodes may refuse to elect it for two node timeouts. */
static void order_failover(void) {
    usec_t until = clock_boottime() + PATIENCE;

    _cleanup_reply_ redisReply *reply = redis_command(redis_nodes_get(&nodes, standby), "CLUSTER FAILOVER");

    CU_ASSERT(reply && reply->type == REDIS_REPLY_STATUS);
    while (!is_master(standby) && clock_boottime() < until)
        (void) run_load_turn();
}

/* Makes one failover. When all hosts are connected again, each has reported its holders, so an
 * administrator may end the grace period. Returns how long the slowest host needed to reconnect. */
static usec_t fail_over(unsigned round, void (*cause)(void)) {
    unsigned former = owner;
    usec_t since, took;

    run_load_for(QUIET_LOAD);
    for (size_t i = 0; i < HOSTS; i++)
        host_mark(hosts[i]);
    since = clock_boottime();
    cause();
    if (cause == order_failover)
        since = clock_boottime();
    took = await_hosts(since);
    owner = standby;
    standby = former;
    cluster.master = redis_nodes_get(&nodes, owner);
    host_end_grace(hosts[round % HOSTS]);
    if (cluster.master->pid > 0 && redis_nodes_get(&nodes, former)->pid == 0)
        CU_ASSERT_FATAL(redis_server_resume(redis_nodes_get(&nodes, former)) == 0);
    TEST_FATAL(redis_nodes_await_replica(&nodes, former) == 0, "the former node does not become a replica");
    for (size_t i = 0; i < HOSTS; i++)
        TEST_INT(host_count(hosts[i], "fenced", " "), 0);
    return took;
}

/* Ends the jobs, which outlived all failovers. */
static void end(void) {
    struct witness w = {0};

    run_load_end();
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < HOSTS; i++) {
        hosts[i]->mark = 0;
        host_await(hosts[i], "exited", "job=long result=success");
    }
    witness_read(&w, cluster.witness);
    CU_ASSERT(witness_max(&w, "db") <= LIMIT);
    CU_ASSERT(witness_max(&w, "db") > 1);
    witness_done(&w);
    down();
}

/* most: the longest that a host may need to reconnect, if the run measures that. */
static void fail_over_often(const char *name, uint64_t n, void (*cause)(void), usec_t most) {
    usec_t worst;

    up(cause == kill_owner && is_whole() ? "5000" : NULL);
    worst = run_load_fail_over(name, n, fail_over, cause);
    end();
    CU_ASSERT(!is_whole() || worst <= most);
}

static void test_killed(void) {
    fail_over_often("killed", (asked_for() * 2 + 4) / 5, kill_owner, 12 * USEC_PER_SEC);
}

static void test_ordered(void) {
    fail_over_often("ordered", asked_for(), order_failover, 2 * USEC_PER_SEC);
}

/* Waits until the replica serves the slot. Redis alone decides that. */
static void await_election(void) {
    usec_t until = clock_boottime() + PATIENCE;

    while (!is_master(NODES) && clock_boottime() < until)
        child_turn(clock_boottime() + 10 * USEC_PER_MSEC);
    if (is_master(NODES))
        return;
    for (unsigned i = 0; i <= NODES; i++) {
        _cleanup_reply_ redisReply *list = redis_command(redis_nodes_get(&nodes, i), "CLUSTER NODES");

        printf("node %u knows:\n%s\n", i, list ? list->str : "no answer");
    }
    TEST_ABORT("the nodes elect no replica");
}

/* --- a partition: a run of ant holds the pool on the old side, and a run of bee waits on the other one --- */

/* The node timeout is 2 s: a master that is cut off accepts its last write within 3 s, the margin. */
static void part(void) {
    const struct witness_run *before, *after;
    struct host *ant, *bee;
    struct witness w = {0};
    struct child *waiting;
    char jobs[700];
    usec_t since;

    cluster_begin("4s", "500ms");
    start_nodes(true, NULL);
    (void) snprintf(jobs, sizeof(jobs), "job \"long\" { %s pools = {\"db:4\"} stop-timeout = \"300ms\" }\n",
                    witness_at_gate("long", 0));
    ant = add_host("ant", net_path(OLD_SIDE), "3s", jobs);
    host_end_grace(ant);
    bee = add_host("bee", net_path(NEW_SIDE), "3s", "");
    TEST_INT(berth(ant, "start long"), 0);
    witness_await_start(cluster.witness, "long");
    waiting = berth_start(bee, "run -p db -- %s --id waiting --for 500", cluster.command);
    host_await(bee, "queued", "pools=db:1");
    host_mark(ant);
    host_mark(bee);

    stall_start();
    since = clock_boottime();
    net_cut(OLD_SIDE, NEW_SIDE);
    await_election();
    cluster.master = &nodes.replica;
    host_await_within(bee, PATIENCE, "started", "pools=db:1");
    host_await_within(ant, PATIENCE, "fenced", "job=long");
    TEST_INT(berth_end(waiting), 0);
    witness_read(&w, cluster.witness);
    before = witness_find(&w, "long");
    after = witness_find(&w, "waiting");
    CU_ASSERT_FATAL(before && after);
    if (stall_excuses(since)) {
        cluster.broken = 1U << AUDIT_ABOVE_LIMIT;
    } else {
        CU_ASSERT_FATAL(before->end > 0);
        CU_ASSERT(after->start > before->end);
        CU_ASSERT(witness_max(&w, "db") <= LIMIT);
        printf("cut off: the old run ends after %" PRIu64 " ms, the new one starts after %" PRIu64 " ms\n",
               (before->end - since) / USEC_PER_MSEC, (after->start - since) / USEC_PER_MSEC);
    }
    witness_done(&w);
    net_heal(OLD_SIDE);
    host_await_within(ant, PATIENCE, "redis-connected", "redis=%s:%s", nodes.hosts[NODES], nodes.ports[NODES]);
    down();
}

static void test_parted(void) {
    uint64_t n = (asked_for() * 2 + 4) / 5;

    if (!net_up_or_skip())
        return;
    for (uint64_t i = 0; i < n; i++)
        part();
}

static CU_TestInfo tests[] = {
    {"killed", test_killed}, {"ordered", test_ordered}, {"cut off", test_parted}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "cluster failovers", .pTearDownFunc = down, .pTests = tests});
