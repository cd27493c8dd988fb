/* SPDX-License-Identifier: MIT */

/* `berth pools` and `berth hosts` show the true state of Redis and of other hosts: connecting or away, last
 * seen or unknown. */

#include <signal.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\n"

static void await_state(struct host *h, const char *state) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    bool seen = false;

    while (!seen && clock_boottime() < until) {
        json_t *json = berth_json(h, "pools");

        seen = strcmp(json_string_value(berth_at(json, "redis.state")), state) == 0;
        CU_ASSERT(json_is_true(json_object_get(json, "stale")) == (strcmp(state, "connected") != 0) || !seen);
        json_decref(json);
    }
    if (!seen)
        printf("redis.state is never \"%s\"\n", state);
    CU_ASSERT(seen);
}

/* Redis accepts connections and never replies; then it is gone; then it is back. */
static void connecting_and_away(void) {
    struct host *ant = host_add("ant", POOLS);
    struct child *waiter;

    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    host_start(ant);
    await_state(ant, "connecting");
    /* No view calls Redis away before an attempt has failed. */
    TEST_INT(berth(ant, "pools"), 0);
    TEST_STRING(berth_err, "berth: berthd is connecting to Redis: showing what this host knows\n");
    TEST_INT(berth(ant, "grace --end"), 69);
    TEST_STRING(berth_err, "berth: berthd is connecting to Redis: nothing was changed\n");
    waiter = berth_start(ant, "run -p db --name early -- true");
    for (usec_t until = clock_boottime() + HOST_PATIENCE; clock_boottime() < until && !strstr(berth_out, "early");)
        TEST_INT(berth(ant, "runs"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "connecting to Redis"));
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    await_state(ant, "connected");
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    await_state(ant, "away");
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    await_state(ant, "connected");
    host_open(ant);
    TEST_INT(berth_end(waiter), 0);
}

static void set_option(const char *name, const char *value) {
    _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, "CONFIG SET %s %s", name, value);

    CU_ASSERT(reply && reply->type == REDIS_REPLY_STATUS);
}

/* Redis replies with an error: each view shows the error, and since when. */
static void why_away(void) {
    struct host *ant = host_up("ant", POOLS);
    struct child *waiter;
    json_t *json;

    json = berth_json(ant, "pools");
    AT_NULL(json, "redis.error");
    AT_NULL(json, "redis.since");
    json_decref(json);
    set_option("min-replicas-to-write", "3");
    await_state(ant, "away");
    json = berth_json(ant, "hosts");
    CU_ASSERT_PTR_NOT_NULL(strstr(json_string_value(berth_at(json, "redis.error")), "min-replicas-to-write"));
    CU_ASSERT(json_is_string(berth_at(json, "redis.since")));
    json_decref(json);
    TEST_INT(berth(ant, "pools"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "ago; last error: Redis refuses writes: it has fewer replicas than min-replicas-to-write"));
    waiter = berth_start(ant, "run -p db --name late -- true");
    for (usec_t until = clock_boottime() + HOST_PATIENCE; clock_boottime() < until && !strstr(berth_out, "min-replicas-to-write");)
        TEST_INT(berth(ant, "runs"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "redis away: Redis refuses writes"));
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "min-replicas-to-write"));
    set_option("min-replicas-to-write", "0");
    TEST_INT(berth_end(waiter), 0);
}

/* A full Redis: a waiting run shows whose memory is full, and `-n` fails at once. */
static void full(void) {
    struct host *ant = host_up("ant", POOLS);
    struct child *waiter;
    char expected[200];
    usec_t asked;

    set_option("maxmemory", "1000");
    if (cluster.redis.tls_port > 0)
        (void) snprintf(expected, sizeof(expected), "no-memory: the memory of Redis at 127.0.0.1:%u is full", cluster.redis.tls_port);
    else
        (void) snprintf(expected, sizeof(expected), "no-memory: the memory of Redis at %s is full", cluster.redis.socket);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, expected));
    asked = clock_boottime();
    TEST_INT(berth(ant, "run --wait 1s -p db -- true"), 75);
    CU_ASSERT(clock_boottime() >= asked + USEC_PER_SEC);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, expected));
    waiter = berth_start(ant, "run -p db --name late -- true");
    for (usec_t until = clock_boottime() + HOST_PATIENCE; clock_boottime() < until && !strstr(berth_out, expected);)
        TEST_INT(berth(ant, "runs --json"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, expected));
    set_option("maxmemory", "0");
    TEST_INT(berth_end(waiter), 0);
    TEST_INT(berth(ant, "run -n -p db -- true"), 0);
}

/* `berth grace --end` on one host: the other one takes part at once, not with its next heartbeat. */
static void ended_elsewhere(void) {
    struct host *ant, *bee;
    usec_t until;
    int status;

    cluster.lease = "24h";
    cluster.heartbeat = "8h";
    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
    host_mark(ant);
    host_mark(bee);
    redis_server_kill(&cluster.redis);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    host_await(bee, "redis-connected", " ");
    host_await_redis(bee);
    TEST_INT(berth(bee, "run -n -p db -- true"), 75);
    if (!strstr(berth_err, "grace"))
        TEST_STRING(berth_err, "... grace ...");
    host_end_grace(ant);
    until = clock_boottime() + HOST_PATIENCE;
    while ((status = berth(bee, "run -n -p db -- true")) != 0 && clock_boottime() < until)
        TEST_INT(status, 75);
    TEST_INT(status, 0);
}

/* A host without a heartbeat since this session began may be dead for days. */
static void seen(void) {
    struct host *ant = host_up("ant", POOLS), *bee;
    json_t *json, *cat_seen = NULL;
    usec_t until = clock_boottime() + HOST_PATIENCE;

    host_kill(ant);
    bee = host_up("bee", POOLS);
    (void) host_up("cat", POOLS);
    json = berth_json(bee, "hosts");
    AT_NULL(json, "hosts.host=ant.seen_ms");
    AT_INT(json, "hosts.host=bee.seen_ms", 0);
    json_decref(json);
    TEST_INT(berth(bee, "hosts"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "not known"));
    while (clock_boottime() < until) { /* cat came after bee, so bee can date its first heartbeat */
        json = berth_json(bee, "hosts");
        cat_seen = json_incref(berth_at(json, "hosts.host=cat.seen_ms"));
        json_decref(json);
        if (json_is_integer(cat_seen))
            break;
        json_decref(cat_seen);
    }
    CU_ASSERT(json_is_integer(cat_seen) && json_integer_value(cat_seen) <= 20000);
    json_decref(cat_seen);
}

static CU_TestInfo tests[] = {
    {"connecting and away", connecting_and_away},
    {"why it is away", why_away},
    {"full", full},
    {"ended elsewhere", ended_elsewhere},
    {"seen", seen},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis state", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
