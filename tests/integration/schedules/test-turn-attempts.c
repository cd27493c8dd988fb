/* SPDX-License-Identifier: MIT */

/* Attempts of jobs with `on = "any"`: each attempt runs once, on any host, whatever happens to the host of
 * the attempt before. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/redis/proxy.h"
#include "tests/harness/host/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define SHELL(text) "command = {\"/bin/sh\", \"-c\", '" text "'} output = \"null\" "
#define SOON "retry-delay = \"10ms\" "

static void up(const char *options) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { " SHARED "%s }\n", options);
    sharing_up(config);
    sharing_clocks_at(SHARING_FIRST, -20);
}

/* Checks that the second host's run is attempt 2 of the first host's due time. */
static void check_chain(struct host *first, struct host *second) {
    char run[64], fields[128];

    snprintf(run, sizeof(run), "%s", event_get(host_await(first, "started", "job=j"), "run"));
    snprintf(fields, sizeof(fields), "job=j trigger=retry attempt=2 first_run=%s due=%s", run,
             sharing_text(SHARING_FIRST));
    host_await(second, "started", "%s", fields);
}

/* The host of a failed attempt asks for the next turn 2 s after the others. */
static void retried_elsewhere(void) {
    struct host *first, *second;

    up(SHELL("test $BERTH_ATTEMPT = 2") "retry = 2 " SOON);
    first = sharing_await("exited", "job=j result=failure");
    second = sharing_await("exited", "job=j result=success");
    CU_ASSERT(first != second);
    check_chain(first, second);
    host_await(first, "retry", "job=j attempt=2 attempts=3 result=failure");
    TEST_INT(sharing_count("started", "job=j"), 2);
    TEST_INT(sharing_count("gave-up", "job=j"), 0);
}

static void given_up(void) {
    up(SHELL("exit 3") "retry = 2 " SOON);
    sharing_await_count("exited", "job=j result=failure exit_code=3", 3);
    sharing_await_count("gave-up", "job=j reason=attempts attempt=3 attempts=3", 1);
    TEST_INT(sharing_count("retry", "job=j"), 2);
    for (unsigned i = 2; i <= 3; i++) {
        char fields[32];

        snprintf(fields, sizeof(fields), "job=j attempt=%u", i);
        TEST_INT(sharing_count("started", fields), 1);
    }
}

/* A host that is drained makes no further attempt; another host makes it. */
static void failed_host_is_drained(void) {
    struct host *first;

    up(SHELL("test $BERTH_ATTEMPT = 2") "retry = 1 prefer = {\"ant\"} retry-delay = \"1s\" ");
    first = sharing_await("retry", "job=j");
    TEST_INT(berth(first, "drain"), 0);
    sharing_await_count("exited", "job=j result=success", 1);
    TEST_INT(host_count(first, "started", "job=j"), 1);
}

/* The next due time begins on another host, which logs the end of the attempts. */
static void superseded(void) {
    struct host *first, *second;
    char options[512];

    snprintf(options, sizeof(options), "%s retry = 1 retry-delay = \"10m\" ", witness_at_gate("j", 3));
    up(options);
    sharing_await_count("turn-taken", "job=j", SHARING_HOSTS - 1);
    first = sharing_await("started", "job=j");
    test_gate_open(&cluster.gate);
    sharing_await_count("turn-open", "job=j attempt=2 reason=retry", SHARING_HOSTS - 1);
    TEST_INT(berth(first, "drain"), 0);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    sharing_await_count("exited", "job=j result=failure", 2);
    second = sharing_await("gave-up", "job=j reason=superseded attempt=1 attempts=2");
    CU_ASSERT(first != second);
    TEST_INT(sharing_count("gave-up", "job=j reason=superseded"), 1);
}

/* S17: the second attempt begins when the processes of the first are gone. */
static void host_is_lost(void) {
    _cleanup_(witness_done) struct witness w = {};
    char options[512];
    struct host *first, *second;

    snprintf(options, sizeof(options), "%s retry = 1 " SOON, witness_at_gate("j", 0));
    up(options);
    first = sharing_await("started", "job=j");
    host_kill(first);
    second = sharing_await("started", "job=j attempt=2");
    CU_ASSERT(first != second);
    CU_ASSERT(host_count(second, "turn-open", "job=j attempt=2 reason=host-lost") >= 1);
    test_gate_open(&cluster.gate);
    sharing_await("exited", "job=j attempt=2 result=success");
    host_start(first);
    host_await(first, "exited", "job=j result=lease-lost");
    TEST_INT(host_count(first, "gave-up", "job=j"), 0); /* there was a second attempt */
    witness_read(&w, cluster.witness);
    TEST_INT(w.n, 2);
    TEST_INT(witness_max(&w, "@j"), 1);
    CU_ASSERT(w.n == 2 && w.runs[0].end > 0 && w.runs[0].end <= w.runs[1].start);
}

