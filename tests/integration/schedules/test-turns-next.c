/* SPDX-License-Identifier: MIT */

/* `berth next` of jobs with `on = "any"`: the hosts that may begin them, and attempts that no host has
 * taken. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/host/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static void up(const char *options) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { " SHARED "%s }\njob \"k\" { every = \"1h\" command = {\"/bin/true\"} }\n", options);
    sharing_up(config);
}

static json_t *next_of(struct host *host, unsigned count) {
    json_t *answer = berth_json(host, "next --count %u", count);
    json_t *list = json_incref(json_object_get(answer, "next"));

    json_decref(answer);
    return list;
}

/* Checks the hosts of each item of j; "-": not known. */
static void check_hosts(struct host *asked, const char *expected) {
    json_t *list = next_of(asked, 3), *item;
    size_t i;

    TEST_INT(json_array_size(list), 3);
    json_array_foreach (list, i, item) {
        json_t *hosts = json_object_get(item, "hosts");
        bool is_shared = strcmp(json_string_value(json_object_get(item, "job")), "j") == 0;
        char text[64] = "";

        if (json_is_null(hosts))
            strcpy(text, "-");
        for (size_t k = 0; k < json_array_size(hosts); k++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", json_string_value(json_array_get(hosts, k)));
        TEST_STRING(text, is_shared ? expected : "-");
    }
    json_decref(list);
}

static void hosts(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    up("command = {\"/bin/true\"} ");
    check_hosts(sharing_hosts[2], "ant bee cat ");
    TEST_INT(berth(sharing_hosts[0], "next j"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "ant, bee or cat"));
    TEST_INT(berth(sharing_hosts[1], "drain"), 0);
    host_await(sharing_hosts[1], "drained", " ");
    while (berth(sharing_hosts[0], "hosts") == 0 && !strstr(berth_out, "drained") && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    check_hosts(sharing_hosts[0], "ant cat ");
    check_hosts(sharing_hosts[1], "ant cat ");
}

static void redis_away(void) {
    cluster.lease = "30s";
    cluster.heartbeat = "1s";
    up("command = {\"/bin/true\"} ");
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    host_await(sharing_hosts[0], "redis-lost", " ");
    check_hosts(sharing_hosts[0], "-");
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    host_await_redis(sharing_hosts[0]);
}

/* Returns the number of attempts in the list, and checks that each is attempt 2. */
static size_t count_attempts(struct host *host) {
    json_t *list = next_of(host, 20), *item;
    size_t i, n = 0;

    json_array_foreach (list, i, item) {
        json_int_t in_ms = json_integer_value(json_object_get(item, "in_ms"));

        if (json_is_null(json_object_get(item, "attempt")))
            continue;
        n++;
        TEST_INT(json_integer_value(json_object_get(item, "attempt")), 2);
        TEST_STRING(json_string_value(json_object_get(item, "trigger")), "retry");
        TEST_INT(json_array_size(json_object_get(item, "hosts")), SHARING_HOSTS);
        CU_ASSERT(in_ms > 0 && in_ms <= 600000);
    }
    json_decref(list);
    return n;
}

static bool all_know(void) {
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        if (count_attempts(sharing_hosts[i]) == 0)
            return false;
    return true;
}

static void attempts(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    up("command = {\"/bin/false\"} retry = 1 retry-delay = \"10m\" ");
    sharing_clocks_at(SHARING_FIRST, -20);
    sharing_await("released", "job=j");
    while (!all_know() && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        TEST_INT(count_attempts(sharing_hosts[i]), 1);
    TEST_INT(berth(sharing_hosts[0], "stop j"), 0);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        TEST_INT(count_attempts(sharing_hosts[i]), 0); /* also on hosts that have received no push yet */
}

/* A host gave back the first attempt of a due time, and no host may take it. */
static void given_back(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    struct child *holder;
    json_int_t attempt = 0;

    sharing_up("pool \"db\" { limit = 1 }\njob \"j\" { command = {\"/bin/true\"} " SHARED "pools = {\"db\"} }\n");
    holder = berth_at_gate(sharing_hosts[2], "-p db", "holder", "started");
    for (size_t i = 1; i < SHARING_HOSTS; i++)
        TEST_INT(berth(sharing_hosts[i], "drain"), 0);
    sharing_clocks_at(SHARING_FIRST, -20);
    host_await(sharing_hosts[0], "queued", "job=j");
    TEST_INT(berth(sharing_hosts[0], "drain"), 0);
    host_await(sharing_hosts[0], "withdrawn", "job=j reason=drained");
    while (attempt == 0 && clock_boottime() < until) {
        json_t *list = next_of(sharing_hosts[1], 1), *item = json_array_get(list, 0);

        attempt = json_integer_value(json_object_get(item, "attempt"));
        if (attempt > 0)
            TEST_STRING(json_string_value(json_object_get(item, "trigger")), "schedule");
        json_decref(list);
    }
    TEST_INT(attempt, 1);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    TEST_INT(berth(sharing_hosts[1], "undrain"), 0);
    sharing_await_count("exited", "job=j", 1);
    host_await_pool(sharing_hosts[0], "@j", "used", 0);
    TEST_INT(count_attempts(sharing_hosts[0]), 0);
}

static CU_TestInfo tests[] = {
    {"hosts", hosts},
    {"redis-away", redis_away},
    {"attempts", attempts},
    {"given-back", given_back},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turns-next", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
