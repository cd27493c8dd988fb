/* SPDX-License-Identifier: MIT */

/* Redis as a cluster of three masters: a run lives while the slot of its namespace moves to another node. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/redis/redis-nodes.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 2 }\n"

static struct redis_nodes nodes;
static char urls[NODES][320];

static void stop_nodes(void) {
    redis_nodes_done(&nodes);
}

static void up(void) {
    cluster_up_without_redis();
    cluster.on_stopped = stop_nodes;
    cluster.lease = "8s"; /* long enough for a busy machine; also the grace period after a move */
    cluster.heartbeat = "2s";
    if (redis_nodes_start(&nodes) < 0)
        abort();
    for (unsigned i = 0; i < NODES; i++)
        (void) snprintf(urls[i], sizeof(urls[i]), "redis://127.0.0.1:%s", nodes.ports[i]);
}

static struct host *add_host(const char *name, unsigned node, const char *job) {
    static char options[96];
    struct host *h = host_add(name, " ");

    /* The timeout is as long as the config allows, because no node replies while a slot moves. */
    (void) snprintf(options, sizeof(options), "failover-margin = \"1s\"\n    timeout = \"%s\"", cluster.heartbeat);
    h->url = urls[node];
    h->redis_options = options;
    host_set_config(h, POOLS "%s", job);
    host_start(h);
    host_open(h);
    return h;
}

static void test_move(void) {
    unsigned slot = redis_nodes_slot(&nodes, "berth:{test}:meta"), from = redis_nodes_owner(&nodes, slot), to = (from + 1) % NODES;
    char job[700], address[32];
    struct host *ant, *bee;
    struct child *waiting;
    json_t *json;

    cluster.master = &nodes.servers[to]; /* whose keys are checked at the end */
    (void) snprintf(job, sizeof(job), "job \"long\" { %s pools = {\"db:2\"} }\n", witness_at_gate("long", 0));
    ant = add_host("ant", from, job);
    bee = add_host("bee", (from + 2) % NODES, ""); /* is sent on */
    TEST_INT(berth(ant, "start long"), 0);
    host_await(ant, "started", "job=long");
    waiting = berth_start(bee, "run -p db -- %s --id waiting", cluster.command);
    host_await(bee, "queued", "pools=db:1");

    redis_nodes_begin_move(&nodes, slot, from, to);
    while (redis_nodes_move_key(&nodes, slot, from, to))
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    redis_nodes_end_move(&nodes, slot, from, to);
    (void) snprintf(address, sizeof(address), "127.0.0.1:%s", nodes.ports[to]);
    host_await(ant, "redis-moved", "reason=MOVED");
    host_await(bee, "redis-moved", "reason=MOVED");
    json = berth_json(bee, "redis");
    AT_STRING(json, "state", "connected");
    AT_STRING(json, "via", "cluster");
    AT_STRING(json, "address", address);
    AT_INT(json, "slot", slot);
    AT_INT(json, "margin_ms", 1000);
    json_decref(json);

    TEST_INT(host_count(bee, "granted", "pools=db:1"), 0);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=long result=success");
    TEST_INT(berth_end(waiting), 0);
    TEST_INT(host_count(ant, "redis-lost", " "), 0);
    TEST_INT(host_count(bee, "redis-lost", " "), 0);
}

/* The node of the namespace is killed, and its replica takes over. The run lives through it, and the limit holds. */
static void test_failover(void) {
    unsigned slot = redis_nodes_slot(&nodes, "berth:{test}:meta"), owner = redis_nodes_owner(&nodes, slot);
    char job[700], address[32];
    struct host *ant, *bee;
    struct child *waiting;
    usec_t killed;

    CU_ASSERT_FATAL(redis_nodes_add_replica(&nodes, owner) == 0);
    (void) snprintf(urls[0], sizeof(urls[0]), "redis://127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s", nodes.ports[0], nodes.ports[1],
                    nodes.ports[2]);
    (void) snprintf(job, sizeof(job), "job \"long\" { %s pools = {\"db:2\"} }\n", witness_at_gate("long", 0));
    cluster.lease = "12s";
    cluster.heartbeat = "500ms";
    cluster.master = &nodes.replica;
    ant = add_host("ant", 0, job);
    bee = add_host("bee", 0, "");
    TEST_INT(berth(ant, "start long"), 0);
    host_await(ant, "started", "job=long");
    waiting = berth_start(bee, "run -p db -- %s --id waiting", cluster.command);
    host_await(bee, "queued", "pools=db:1");

    killed = clock_boottime();
    redis_server_kill(&nodes.servers[owner]);
    (void) snprintf(address, sizeof(address), "redis=127.0.0.1:%s", nodes.ports[NODES]);
    host_await(ant, "redis-connected", "%s", address);
    host_await(bee, "redis-connected", "%s", address);
    CU_ASSERT(clock_boottime() - killed < 12 * USEC_PER_SEC);
    TEST_INT(host_count(bee, "granted", "pools=db:1"), 0);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=long result=success");
    TEST_INT(berth_end(waiting), 0);
}

