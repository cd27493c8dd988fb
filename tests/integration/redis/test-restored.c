/* SPDX-License-Identifier: MIT */

/* Redis is restored from the same copy again and again (R10), BERTH_TEST_RESTORES times. Each time the first hello is
 * from a new berthd whose host has a new name. The clock in the copy is an hour ahead of Redis's clock.
 * One of two other hosts runs a command whose grant the copy does not have. The other one waits for the
 * same permit, and reaches Redis first. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/redis/proxy.h"
#include "tests/harness/redis/redis-clock.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOL "pool \"db\" { limit = 1 }\n"
#define HOUR (3600 * (long long) USEC_PER_SEC)
#define FENCED 76 /* status of a run whose lease ended, because the machine stood still */

static struct proxy ways[2]; /* to Redis: ant's and bee's */
static struct host *hosts[2], *newcomer;

static void stop_proxies(void) {
    for (size_t i = 0; i < ELEMENTSOF(ways); i++)
        proxy_done(&ways[i]);
}

static void set_up(void) {
    redis_clock_own();
    (void) redis_clock_set(HOUR);
    cluster_up();
    cluster.on_stopped = stop_proxies;
}

static void tear_down(void) {
    cluster_down();
    redis_clock_done();
}

static void start_hosts(void) {
    static const char *const names[] = {"ant", "bee"};

    cluster.lease = "2s";
    cluster.heartbeat = "200ms";
    for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/%s.redis", cluster.folder, names[i]);
        TEST_FATAL(proxy_start(&ways[i], path, cluster.redis.socket) == 0, "no proxy");
        hosts[i] = host_add(names[i], POOL);
        hosts[i]->redis = ways[i].path;
        host_set_config(hosts[i], POOL);
        host_start(hosts[i]);
        host_await(hosts[i], "redis-connected", " ");
    }
    host_end_grace(hosts[0]);
    newcomer = host_add("new", POOL);
}

/* The copy has both hosts and some tokens; no run holds permits or waits for them. */
static void make_copy(void) {
    for (size_t i = 0; i < ELEMENTSOF(hosts); i++)
        TEST_INT(berth(hosts[i], "run -p db --name early -- %s --id early%zu", cluster.command, i), 0);
    host_await_pool(hosts[0], "db", "used", 0);
    _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, "SAVE");
    TEST_FATAL(reply && reply->type == REDIS_REPLY_STATUS, "no copy");
    CU_ASSERT(redis_clock_set(0));
}

/* Starts a host with a new name, which sends the first hello to the restored Redis. Its berthd of the round
 * before ended in order, so the copy has no session of it. */
static void start_newcomer(unsigned round) {
    char called[32];

    snprintf(called, sizeof(called), "new-%u", round);
    newcomer->called = called;
    host_set_config(newcomer, POOL);
    host_start(newcomer);
    host_await(newcomer, "redis-connected", " ");
}

/* Waits until the hosts that reach Redis have sent several heartbeats. */
static void await_heartbeats(void) {
    long long before = redis_number(&cluster.redis, "HGET berth:{test}:meta heartbeat_count");
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (redis_number(&cluster.redis, "HGET berth:{test}:meta heartbeat_count") < before + 3 && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    TEST_FATAL(clock_boottime() < until, "no heartbeats");
}

static void let_through(size_t i) {
    host_mark(hosts[i]);
    proxy_set(&ways[i], PROXY_PASS, 0, false);
    host_await(hosts[i], "redis-connected", " ");
}

static void restore(unsigned round) {
    for (size_t i = 0; i < ELEMENTSOF(ways); i++)
        proxy_set(&ways[i], PROXY_CUT, 0, false);
    redis_server_kill(&cluster.redis);
    TEST_FATAL(redis_server_resume(&cluster.redis) == 0, "no Redis");
    start_newcomer(round);
}

/* Waits until the run is queued, or granted, if the machine stood still and the other command was fenced. */
static void await_claim(struct host *h, unsigned round) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (host_count(h, "queued", "job=waiting%u", round) + host_count(h, "granted", "job=waiting%u", round) == 0 && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
}

/* Returns whether the command outlived the round. On a machine that stands still, its lease may end before
 * its host reaches Redis. */
static bool play(unsigned round) {
    size_t holder = round % 2, waiter = 1 - holder;
    struct child *held, *waiting;
    struct test_gate gate;
    char name[32];
    int status, waited;

    snprintf(name, sizeof(name), "gate-%u", round);
    test_gate_make(&gate, name);
    host_mark(hosts[holder]);
    host_mark(hosts[waiter]);
    held = berth_start(hosts[holder], "run -p db --stop-timeout 100ms --name held%u -- %s --id held%u --gate %s", round, cluster.command, round, gate.path);
    host_await(hosts[holder], "started", "job=held%u", round);
    waiting = berth_start(hosts[waiter], "run -p db --name waiting%u -- %s --id waiting%u --for 100", round, cluster.command, round);
    await_claim(hosts[waiter], round);
    restore(round);
    let_through(waiter);
    await_heartbeats();
    let_through(holder);
    test_gate_open(&gate);
    status = berth_end(held);
    CU_ASSERT(status == 0 || status == FENCED);
    waited = berth_end(waiting);
    CU_ASSERT(waited == 0 || waited == FENCED);
    test_gate_done(&gate);
    host_stop(newcomer);
    return status == 0;
}

/* Waits until the sessions in the copy have expired. The hosts have new sessions. */
static void await_expired(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (redis_number(&cluster.redis, "ZCARD berth:{test}:heartbeats") != ELEMENTSOF(hosts) && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
}

static void judge_rounds(unsigned rounds, unsigned whole) {
    struct witness w = {0};
    unsigned twice = 0;

    witness_read(&w, cluster.witness);
    for (size_t i = 0; i < w.n; i++)
        for (size_t k = 0; k < i; k++)
            twice += w.runs[i].token == w.runs[k].token;
    printf("%u rounds, the command outlived %u: %zu starts, at most %u at once, %u tokens twice\n", rounds, whole, w.n,
           witness_max(&w, "db"), twice);
    TEST_INT(w.n, 2 + 2 * rounds);
    TEST_INT(witness_max(&w, "db"), 1);
    TEST_INT(twice, 0);
    witness_done(&w);
}

static void test_again_and_again(void) {
    uint64_t rounds = test_count("BERTH_TEST_RESTORES", 5);
    unsigned whole = 0;

    start_hosts();
    make_copy();
    for (unsigned i = 0; i < rounds; i++)
        whole += play(i);
    judge_rounds((unsigned) rounds, whole);
    await_expired();
}

static CU_TestInfo tests[] = {{"again and again", test_again_and_again}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "restored", .pSetUpFunc = set_up, .pTearDownFunc = tear_down, .pTests = tests});
