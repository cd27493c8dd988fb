/* SPDX-License-Identifier: MIT */

/* `on = "any"` while Redis loses data or is away, and on hosts with clocks ahead of Redis's. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static void hosts_up_simple(const char *more) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { %s " SHARED "%s }\n", witness_command("--id j"), more);
    sharing_up(config);
}

#define FLUSHES 4
#define FLUSH_RANGE 1000 /* ms before and after the due time */

/* Redis loses its data `after` ms after the instant that is FLUSH_RANGE before the due time. */
static void lose_data(int64_t due, long after) {
    char fields[96];
    usec_t begin = clock_boottime();

    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_mark(sharing_hosts[i]);
    sharing_clocks_at(due, -FLUSH_RANGE);
    child_pass(begin + (usec_t) after * USEC_PER_MSEC);
    freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(due));
    sharing_await_count("exited", fields, 1);
    sharing_await_count("turn-taken", fields, SHARING_HOSTS - 1);
    TEST_INT(sharing_count("started", fields), 1);
    if (sharing_count("started", fields) != 1)
        for (size_t i = 0; i < SHARING_HOSTS; i++)
            printf("%s:\n%s\n", sharing_hosts[i]->name, host_log(sharing_hosts[i]));
}

/* S18: Redis loses its data within a second of a due time, BERTH_TEST_FLUSHES times. */
static void redis_loses_data(void) {
    unsigned n = (unsigned) test_count("BERTH_TEST_FLUSHES", FLUSHES);
    const char *seed = getenv("SEED");

    cluster.lease = "5s"; /* no busy machine may cut a host off until grace ends: it must report its mark */
    srandom(seed ? (unsigned) strtoul(seed, NULL, 10) : 1);
    hosts_up_simple("");
    for (unsigned i = 0; i < n; i++)
        lose_data(SHARING_FIRST + i * SHARING_MINUTE, random() % (2 * FLUSH_RANGE));
}

static void redis_was_away(void) {
    char fields[96];

    hosts_up_simple("catch-up = \"5m\"");
    redis_server_kill(&cluster.redis);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_await(sharing_hosts[i], "redis-lost", " ");
    sharing_clocks_at(SHARING_FIRST, -20);
    child_pass(clock_boottime() + USEC_PER_SEC / 2);
    sharing_clocks_at(SHARING_FIRST + 4 * SHARING_MINUTE, 2000);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(SHARING_FIRST + 4 * SHARING_MINUTE));
    sharing_await_count("exited", fields, 1);
    TEST_INT(sharing_count("started", "job=j"), 1);
}

/* S8 for a cluster: one host logs the due times that all hosts missed. */
static void all_were_away(void) {
    char fields[96];

    hosts_up_simple("catch-up = \"5m\"");
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_kill(sharing_hosts[i]);
    sharing_clocks_at(SHARING_FIRST + 30 * SHARING_MINUTE, 2000);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_start(sharing_hosts[i]);
    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(SHARING_FIRST + 30 * SHARING_MINUTE));
    sharing_await_count("exited", fields, 1);
    sharing_await_count("turn-taken", fields, SHARING_HOSTS - 1);
    sharing_await_count("missed", "job=j reason=late", 1);
    sharing_await_count("missed", "job=j reason=backlog", 1);
    TEST_INT(sharing_count("started", "job=j"), 1);
}

/* S19: the host begins no due time early. */
static void clock_ahead(void) {
    struct host *ant = sharing_hosts[0] = host_add("ant", "job \"j\" { %s " SHARED "}\n", witness_command("--id j"));

    host_clock_give(ant);
    host_clock_set_realtime(ant, clock_realtime() + 86400 * USEC_PER_SEC);
    host_start(ant);
    host_open(ant);
    host_clock_set_realtime(ant, (clock_realtime() / USEC_PER_SEC + 86400) / 60 * 60 * USEC_PER_SEC +
                                     59500 * USEC_PER_MSEC);
    host_await(ant, "clock-ahead", "job=j");
    TEST_INT(host_count(ant, "queued", "job=j"), 0);
    TEST_INT(host_count(ant, "started", "job=j"), 0);
}

static void await_granted_turn(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (redis_number(&cluster.redis, "SCARD berth:{test}:pool:@j:held") != 1 && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    /* Redis has then sent the push of the grant, which it does after all calls that came together. */
    TEST_INT(redis_number(&cluster.redis, "SCARD berth:{test}:pool:@j:held"), 1);
}

/* A host has the grant of its turn, and its lease ends before Redis replies to the commit. The host
 * withdraws the run and starts no command. */
static void commit_is_not_answered(void) {
    struct child *holder;
    char fields[96];

    hosts_up_simple("pools = {\"db\"} prefer = {\"ant\"} } pool \"db\" { limit = 1 ");
    holder = berth_at_gate(sharing_hosts[1], "-p db", "holder", "started");
    sharing_clocks_at(SHARING_FIRST, 0);
    host_await(sharing_hosts[0], "queued", "job=j");
    host_signal(sharing_hosts[0], SIGSTOP);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    await_granted_turn();
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    host_signal(sharing_hosts[0], SIGCONT);
    host_await(sharing_hosts[0], "lease-lost", "job=j");
    snprintf(fields, sizeof(fields), "job=j due=%s result=stopped", sharing_text(SHARING_FIRST));
    host_await(sharing_hosts[0], "withdrawn", "%s", fields);
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    TEST_INT(host_count(sharing_hosts[0], "started", "job=j"), 0);
}

static CU_TestInfo tests[] = {
    {"redis-loses-data", redis_loses_data},
    {"redis-away", redis_was_away},
    {"all-away", all_were_away},
    {"clock-ahead", clock_ahead},
    {"commit-unanswered", commit_is_not_answered},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turns, Redis", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
