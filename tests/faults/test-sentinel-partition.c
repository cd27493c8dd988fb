/* SPDX-License-Identifier: MIT */

/* A partition has the master, one host and one sentinel on one side, and all others on the other. The master
 * grants until min-replicas-max-lag is over, and the other side gets a new master. failover-margin keeps
 * their runs apart. Without it they overlap, so this test can see an overlap. $BERTH_PARTITIONS: how many
 * (1); several have the times of the manual, not short ones. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/audit/check.h"
#include "tests/harness/host/host.h"
#include "tests/harness/host/net.h"
#include "tests/harness/redis/sentinel-bed.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 2 }\n"
#define OLD_SIDE ((size_t) 0) /* network nodes: that of the first master */
#define NEW_SIDE ((size_t) 1)
#define BETWEEN ((size_t) 2) /* reaches both */
#define PATIENCE (60 * USEC_PER_SEC)

static struct sentinel_bed bed;
static bool has_cluster;

static uint64_t asked_for(void) {
    return test_count("BERTH_PARTITIONS", 1);
}

/* --- the network --- */

/* --- set-up --- */

static void stop_bed(void) {
    sentinel_bed_done(&bed);
}

static void down(void) {
    if (has_cluster)
        cluster_down();
    has_cluster = false;
}

static void up(const char *lease, const char *max_lag) {
    cluster_up_without_redis();
    has_cluster = true;
    cluster.on_stopped = stop_bed;
    cluster.lease = lease;
    TEST_FATAL(sentinel_bed_start_apart(&bed) == 0, "no sentinels");
    cluster.master = &bed.nodes[0];
    if (asked_for() == 1)
        CU_ASSERT(sentinel_bed_tell(&bed, "SENTINEL DEBUG ping-period 200 ask-period 200"));
    for (unsigned i = 0; i < SENTINEL_BED_NODES; i++) {
        _cleanup_reply_ redisReply *reply =
            redis_command(&bed.nodes[i], "CONFIG SET min-replicas-max-lag %s", max_lag);

        CU_ASSERT(reply && reply->type == REDIS_REPLY_STATUS);
    }
}

static struct host *add_host(const char *name, size_t place, const char *options, const char *jobs) {
    struct host *h = host_add(name, " ");

    h->url = "redis:///0";
    h->network = net_path(place);
    h->redis_options = options;
    host_set_config(h, POOLS "%s", jobs);
    host_start(h);
    return h;
}

/* Waits for the new master, which is not the first node. */
static int await_new_master(void) {
    usec_t until = clock_boottime() + PATIENCE;
    int master;

    while ((master = sentinel_bed_find_master(&bed, 0)) < 0 && clock_boottime() < until)
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    TEST_FATAL(master > 0, "there is no failover");
    cluster.master = &bed.nodes[master];
    return master;
}

/* --- a partition: a run of ant holds the pool on the old side, and a run of bee waits on the other one ---
 */

static struct host *ant, *bee;
static struct child *waiting;

static void set_scene(const char *margin) {
    static char options[256];
    char jobs[700];

    (void) snprintf(options, sizeof(options), "%s    failover-margin = \"%s\"\n", bed.options, margin);
    (void) snprintf(jobs, sizeof(jobs), "job \"long\" { %s pools = {\"db:2\"} stop-timeout = \"300ms\" }\n",
                    witness_at_gate("long", 0));
    ant = add_host("ant", OLD_SIDE, options, jobs);
    host_open(ant);
    bee = add_host("bee", NEW_SIDE, options, "");
    host_await(bee, "redis-connected", " ");
    TEST_INT(berth(ant, "start long"), 0);
    witness_await_start(cluster.witness, "long");
    waiting = berth_start(bee, "run -p db -- %s --id waiting --for 1000", cluster.command);
    host_await(bee, "queued", "pools=db:1");
    host_mark(ant);
    host_mark(bee);
}

/* Returns whether the runs of the two hosts overlapped, and ends all. If the machine stood still, the old run may have been killed
 * late, and nothing is known. */
static bool end_scene(const char *margin, usec_t since) {
    const struct witness_run *before, *after;
    struct witness w = {0};
    bool overlaps;

    host_await_within(bee, PATIENCE, "started", "pools=db:1");
    host_await_within(ant, PATIENCE, "fenced", "job=long");
    TEST_INT(berth_end(waiting), 0);
    witness_read(&w, cluster.witness);
    before = witness_find(&w, "long");
    after = witness_find(&w, "waiting");
    CU_ASSERT_FATAL(before && after);
    if (stall_excuses(since)) {
        cluster.broken = 1U << AUDIT_ABOVE_LIMIT;
        overlaps = false;
    } else {
        CU_ASSERT_FATAL(before->end > 0);
        overlaps = witness_max(&w, "db") > 2;
        CU_ASSERT_EQUAL(overlaps, after->start < before->end);
        printf("margin %s: the old run ends after %" PRIu64 " ms, the new one starts after %" PRIu64 " ms\n",
               margin, (before->end - since) / USEC_PER_MSEC, (after->start - since) / USEC_PER_MSEC);
    }
    witness_done(&w);
    net_heal(OLD_SIDE);
    host_await_within(ant, PATIENCE, "redis-connected", "redis=%s",
                      sentinel_bed_address(&bed, (int) (cluster.master - bed.nodes)));
    down();
    return overlaps;
}

