/* SPDX-License-Identifier: MIT */

/* Jobs with `on = "any"`: each due time begins once in the cluster, whatever happens to a host, its berthd
 * or Redis. The test sets the clocks of the hosts, to times that are past for Redis. */

#include <signal.h>
#include <stdio.h>

#include "tests/harness/host-clock.h"
#include "tests/harness/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/witness.h"

/* Waits until one host has begun the due time, and the others know. */
static void await_decided(int64_t due) {
    char fields[96];

    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(due));
    sharing_await_count("exited", fields, 1);
    sharing_await_count("turn-taken", fields, SHARING_HOSTS - 1);
    TEST_INT(sharing_count("started", fields), 1);
}

#define MINUTES 10

/* `berth next` and `berth jobs` show the option. */
static void check_shown(void) {
    json_t *shown = berth_json(sharing_hosts[0], "next j");

    AT_STRING(shown, "next.0.on", "any");
    json_decref(shown);
    shown = berth_json(sharing_hosts[0], "jobs");
    AT_STRING(shown, "jobs.name=j.on", "any");
    json_decref(shown);
}

/* S14, in short: each due time begins once, and not always on the same host. */
static void once(void) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { %s " SHARED "}\n", witness_command("--id j"));
    sharing_up(config);
    for (int64_t i = 0; i < MINUTES; i++) {
        sharing_clocks_at(SHARING_FIRST + i * SHARING_MINUTE, -20);
        await_decided(SHARING_FIRST + i * SHARING_MINUTE);
    }
    TEST_INT(sharing_count("started", "job=j"), MINUTES);
    check_shown();
    for (size_t i = 0; i < SHARING_HOSTS; i++)
        CU_ASSERT(host_count(sharing_hosts[i], "started", "job=j") < MINUTES);
}

/* `every`: hosts share its multiples. */
static void by_period(void) {
    const char *const first = "2025-01-01T01:00:00+00:00";
    char config[1024], fields[96];
    json_t *shown;

    snprintf(config, sizeof(config), "job \"j\" { %s every = \"90s\" zone = \"UTC\" on = \"any\" }\n",
             witness_command("--id j"));
    sharing_up(config);
    shown = berth_json(sharing_hosts[0], "next j --count 1");
    AT_STRING(shown, "next.0.due", first);
    AT_STRING(shown, "next.0.trigger", "every");
    json_decref(shown);
    shown = berth_json(sharing_hosts[0], "jobs");
    AT_STRING(shown, "jobs.name=j.next_due", first);
    json_decref(shown);
    for (int64_t at = SHARING_FIRST; at <= SHARING_FIRST + 90; at += 90) {
        sharing_clocks_at(at, -20);
        await_decided(at);
    }
    TEST_INT(sharing_count("started", "job=j"), 2);
    snprintf(fields, sizeof(fields), "job=j trigger=every due=%s", first);
    TEST_INT(sharing_count("started", fields), 1);
}

/* --- a host that has the turn, and waits for a permit --- */

static struct child *holder;

/* ant takes the turn and waits for a permit. */
static void ant_waits(void) {
    char config[1024];

    snprintf(config, sizeof(config),
             "pool \"db\" { limit = 1 }\njob \"j\" { %s " SHARED "pools = {\"db\"} prefer = {\"ant\"} }\n",
             witness_command("--id j"));
    sharing_up(config);
    holder = berth_at_gate(sharing_hosts[2], "-p db", "holder", "started");
    sharing_clocks_at(SHARING_FIRST, -20);
    host_await(sharing_hosts[0], "queued", "job=j");
}

/* Frees the permit, and waits until the due time has begun once. */
static void await_once(void) {
    char fields[96];

    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(SHARING_FIRST));
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    sharing_await_count("exited", fields, 1);
    TEST_INT(sharing_count("started", fields), 1);
}

