/* SPDX-License-Identifier: MIT */

/* Failovers behind sentinels, while three hosts start and end runs: the master is killed, hangs, or gives
 * way by order. No run is stopped, no limit is exceeded, and waiting claims keep their order.
 * $BERTH_FAILOVERS: how many are ordered (1); of the others there are two fifths of that. Prints how long
 * the slowest host needed to reconnect. */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tests/harness/host/host.h"
#include "tests/harness/host/run-load.h"
#include "tests/harness/redis/sentinel-bed.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define HOSTS 3
#define LIMIT 4 /* of pool db */
#define POOLS "pool \"db\" { limit = 4 }\npool \"line\" { limit = 1 }\npool \"long\" { limit = 3 }\n"
#define SPARE (5 * USEC_PER_SEC) /* for a failover, beside down-after */
#define BUSY (40 * USEC_PER_SEC)
#define QUIET_LOAD (1500 * USEC_PER_MSEC) /* between two failovers */

static struct sentinel_bed bed;
static struct host *hosts[HOSTS];
static int master;

static uint64_t asked_for(void) {
    return test_count("BERTH_FAILOVERS", 1);
}

static bool is_whole(void) {
    return asked_for() > 1;
}

static void stop_bed(void) {
    for (int i = 0; i < SENTINEL_BED_NODES; i++)
        if (bed.nodes[i].pid > 0)
            (void) kill(bed.nodes[i].pid, SIGCONT);
    sentinel_bed_done(&bed);
}

/* --- hosts --- */

static void add_host(size_t i, const char *name) {
    static char options[256];
    struct host *h = host_add(name, " ");

    (void) snprintf(options, sizeof(options), "%s    failover-margin = \"1s\"\n", bed.options);
    h->url = "redis:///0";
    h->redis_options = options;
    host_set_config(h, POOLS "job \"long\" { %s pools = {\"long\"} }\n", witness_at_gate("long", 0));
    host_start(h);
    host_await(h, "redis-connected", " ");
    hosts[i] = h;
}

static void up(void) {
    static const char *const names[HOSTS] = {"ant", "bee", "cow"};

    cluster_up_without_redis();
    cluster.on_stopped = stop_bed;
    cluster.lease = is_whole() ? "20s" : "60s"; /* a failover on a busy machine fits in it */
    cluster.heartbeat = "2s";
    if (sentinel_bed_start(&bed) < 0)
        abort();
    CU_ASSERT(sentinel_bed_tell(
        &bed, is_whole() ? "SENTINEL SET " SENTINEL_BED_MASTER " down-after-milliseconds 5000"
                         : "SENTINEL SET " SENTINEL_BED_MASTER " down-after-milliseconds 2000"));
    master = 0;
    cluster.master = &bed.nodes[0];
    for (size_t i = 0; i < HOSTS; i++)
        add_host(i, names[i]);
    host_end_grace(hosts[0]);
    run_load_begin(hosts, HOSTS);
}

/* --- a line of claims that waits over the failover --- */

static struct child *line[HOSTS + 1];
static struct test_gate line_gate;

static void begin_line(unsigned round) {
    char name[24];

    (void) snprintf(name, sizeof(name), "line%u", round);
    test_gate_make(&line_gate, name);
    line[0] = berth_start(hosts[0], "run -p line --name holder%u -- %s --id holder%u --gate %s", round,
                          cluster.command, round, line_gate.path);
    host_await(hosts[0], "started", "job=holder%u", round);
    for (unsigned i = 1; i <= HOSTS; i++) {
        line[i] = berth_start(hosts[i % HOSTS], "run -p line --name w%u-%u -- %s --id w%u-%u", round, i,
                              cluster.command, round, i);
        host_await(hosts[i % HOSTS], "queued", "job=w%u-%u", round, i);
    }
}

static void end_line(unsigned round) {
    struct witness w = {0};
    usec_t before = 0;

    test_gate_open(&line_gate);
    for (unsigned i = 0; i <= HOSTS; i++)
        TEST_INT(berth_end(line[i]), 0);
    test_gate_done(&line_gate);
    witness_read(&w, cluster.witness);
    for (unsigned i = 1; i <= HOSTS; i++) {
        const struct witness_run *run;
        char id[24];

        (void) snprintf(id, sizeof(id), "w%u-%u", round, i);
        run = witness_find(&w, id);
        CU_ASSERT_FATAL(run != NULL);
        CU_ASSERT(run->start > before);
        before = run->start;
    }
    CU_ASSERT(witness_max(&w, "db") <= LIMIT);
    TEST_INT(witness_max(&w, "line"), 1);
    witness_done(&w);
}