static bool part(const char *lease, const char *max_lag, const char *margin) {
    usec_t since;

    up(lease, max_lag);
    if (strcmp(margin, "0s") == 0)
        cluster.broken = 1U << AUDIT_ABOVE_LIMIT;
    set_scene(margin);
    stall_start();
    since = clock_boottime();
    net_cut(OLD_SIDE, NEW_SIDE);
    (void) await_new_master();
    return end_scene(margin, since);
}

/* The old master accepts writes for max-lag and a second. */
static void test_margin(void) {
    uint64_t n = asked_for(), n_overlaps = 0;

    if (!net_up_or_skip())
        return;
    for (uint64_t i = 0; i < n; i++)
        n_overlaps += n > 1 ? part("10s", "10", "10s") : part("3s", "6", "5s");
    TEST_INT(n_overlaps, 0);
}

/* A busy machine may be late with the failover, but not each time. */
static void test_no_margin(void) {
    uint64_t n = asked_for(), n_overlaps = 0;

    if (!net_up_or_skip())
        return;
    for (uint64_t i = 0; i < n || (n_overlaps == 0 && i < 3); i++)
        n_overlaps += n > 1 ? part("10s", "10", "0s") : part("3s", "6", "0s");
    printf("without a margin %" PRIu64 " overlap\n", n_overlaps);
    CU_ASSERT(n_overlaps > 0);
}

/* --- a stale sentinel, first in the list --- */

static struct host *add_quiet_host(const char *name, size_t place) {
    static char options[256];

    (void) snprintf(options, sizeof(options), "%s    failover-margin = \"1s\"\n", bed.options);
    return add_host(name, place, options, "");
}

static void await_lost(struct host *h) {
    host_await(h, "redis-lost", " ");
    CU_ASSERT_PTR_NOT_NULL(strstr(h->event, "sentinels: 1 of 3 know the master"));
}

/* Hides the sentinel from the hosts between the sides. */
static void hide_sentinel(unsigned i) {
    CU_ASSERT_FATAL(net_run(BETWEEN,
                            "nft 'add table inet f; add chain inet f out { type filter hook output priority "
                            "0; }; add rule inet f out "
                            "tcp dport %s drop'",
                            bed.ports[SENTINEL_BED_NODES + i]));
}

/* Sentinels name the old master until the failover is over. */
static void await_failover_known(unsigned i) {
    usec_t until = clock_boottime() + PATIENCE;
    bool is_known = false;

    while (!is_known && clock_boottime() < until) {
        _cleanup_reply_ redisReply *reply =
            redis_command(&bed.sentinels[i], "SENTINEL GET-MASTER-ADDR-BY-NAME " SENTINEL_BED_MASTER);

        is_known =
            reply && reply->type == REDIS_REPLY_ARRAY && strcmp(reply->element[1]->str, bed.ports[0]) != 0;
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    }
    CU_ASSERT_FATAL(is_known);
}

/* The sentinel was cut off with the old master, and names it for ever. No host follows: none of its side,
 * none that reaches both sides, with or without other sentinels, and none that was connected to the new
 * master. */
static void test_stale(void) {
    struct host *hosts[4];
    char old[48], new[48];

    if (!net_up_or_skip())
        return;
    up("10s", "10");
    (void) snprintf(old, sizeof(old), "redis=%s", sentinel_bed_address(&bed, 0));
    net_cut(OLD_SIDE, NEW_SIDE);
    (void) snprintf(new, sizeof(new), "redis=%s", sentinel_bed_address(&bed, await_new_master()));
    await_failover_known(1);
    await_failover_known(2);
    hosts[0] = add_quiet_host("ant", OLD_SIDE);
    hosts[1] = add_quiet_host("bee", BETWEEN);
    host_await(hosts[1], "redis-connected", "%s", new);
    hide_sentinel(2);
    hosts[2] = add_quiet_host("cow", BETWEEN);
    host_await(hosts[2], "redis-connected", "%s", new);
    hide_sentinel(1);
    hosts[3] = add_quiet_host("dog", BETWEEN);
    await_lost(hosts[0]);
    await_lost(hosts[3]);
    host_mark(hosts[1]);
    host_mark(hosts[2]);
    _cleanup_reply_ _unused_ redisReply *reply = redis_command(cluster.master, "CLIENT KILL TYPE normal");
    host_await(hosts[1], "redis-lost", " ");
    host_await(hosts[2], "redis-lost", " ");
    net_heal(BETWEEN);
    for (size_t i = 1; i < ELEMENTSOF(hosts); i++) /* or else the session would not end */
        host_await(hosts[i], "redis-connected", "%s", new);
    net_heal(OLD_SIDE);
    host_await_within(hosts[0], PATIENCE, "redis-connected", "%s", new);
    for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
        hosts[i]->mark = 0;
        TEST_INT(host_count(hosts[i], "redis-connected", "%s", old), 0);
    }
    host_end_grace(hosts[1]);
}

static CU_TestInfo tests[] = {
    {"margin", test_margin}, {"without", test_no_margin}, {"stale", test_stale}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "sentinel partition", .pTearDownFunc = down, .pTests = tests});
