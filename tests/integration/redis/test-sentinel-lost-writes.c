/* SPDX-License-Identifier: MIT */

/* The master is killed when its replicas have missed the last writes: a grant, a release, a grant that
 * followed it, a claim that waits. The hosts report their holders to the new master, and no limit is
 * exceeded. $BERTH_FAILOVERS: the number of times (1); each takes a lease. */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tests/harness/host/host.h"
#include "tests/harness/redis/sentinel-bed.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define DB 2 /* limit */
#define POOLS "pool \"db\" { limit = 2 }\npool \"net\" { limit = 1 }\n"
#define PATIENCE (60 * USEC_PER_SEC)

static struct sentinel_bed bed;
static struct host *ant, *bee;
static bool has_cluster;

static void stop_bed(void) {
    sentinel_bed_done(&bed);
}

static struct host *add_host(const char *name) {
    static char options[256];
    struct host *h = host_add(name, " ");

    (void) snprintf(options, sizeof(options), "%s    failover-margin = \"1s\"\n", bed.options);
    h->url = "redis:///0";
    h->redis_options = options;
    host_set_config(h, POOLS);
    host_start(h);
    host_await(h, "redis-connected", " ");
    return h;
}

static void up(void) {
    cluster_up_without_redis();
    has_cluster = true;
    cluster.on_stopped = stop_bed;
    cluster.lease = "12s";
    cluster.heartbeat = "1s";
    TEST_FATAL(sentinel_bed_start(&bed) == 0, "no sentinels");
    cluster.master = &bed.nodes[0];
    ant = add_host("ant");
    bee = add_host("bee");
    host_end_grace(ant);
}

static void down(void) {
    if (has_cluster)
        cluster_down();
    has_cluster = false;
}

static void tell_master(const char *command) {
    _cleanup_reply_ redisReply *reply = redis_command(&bed.nodes[0], command);

    CU_ASSERT_FATAL(reply && reply->type != REDIS_REPLY_ERROR);
}

static void signal_replicas(int signal) {
    for (unsigned i = 1; i < SENTINEL_BED_NODES; i++)
        (void) kill(bed.nodes[i].pid, signal);
}

/* Stops the replicas and cuts their connections, so that the master sends them no more writes. */
static void freeze_replicas(void) {
    tell_master("CONFIG SET min-replicas-to-write 0");
    CU_ASSERT(redis_number(&bed.nodes[0], "WAIT 2 0") == 2);
    signal_replicas(SIGSTOP);
    tell_master("CLIENT KILL TYPE replica");
}

static void kill_master(void) {
    usec_t until = clock_boottime() + PATIENCE;
    int master;

    redis_server_kill(&bed.nodes[0]);
    signal_replicas(SIGCONT);
    while ((master = sentinel_bed_find_master(&bed, 0)) < 0 && clock_boottime() < until)
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    TEST_FATAL(master > 0, "there is no failover");
    cluster.master = &bed.nodes[master];
}

static void check_witness(void) {
    struct witness w = {0};

    witness_read(&w, cluster.witness);
    CU_ASSERT(witness_max(&w, "db") <= DB);
    TEST_INT(witness_max(&w, "net"), 1);
    TEST_INT(w.n, 5);
    witness_done(&w);
}

/* --- the runs: those of ant before and after the replicas miss writes, those of bee, and one that waits ---
 */

static struct child *released, *granted, *other, *next, *waiting;

static void set_scene(void) {
    struct test_gate gate;

    test_gate_make(&gate, "first");
    released = berth_start(ant, "run -p net --name released -- %s --id released --gate %s", cluster.command,
                           gate.path);
    host_await(ant, "started", "job=released");
    freeze_replicas();
    granted = berth_at_gate(ant, "-p db", "granted", "started");
    other = berth_at_gate(bee, "-p db", "other", "started");
    test_gate_open(&gate);
    TEST_INT(berth_end(released), 0);
    test_gate_done(&gate);
    next = berth_at_gate(bee, "-p net", "next", "started");
    waiting = berth_start(bee, "run -p db --name waiting -- %s --id waiting", cluster.command);
    host_await(bee, "queued", "job=waiting");
    tell_master("SET marker 1");
    host_mark(ant);
    host_mark(bee);
}

/* bee reports first to the new master, and its waiting claim would fit beside its holder. */
static void end_scene(void) {
    host_await_within(bee, PATIENCE, "redis-connected", " ");
    host_signal(ant, SIGCONT);
    host_await_within(ant, PATIENCE, "redis-connected", " ");
    host_await_within(bee, PATIENCE, "grace-ended", " ");
    host_await_pool(bee, "db", "used", DB);
    host_await_pool(bee, "db", "waiting", 1);
    host_await_pool(bee, "net", "used", 1);
    TEST_INT(host_count(bee, "granted", "job=waiting"), 0);
    TEST_INT(host_count(ant, "fenced", " ") + host_count(bee, "fenced", " "), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(granted), 0);
    TEST_INT(berth_end(other), 0);
    TEST_INT(berth_end(next), 0);
    TEST_INT(berth_end(waiting), 0);
    check_witness();
}

static void lose_writes(void) {
    set_scene();
    host_signal(ant, SIGSTOP);
    kill_master();
    TEST_INT(redis_number(cluster.master, "EXISTS marker"), 0);
    end_scene();
}

static void test_lost(void) {
    uint64_t n = test_count("BERTH_FAILOVERS", 1);

    for (uint64_t i = 0; i < n; i++) {
        up();
        lose_writes();
        down();
        if (n > 1)
            printf("writes lost %" PRIu64 " of %" PRIu64 " times: %u failures\n", i + 1, n,
                   CU_get_number_of_failures());
    }
}

static CU_TestInfo tests[] = {{"lost", test_lost}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "sentinel lost writes", .pTearDownFunc = down, .pTests = tests});
