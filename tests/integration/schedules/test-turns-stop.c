/* SPDX-License-Identifier: MIT */

/* `berth stop` of a job with `on = "any"` ends open turns, and prints which host has a run. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/host/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static void up(const char *options) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { " SHARED "%s }\n", options);
    sharing_up(config);
    sharing_clocks_at(SHARING_FIRST, -20);
}

/* Waits until a host has begun the due time, and the others know. Returns that host. */
static struct host *one_has_begun(const char *options) {
    up(options);
    sharing_await_count("turn-taken", "job=j", SHARING_HOSTS - 1);
    return sharing_await("started", "job=j");
}

/* Waits until an attempt has failed, and the next one waits for its delay. Returns the host of the first. */
static struct host *one_has_failed(void) {
    char options[512];
    struct host *first;

    snprintf(options, sizeof(options), "%s retry = 1 retry-delay = \"10m\" ", witness_at_gate("j", 3));
    first = one_has_begun(options);
    test_gate_open(&cluster.gate);
    sharing_await_count("turn-open", "job=j attempt=2 reason=retry", SHARING_HOSTS - 1);
    return first;
}

static struct host *another_than(const struct host *host) {
    return sharing_hosts[host == sharing_hosts[0]];
}

static void check_nothing_to_stop(struct host *host) {
    TEST_INT(berth(host, "stop j"), 0);
    TEST_STRING(berth_err, "berth: j: nothing to stop\n");
}

static void check_stopped_once(struct host *by) {
    host_await(by, "gave-up", "job=j reason=stopped attempt=1 attempts=2 due=%s", sharing_text(SHARING_FIRST));
    TEST_INT(sharing_count("gave-up", "job=j"), 1);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        check_nothing_to_stop(sharing_hosts[i]);
    TEST_INT(sharing_count("gave-up", "job=j"), 1);
}

/* The next due time begins as attempt 1, and ends no earlier attempt. */
static void check_next(void) {
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    sharing_await_count("exited", "job=j result=failure", 2);
    TEST_INT(sharing_count("started", "job=j attempt=2"), 0);
    TEST_INT(sharing_count("gave-up", "job=j reason=superseded"), 0);
}

static void open_elsewhere(void) {
    struct host *by = another_than(one_has_failed());

    TEST_INT(berth(by, "stop j"), 0);
    check_stopped_once(by);
    check_next();
}

static void open_here(void) {
    struct host *by = one_has_failed();

    TEST_INT(berth(by, "stop j"), 0);
    check_stopped_once(by);
    check_next();
}

static void check_elsewhere(struct host *asked, const struct host *has, const char *run, const char *what) {
    char expected[128];

    snprintf(expected, sizeof(expected), "berth: j: run %.8s %s on host %s; stop it there\n", run, what, has->name);
    TEST_INT(berth(asked, "stop j"), 75);
    TEST_STRING(berth_err, expected);
}

static void runs_elsewhere(void) {
    struct host *first = one_has_begun(witness_at_gate("j", 0));
    char run[64];

    snprintf(run, sizeof(run), "%s", event_get(host_await(first, "started", "job=j"), "run"));
    check_elsewhere(another_than(first), first, run, "runs");
    TEST_INT(sharing_count("stopping", "job=j"), 0);
    TEST_INT(berth(first, "stop j"), 0);
    TEST_STRING(berth_err, "");
    sharing_await("released", "job=j");
    check_nothing_to_stop(another_than(first));
}

/* ant has the due time and waits for a permit. Then all hosts are drained, and no host has the due time. */
static void given_back(void) {
    struct child *holder;
    char run[64], config[1024];

    snprintf(config, sizeof(config),
             "pool \"db\" { limit = 1 }\njob \"j\" { %s " SHARED "pools = {\"db\"} prefer = {\"ant\"} }\n",
             witness_command("--id j"));
    sharing_up(config);
    holder = berth_at_gate(sharing_hosts[2], "-p db", "holder", "started");
    sharing_clocks_at(SHARING_FIRST, -20);
    snprintf(run, sizeof(run), "%s", event_get(host_await(sharing_hosts[0], "queued", "job=j"), "run"));
    check_elsewhere(sharing_hosts[1], sharing_hosts[0], run, "waits");
    for (size_t i = SHARING_HOSTS; i-- > 0;)
        TEST_INT(berth(sharing_hosts[i], "drain"), 0);
    TEST_INT(berth(sharing_hosts[0], "stop j"), 0); /* ant has sent back the turn before */
    TEST_STRING(berth_err, "");
    host_await(sharing_hosts[0], "missed", "job=j reason=stopped count=1 due=%s", sharing_text(SHARING_FIRST));
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        TEST_INT(berth(sharing_hosts[i], "undrain"), 0);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    sharing_await_count("exited", "job=j", 1);
    TEST_INT(sharing_count("missed", "job=j"), 1);
}

/* Without Redis, berthd does not know the runs of other hosts. */
static void redis_away(void) {
    struct host *first;

    cluster.lease = "30s";
    cluster.heartbeat = "1s";
    first = one_has_begun(witness_at_gate("j", 0));
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_await(sharing_hosts[i], "redis-lost", " ");
    TEST_INT(berth(another_than(first), "stop j"), 69);
    CU_ASSERT(strstr(berth_err, "nothing was stopped here, and runs on other hosts are unknown") != NULL);
    TEST_INT(berth(first, "stop j"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: j: stopped here; what other hosts have is not known: Redis is away"));
    host_await(first, "exited", "job=j result=stopped");
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    host_await(first, "released", "job=j");
}

static CU_TestInfo tests[] = {
    {"open-elsewhere", open_elsewhere},
    {"open-here", open_here},
    {"runs-elsewhere", runs_elsewhere},
    {"given-back", given_back},
    {"redis-away", redis_away},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turns-stop", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