/* S16 */
static void host_dies(void) {
    usec_t killed;

    cluster.lease = "5s"; /* long enough for a busy machine */
    cluster.heartbeat = "1s";
    ant_waits();
    host_kill(sharing_hosts[0]);
    killed = clock_boottime();
    while (host_count(sharing_hosts[1], "queued", "job=j") +
                   host_count(sharing_hosts[2], "queued", "job=j") ==
               0 &&
           clock_boottime() < killed + 2 * HOST_PATIENCE)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    /* An idle machine needs 4/3 lease + 2 s, and 2 s more for `prefer`. */
    CU_ASSERT(clock_boottime() - killed < 2 * HOST_PATIENCE);
    await_once();
    host_start(sharing_hosts[0]); /* it no longer has the turn */
    host_await_redis(sharing_hosts[0]);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    await_decided(SHARING_FIRST + SHARING_MINUTE);
    TEST_INT(sharing_count("started", "job=j"), 2);
}

static void berthd_restarts(void) {
    ant_waits();
    host_kill(sharing_hosts[0]);
    host_start(sharing_hosts[0]);
    host_await_redis(sharing_hosts[0]);
    await_once();
    TEST_INT(host_count(sharing_hosts[0], "started", "job=j"), 1);
}

static void host_is_drained(void) {
    ant_waits();
    TEST_INT(berth(sharing_hosts[0], "drain"), 0);
    host_await(sharing_hosts[0], "withdrawn", "job=j reason=drained");
    await_once();
    TEST_INT(host_count(sharing_hosts[0], "started", "job=j"), 0);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    sharing_await_count("started", "job=j", 2);
    TEST_INT(berth(sharing_hosts[0], "undrain"), 0);
    /* Of the first due time: bee or cat. Of the second: the other of these, and ant. */
    sharing_await_count("turn-taken", "job=j", 3);
}

static void job_is_stopped(void) {
    ant_waits();
    TEST_INT(berth(sharing_hosts[0], "stop j"), 0);
    host_await(sharing_hosts[0], "withdrawn", "job=j reason=stopped");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    sharing_clocks_at(SHARING_FIRST + SHARING_MINUTE, -20);
    await_decided(SHARING_FIRST + SHARING_MINUTE);
    TEST_INT(sharing_count("started", "job=j"), 1);
}

/* `berth start` is skipped while a run is on another host. */
static void started_elsewhere(void) {
    char config[1024];

    snprintf(config, sizeof(config), "job \"j\" { %s on = \"any\" }\n", witness_at_gate("j", 0));
    sharing_up(config);
    TEST_INT(berth(sharing_hosts[0], "start j"), 0);
    host_await(sharing_hosts[0], "started", "job=j trigger=start");
    TEST_INT(berth(sharing_hosts[1], "start j"), 75);
    TEST_STRING(berth_err, "berth: skipped: a run of j is on ant\n");
    host_await(sharing_hosts[1], "skipped", "job=j trigger=start reason=overlap other_host=ant");
    TEST_INT(berth(sharing_hosts[1], "start j --wait"), 75);
    TEST_INT(berth_count_runs(sharing_hosts[1]), 0);
    test_gate_open(&cluster.gate);
    host_await(sharing_hosts[0], "released", "job=j");
    TEST_INT(berth(sharing_hosts[1], "start j --wait"), 0);
    TEST_INT(sharing_count("started", "job=j"), 2);
}

/* `berth start` does not wait for Redis. */
static void started_without_redis(void) {
    struct child *start;
    char config[1024];

    cluster.lease = "30s";
    cluster.heartbeat = "1s";
    snprintf(config, sizeof(config), "job \"j\" { %s on = \"any\" }\n", witness_command("--id j"));
    sharing_up(config);
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    start = berth_start(sharing_hosts[0], "start j");
    TEST_INT(berth_end(start), 0);
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    host_await(sharing_hosts[0], "exited", "job=j result=success");
}

static CU_TestInfo tests[] = {
    {"once", once},
    {"by-period", by_period},
    {"host-dies", host_dies},
    {"berthd-restarts", berthd_restarts},
    {"drained", host_is_drained},
    {"stopped", job_is_stopped},
    {"started-elsewhere", started_elsewhere},
    {"started-without-redis", started_without_redis},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "turns", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
