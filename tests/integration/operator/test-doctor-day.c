/* SPDX-License-Identifier: MIT */

/* `berth doctor` finds nothing on a healthy cluster, hour after hour. The clocks of hosts and Redis advance together. */

#include <string.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/redis/redis-clock.h"
#include "tests/harness/test.h"

#define HOURS 1 /* or BERTH_TEST_HOURS */
#define HOSTS 3
#define STEP (100 * USEC_PER_SEC) /* each host has a heartbeat due in it */
#define STEPS_AN_HOUR (3600 * USEC_PER_SEC / STEP)
#define CHECK_EACH 4 /* steps */
#define POOLS "pool \"db\" { limit = 2 }\npool \"net\" { limit = 2 scope = \"host\" }\n"

static struct host *hosts[HOSTS];

/* Returns the count at the last heartbeat of the session that has sent its one first (rank 0) or last (-1). */
static long long heartbeat(int rank) {
    static const char script[] = "return tonumber(redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1], 'WITHSCORES')[2])";

    return redis_number(&cluster.redis, "EVAL %s 1 berth:{test}:heartbeats %d", script, rank);
}

static void advance(void) {
    static long long ahead; /* µs */

    ahead += (long long) STEP;
    TEST_FATAL(redis_clock_set(ahead), "Redis has no clock of its own");
    for (size_t i = 0; i < HOSTS; i++) {
        host_clock_step(hosts[i], (int64_t) ahead);
        host_clock_jump(hosts[i], STEP);
    }
}

/* Lets a step of time pass. Each host has sent a heartbeat and read the reply then, so the next step is not too long for an
 * answer under way: a client is answered after Redis was. */
static void pass_step(void) {
    long long before = heartbeat(-1);
    usec_t until = clock_boottime() + HOST_PATIENCE;

    advance();
    while (heartbeat(0) <= before && clock_boottime() < until)
        child_turn(clock_boottime() + USEC_PER_MSEC);
    TEST_FATAL(heartbeat(0) > before, "a host sends no heartbeats");
    for (size_t i = 0; i < HOSTS; i++)
        TEST_INT(berth(hosts[i], "version"), 0);
}

static void check(void) {
    for (size_t i = 0; i < HOSTS; i++)
        TEST_INT(berth(hosts[i], "run -p db -p net -- true"), 0);
    for (size_t i = 0; i < HOSTS; i++) {
        if (berth(hosts[i], "doctor -c %s --skip stray-process", hosts[i]->config) != 0) /* notes are no findings; strays may be those of another test */
            TEST_STRING(berth_out, "");
    }
}

static void test_hours(void) {
    unsigned n = (unsigned) test_count("BERTH_TEST_HOURS", HOURS);
    static const char *const names[HOSTS] = {"ant", "bee", "cow"};
    char url[128];

    snprintf(url, sizeof(url), "unix://%s", cluster.redis.socket);
    for (size_t i = 0; i < HOSTS; i++) {
        hosts[i] = host_add(names[i], " ");
        hosts[i]->url = url;
        hosts[i]->redis_options = "timeout = \"80s\"";
        host_set_config(hosts[i], POOLS);
        host_clock_give(hosts[i]);
        host_start(hosts[i]);
    }
    for (size_t i = 0; i < HOSTS; i++) /* each has a heartbeat to wait for in the first step */
        host_await(hosts[i], "redis-connected", " ");
    host_end_grace(hosts[0]);
    check();
    for (unsigned i = 0; i < n * STEPS_AN_HOUR; i++) {
        pass_step();
        if (i % CHECK_EACH == 0)
            check();
    }
    TEST_INT(host_count(hosts[0], "redis-lost", " "), 0);
}

static void set_up(void) {
    redis_clock_own();
    cluster_up();
    cluster.lease = "240s";
    cluster.heartbeat = "80s";
}

static void tear_down(void) {
    cluster_down();
    redis_clock_done();
}

static CU_TestInfo tests[] = {
    {"hours", test_hours},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor-day", .pSetUpFunc = set_up, .pTearDownFunc = tear_down, .pTests = tests});
