/* SPDX-License-Identifier: MIT */

/* The slot of the namespace moves to and fro between two nodes of a cluster, key by key, while three hosts
 * start and end runs, and berthds are killed in turn. No run is stopped, no limit is exceeded, no migration
 * hangs, and nothing is left. $BERTH_MOVES: how many (2); several have the default lease. Prints how long
 * each move takes, and until all hosts are connected after it. Another move stays half done for two leases,
 * until redis-cli ends it. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tests/harness/host/host.h"
#include "tests/harness/redis/redis-nodes.h"
#include "tests/harness/host/run-load.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define HOSTS 3
#define LIMIT 4  /* of pool db */
#define POOLS "pool \"db\" { limit = 4 }\npool \"long\" { limit = 3 }\n"
#define KEY_PAUSE (20 * USEC_PER_MSEC)
#define BUSY (60 * USEC_PER_SEC)
#define QUIET_LOAD (1 * USEC_PER_SEC) /* between two moves */

static struct redis_nodes nodes;
static struct host *hosts[HOSTS];
static unsigned slot, owner;

static uint64_t asked_for(void) {
    return test_count("BERTH_MOVES", 2);
}

static void stop_nodes(void) {
    redis_nodes_done(&nodes);
}

/* --- hosts --- */

static void add_host(size_t i, const char *name) {
    static char url[96];
    struct host *h = host_add(name, " ");

    (void) snprintf(url, sizeof(url), "redis://127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s", nodes.ports[0],
                    nodes.ports[1], nodes.ports[2]);
    h->url = url;
    h->redis_options = "failover-margin = \"1s\"\n";
    host_set_config(h, POOLS "job \"long\" { %s pools = {\"long\"} }\n", witness_at_gate("long", 0));
    host_start(h);
    host_await(h, "redis-connected", " ");
    hosts[i] = h;
}

static void up(void) {
    static const char *const names[HOSTS] = {"ant", "bee", "cow"};

    cluster_up_without_redis();
    cluster.on_stopped = stop_nodes;
    cluster.lease = asked_for() > 2 ? "30s" : "60s"; /* a busy machine may need more than 30 s */
    cluster.heartbeat = "5s";
    if (redis_nodes_start(&nodes) < 0)
        abort();
    slot = redis_nodes_slot(&nodes, "berth:{test}:meta");
    owner = redis_nodes_owner(&nodes, slot);
    cluster.master = &nodes.servers[owner];
    for (size_t i = 0; i < HOSTS; i++)
        add_host(i, names[i]);
    host_end_grace(hosts[0]);
    run_load_begin(hosts, HOSTS);
}

/* --- a move --- */

/* Kills a berthd when this many keys have moved. Returns how many move in all. */
static unsigned move_keys(unsigned to, struct host *victim, unsigned kill_at) {
    unsigned n = 0;

    redis_nodes_begin_move(&nodes, slot, owner, to);
    while (redis_nodes_move_key(&nodes, slot, owner, to)) {
        run_load_for(KEY_PAUSE);
        if (n++ != kill_at)
            continue;
        host_kill(victim);
        host_start(victim);
    }
    redis_nodes_end_move(&nodes, slot, owner, to);
    owner = to;
    cluster.master = &nodes.servers[to];
    return n;
}

static void await_hosts(void) {
    usec_t until = clock_boottime() + BUSY;

    for (size_t i = 0; i < HOSTS; i++) {
        while (host_count(hosts[i], "redis-connected", "redis=127.0.0.1:%s", nodes.ports[owner]) == 0 &&
               clock_boottime() < until)
            (void) run_load_turn();
        TEST_FATAL(clock_boottime() < until, "a host does not find the node of the slot");
    }
}

/* A move loses nothing: Redis has all claims, also of hosts that have not called since. So an
 * administrator may end the grace period of the epoch that the move began. A second epoch would mean that
 * data was lost. */
static void end_grace(struct host *h) {
    for (size_t i = 0; i < HOSTS; i++)
        TEST_INT(host_count(hosts[i], "grace-begun", " "), 1);
    host_end_grace(h);
}

static unsigned n_keys;

/* Returns how long the slowest host needed to reconnect. */
static usec_t move(unsigned round, unsigned to) {
    usec_t began, moved, took;

    run_load_for(QUIET_LOAD);
    for (size_t i = 0; i < HOSTS; i++)
        host_mark(hosts[i]);
    began = clock_boottime();
    n_keys += move_keys(to, hosts[round % HOSTS], round % 9);
    moved = clock_boottime();
    await_hosts();
    took = clock_boottime() - moved;
    printf("move %u: %" PRIu64 " ms, all hosts are connected %" PRIu64 " ms later\n", round,
           (moved - began) / USEC_PER_MSEC, took / USEC_PER_MSEC);
    end_grace(hosts[round % HOSTS]);
    for (size_t i = 0; i < HOSTS; i++)
        TEST_INT(host_count(hosts[i], "fenced", " "), 0);
    return took;
}