/* Without host-lost in retry-on there is no second attempt, and the next due time begins. */
static void lost_for_good(void) {
    char options[512];
    struct host *first;

    snprintf(options, sizeof(options), "%s retry = 1 retry-on = {\"failure\"} " SOON, witness_at_gate("j", 0));
    up(options);
    first = sharing_await("started", "job=j");
    host_kill(first);
    while (sharing_count("reclaimed", "job=j") == 0)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    test_gate_open(&cluster.gate);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    sharing_await("exited", "job=j result=success");
    TEST_INT(sharing_count("started", "job=j attempt=2"), 0);
    host_start(first);
    host_await(first, "gave-up", "job=j reason=not-retried attempt=1");
}

/* The second attempt is made once, and both runs release their permits. */
static void check_given_back(void) {
    sharing_await_count("exited", "job=j attempt=2 result=failure", 1);
    sharing_await_count("gave-up", "job=j reason=attempts", 1);
    TEST_INT(sharing_count("started", "job=j attempt=2"), 1);
    sharing_await_count("released", "job=j", 2);
}

/* Waits until the guard has ended: only this berthd has the report of the run. */
static void await_guard_gone(struct host *host, const char *run) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char path[160];

    snprintf(path, sizeof(path), "%s/runner/runs/%s.sock", host->runtime, run);
    while (access(path, F_OK) == 0 && clock_boottime() < until)
        child_turn(clock_boottime() + USEC_PER_MSEC);
    TEST_INT(access(path, F_OK), -1);
}

/* berthd is killed before Redis receives its call: the next berthd gives the turn back. */
static void killed_before_given_back(void) {
    struct proxy way = {};
    char options[512], path[64], run[64];

    cluster.lease = "30s";
    cluster.heartbeat = "1s";
    snprintf(path, sizeof(path), "%s/way.sock", cluster.folder);
    TEST_FATAL(proxy_start(&way, path, cluster.redis.socket) == 0, "no proxy");
    snprintf(options, sizeof(options), "%s retry = 1 retry-on = {\"failure\"} prefer = {\"ant\"} " SOON,
             witness_at_gate("j", 3));
    sharing_way = path;
    up(options);
    sharing_way = NULL;
    snprintf(run, sizeof(run), "%s", event_get(host_await(sharing_hosts[0], "started", "job=j"), "run"));
    proxy_set(&way, PROXY_HOLE, 0, false);
    test_gate_open(&cluster.gate);
    host_await(sharing_hosts[0], "retry", "job=j attempt=2");
    await_guard_gone(sharing_hosts[0], run);
    host_kill(sharing_hosts[0]);
    proxy_set(&way, PROXY_CUT, 0, false);
    proxy_set(&way, PROXY_PASS, 0, false);
    host_start(sharing_hosts[0]);
    check_given_back();
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        host_stop(sharing_hosts[i]);
    proxy_done(&way);
}

/* Redis is stopped when the run ends, and berthd is killed. Redis reads the call of this berthd before
 * that of the next one. */
static void killed_after_given_back(void) {
    char options[512];
    struct host *first;

    cluster.lease = "30s";
    cluster.heartbeat = "1s";
    snprintf(options, sizeof(options), "%s retry = 1 retry-on = {\"failure\"} " SOON, witness_at_gate("j", 3));
    up(options);
    first = sharing_await("started", "job=j");
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    test_gate_open(&cluster.gate);
    host_await(first, "retry", "job=j attempt=2");
    host_kill(first);
    host_start(first);
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    check_given_back();
}

/* No host could begin the attempt within the time of retry-within. */
static void too_late(void) {
    char options[512];
    struct host *first;

    snprintf(options, sizeof(options), "%s retry = 1 retry-within = \"1m\" " SOON, witness_at_gate("j", 0));
    up(options);
    first = sharing_await("started", "job=j");
    host_kill(first);
    sharing_clocks_at(SHARING_FIRST, 59000);
    sharing_await_count("gave-up", "job=j reason=within attempt=1", 1);
    TEST_INT(sharing_count("started", "job=j attempt=2"), 0);
    test_gate_open(&cluster.gate);
    host_start(first);
    sharing_await("exited", "job=j result=lease-lost");
}

static CU_TestInfo tests[] = {
    {"elsewhere", retried_elsewhere},
    {"given-up", given_up},
    {"drained", failed_host_is_drained},
    {"superseded", superseded},
    {"host-lost", host_is_lost},
    {"lost-for-good", lost_for_good},
    {"killed-before-back", killed_before_given_back},
    {"killed-after-back", killed_after_given_back},
    {"within", too_late},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turn-attempts", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