/* --- a failover --- */

/* Returns whether the host has connected to another node than the former master. */
static bool has_moved(struct host *h) {
    char former[48];

    (void) snprintf(former, sizeof(former), "redis=%s", sentinel_bed_address(&bed, master));
    return host_count(h, "redis-connected", " ") > host_count(h, "redis-connected", "%s", former);
}

/* Returns how long the slowest host needed. */
static usec_t await_hosts(usec_t since) {
    for (size_t i = 0; i < HOSTS; i++) {
        while (!has_moved(hosts[i]) && clock_boottime() < since + BUSY)
            (void) run_load_turn();
        if (!has_moved(hosts[i]))
            sentinel_bed_show_logs(&bed);
        TEST_FATAL(has_moved(hosts[i]), "a host does not find the new master");
    }
    return clock_boottime() - since;
}

static void find_master(void) {
    char address[40];

    (void) snprintf(address, sizeof(address), "%s",
                    event_get(host_await(hosts[0], "redis-connected", " "), "redis"));
    for (int i = 0; i < SENTINEL_BED_NODES; i++)
        if (strcmp(address, sentinel_bed_address(&bed, i)) == 0)
            master = i;
    cluster.master = &bed.nodes[master];
}

/* Makes the former master a replica, and waits until the sentinels have settled. */
static void restore(int former) {
    if (bed.nodes[former].pid > 0)
        (void) kill(bed.nodes[former].pid, SIGCONT);
    else
        CU_ASSERT_FATAL(redis_server_resume(&bed.nodes[former]) == 0);
    _cleanup_reply_ _unused_ redisReply *reply =
        redis_command(&bed.nodes[former], "REPLICAOF %s %s", bed.hosts[master], bed.ports[master]);
    TEST_FATAL(sentinel_bed_await_settled(&bed, master) >= 0, "the sentinels do not settle");
}

static void kill_master(void) {
    redis_server_kill(&bed.nodes[master]);
}

static void freeze_master(void) {
    (void) kill(bed.nodes[master].pid, SIGSTOP);
}

static void order_failover(void) {
    CU_ASSERT(sentinel_bed_fail_over(&bed, master) >= 0);
}

static usec_t fail_over(unsigned round, void (*cause)(void)) {
    int former = master;
    usec_t since, took;

    begin_line(round);
    run_load_for(QUIET_LOAD);
    for (size_t i = 0; i < HOSTS; i++)
        host_mark(hosts[i]);
    since = clock_boottime();
    cause();
    took = await_hosts(since);
    find_master();
    CU_ASSERT_FATAL(master != former);
    host_end_grace(hosts[round % HOSTS]);
    run_load_for(QUIET_LOAD);
    end_line(round);
    restore(former);
    for (size_t i = 0; i < HOSTS; i++)
        TEST_INT(host_count(hosts[i], "fenced", " "), 0);
    return took;
}

/* Ends the jobs, which outlived all failovers. */
static void end(void) {
    run_load_end();
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < HOSTS; i++) {
        hosts[i]->mark = 0;
        host_await(hosts[i], "exited", "job=long result=success");
    }
}

/* most: the longest that a host may need to reconnect, if the run measures that. */
static void fail_over_often(const char *name, uint64_t n, void (*cause)(void), usec_t most) {
    usec_t worst = run_load_fail_over(name, n, fail_over, cause);

    end();
    if (is_whole() && worst > most)
        sentinel_bed_show_logs(&bed);
    CU_ASSERT(!is_whole() || worst <= most);
}

static void test_killed(void) {
    fail_over_often("killed", (asked_for() * 2 + 4) / 5, kill_master, 5 * USEC_PER_SEC + SPARE);
}

static void test_frozen(void) {
    fail_over_often("frozen", (asked_for() * 2 + 4) / 5, freeze_master, 5 * USEC_PER_SEC + SPARE);
}

static void test_ordered(void) {
    fail_over_often("ordered", asked_for(), order_failover, 5 * USEC_PER_SEC);
}

static CU_TestInfo tests[] = {
    {"killed", test_killed}, {"frozen", test_frozen}, {"ordered", test_ordered}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "sentinel failovers", .pSetUpFunc = up, .pTearDownFunc = cluster_down,
             .pTests = tests});