/* Prints which commands began while more than the limit was in use. */
static void print_above(const struct witness *w) {
    for (size_t i = 0; i < w->n; i++)
        if (demands_get(&w->runs[i].seen, "db") > LIMIT)
            printf("%s on %s began at %" PRIu64 " with token %" PRIu64 ", and %u permits were in use\n",
                   w->runs[i].id, w->runs[i].host, w->runs[i].start, w->runs[i].token,
                   demands_get(&w->runs[i].seen, "db"));
}

/* Ends the jobs, which outlived all moves. */
static void end(void) {
    struct witness w = {0};

    run_load_end();
    for (size_t i = 0; i < HOSTS; i++)
        host_mark(hosts[i]);
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < HOSTS; i++)
        host_await(hosts[i], "exited", "job=long result=success");
    host_await_pool(hosts[0], "db", "used", 0);
    witness_read(&w, cluster.witness);
    print_above(&w);
    CU_ASSERT(witness_max(&w, "db") <= LIMIT);
    CU_ASSERT(witness_max(&w, "db") > 1);
    witness_done(&w);
}

static void test_moves(void) {
    uint64_t n = asked_for();
    unsigned nodes_of[] = {owner, (owner + 1) % NODES};
    usec_t worst = 0;

    for (unsigned round = 0; round < n; round++) {
        usec_t took = move(round, nodes_of[(round + 1) % 2]);

        worst = took > worst ? took : worst;
    }
    end();
    printf("%" PRIu64 " moves of %u keys, %u runs; connected again at worst after %" PRIu64 " ms\n", n,
           n_keys, run_load_count(), worst / USEC_PER_MSEC);
}

/* --- half done --- */

static void up_short(void) {
    cluster_up_without_redis();
    cluster.on_stopped = stop_nodes;
    if (redis_nodes_start(&nodes) < 0)
        abort();
    slot = redis_nodes_slot(&nodes, "berth:{test}:meta");
    owner = redis_nodes_owner(&nodes, slot);
    cluster.master = &nodes.servers[owner];
    add_host(0, "ant");
    add_host(1, "bee");
    host_end_grace(hosts[0]);
}

static void fix_cluster(void) {
    char address[32], *argv[] = {(char *) "redis-cli", (char *) "--cluster",     (char *) "fix",
                                 address,              (char *) "--cluster-yes", NULL};
    struct child *c;

    (void) snprintf(address, sizeof(address), "127.0.0.1:%s", nodes.ports[owner]);
    c = child_start(argv, NULL);
    CU_ASSERT_FATAL(c != NULL);
    CU_ASSERT(child_await(c, BUSY));
    if (c->exit_code != 0)
        printf("redis-cli: %s%s\n", child_text(c, 1), child_text(c, 2));
    TEST_INT(c->exit_code, 0);
    (void) child_free(c);
    owner = redis_nodes_owner(&nodes, slot);
    cluster.master = &nodes.servers[owner];
}

/* A run that holds permits is stopped in time, and no run is granted any. After the move and a grace
 * period, runs start again. */
static void test_half_done(void) {
    struct child *held, *waiting;
    usec_t since;

    held = berth_start(hosts[0], "run -p db:4 -- %s --id held --for 600000", cluster.command);
    host_await(hosts[0], "started", "pools=db:4");
    waiting = berth_start(hosts[1], "run -p db -- %s --id waiting", cluster.command);
    host_await(hosts[1], "queued", "pools=db:1");
    since = clock_boottime();
    redis_nodes_begin_move(&nodes, slot, owner, (owner + 1) % NODES);
    CU_ASSERT(redis_nodes_move_key(&nodes, slot, owner, (owner + 1) % NODES));
    TEST_INT(berth_end(held), 76);
    CU_ASSERT(clock_boottime() - since < CLUSTER_LEASE_USEC);
    child_pass(since + 2 * CLUSTER_LEASE_USEC);
    TEST_INT(host_count(hosts[1], "granted", " "), 0);
    fix_cluster();
    since = clock_boottime();
    TEST_INT(berth_end(waiting), 0);
    printf("work goes on %" PRIu64 " ms after the fix\n", (clock_boottime() - since) / USEC_PER_MSEC);
    CU_ASSERT(clock_boottime() - since < CLUSTER_LEASE_USEC + USEC_PER_SEC + 5 * USEC_PER_SEC); /* lease and margin */
}

static CU_TestInfo tests[] = {{"key by key", test_moves}, CU_TEST_INFO_NULL};
static CU_TestInfo short_tests[] = {{"half done", test_half_done}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "cluster moves", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
            {.pName = "cluster moves", .pSetUpFunc = up_short, .pTearDownFunc = cluster_down,
             .pTests = short_tests});