/* The first hosts of the url are dead, and the last one is a node without the slot. berthd tries them in
 * quick succession. */
static void test_hosts(void) {
    unsigned slot = redis_nodes_slot(&nodes, "berth:{test}:meta"), owner = redis_nodes_owner(&nodes, slot);
    unsigned other = (owner + 1) % NODES;
    char *url = urls[other];
    usec_t began = clock_boottime();
    struct host *ant;
    size_t n;

    cluster.master = &nodes.servers[owner];
    n = (size_t) snprintf(url, sizeof(urls[0]), "redis://127.0.0.1:1");
    for (int i = 2; i <= 12; i++)
        n += (size_t) snprintf(url + n, sizeof(urls[0]) - n, ",127.0.0.1:%d", i);
    (void) snprintf(url + n, sizeof(urls[0]) - n, ",127.0.0.1:%s", nodes.ports[other]);
    ant = add_host("ant", other, "");
    CU_ASSERT(clock_boottime() - began < 5 * USEC_PER_SEC); /* 12 growing pauses are 14 s */
    TEST_INT(berth(ant, "run -p db -- true"), 0);
}

static void await_connected(const char *name, unsigned node, usec_t within) {
    static char options[] = "failover-margin = \"1s\"";
    struct host *h = host_add(name, " ");
    usec_t began = clock_boottime();

    h->url = urls[node];
    h->redis_options = options;
    host_set_config(h, POOLS);
    host_start(h);
    host_await(h, "redis-connected", "redis=127.0.0.1:%s", strrchr(urls[(node + 1) % NODES], ':') + 1);
    CU_ASSERT(clock_boottime() - began < within);
}

/* The only host of the url is a replica. Then the first host is a node that the cluster has forgotten and
 * that has no slots, followed by a node of the cluster. */
static void test_seeds(void) {
    unsigned slot = redis_nodes_slot(&nodes, "berth:{test}:meta"), owner = redis_nodes_owner(&nodes, slot);
    unsigned seed = (owner + NODES - 1) % NODES; /* urls[seed]: of the host; urls[owner]: of the node of the slot */

    cluster.master = &nodes.servers[owner];
    CU_ASSERT_FATAL(redis_nodes_add_replica(&nodes, owner) == 0);
    (void) snprintf(urls[seed], sizeof(urls[seed]), "redis://127.0.0.1:%s", nodes.ports[NODES]);
    await_connected("ant", seed, 3 * USEC_PER_SEC);
    redis_reply_freep(&(redisReply *) {redis_command(&nodes.replica, "CLUSTER RESET HARD")});
    for (unsigned i = 0; i < NODES; i++)
        redis_reply_freep(&(redisReply *) {redis_command(&nodes.servers[i], "CLUSTER FORGET %s", nodes.ids[NODES])});
    (void) snprintf(urls[seed], sizeof(urls[seed]), "redis://127.0.0.1:%s,127.0.0.1:%s", nodes.ports[NODES],
                    nodes.ports[seed]);
    await_connected("bee", seed, 3 * USEC_PER_SEC);
    host_end_grace(cluster.hosts[0]);
}

static CU_TestInfo tests[] = {{"the slot moves", test_move}, {"hosts of the url", test_hosts}, {"seeds", test_seeds}, {"failover", test_failover}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "cluster", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
