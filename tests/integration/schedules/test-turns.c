/* SPDX-License-Identifier: MIT */

/* Jobs with `on = "any"`: each due time begins once in the cluster, whatever happens to a host, its berthd
 * or Redis. The test sets the clocks of the hosts, to times that are past for Redis. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/sharing.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

/* Waits until one of n hosts has begun the due time, and the others know. */
static void await_decided_by(int64_t due, unsigned n) {
    char fields[96];

    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(due));
    sharing_await_count("exited", fields, 1);
    sharing_await_count("turn-taken", fields, n - 1);
    TEST_INT(sharing_count("started", fields), 1);
}

static void await_decided(int64_t due) {
    await_decided_by(due, SHARING_HOSTS);
}

/* `berth next` and `berth jobs` show the option. */
static void check_shown(void) {
    json_t *shown = berth_json(sharing_hosts[0], "next j");

    AT_STRING(shown, "next.0.on", "any");
    json_decref(shown);
    shown = berth_json(sharing_hosts[0], "jobs");
    AT_STRING(shown, "jobs.name=j.on", "any");
    json_decref(shown);
}

/* --- a day --- */

#define MINUTES 10 /* or BERTH_TEST_MINUTES */
#define DAY_HOSTS 5
#define BEFORE 20 /* ms */
#define LATE_MAX (1100 * USEC_PER_MSEC)

/* Lets the minute pass. Returns how long after the due time its command started, on this host. */
static usec_t pass_minute(int64_t due, size_t *ret_host) {
    char fields[96];
    usec_t begin, late;
    const struct host *host;

    snprintf(fields, sizeof(fields), "job=j due=%s", sharing_text(due));
    for (size_t i = 0; i < DAY_HOSTS; i++)
        host_mark(sharing_hosts[i]);
    sharing_clocks_at(due, -BEFORE);
    begin = clock_boottime() + BEFORE * USEC_PER_MSEC;
    host = sharing_await("started", fields);
    late = clock_boottime() - begin;
    sharing_clocks_at(due, (int64_t) (LATE_MAX / USEC_PER_MSEC)); /* the others ask now */
    await_decided_by(due, DAY_HOSTS);
    for (*ret_host = 0; sharing_hosts[*ret_host] != host; (*ret_host)++)
        continue;
    return late;
}

static int by_time(const void *a, const void *b) {
    usec_t x = *(const usec_t *) a, y = *(const usec_t *) b;

    return (x > y) - (x < y);
}

/* S14: each due time begins once, and each host has its share. BERTH_TEST_MINUTES=1440 measures a day. */
static void once(void) {
    unsigned n = (unsigned) test_count("BERTH_TEST_MINUTES", MINUTES);
    _cleanup_free_ usec_t *late = calloc(n, sizeof(*late));
    double shares[DAY_HOSTS] = {0};
    char config[1024];

    CU_ASSERT_PTR_NOT_NULL_FATAL(late);
    snprintf(config, sizeof(config), "job \"j\" { %s " SHARED "}\n", witness_command("--id j"));
    sharing_up_many(config, DAY_HOSTS);
    for (unsigned i = 0; i < n; i++) {
        size_t host;

        late[i] = pass_minute(SHARING_FIRST + i * SHARING_MINUTE, &host);
        shares[host]++;
    }
    qsort(late, n, sizeof(*late), by_time);
    printf("%u due times began after %llu ms (median), %llu ms (99 %%), %llu ms at most\n", n,
           (unsigned long long) (late[n / 2] / USEC_PER_MSEC),
           (unsigned long long) (late[n * 99 / 100] / USEC_PER_MSEC),
           (unsigned long long) (late[n - 1] / USEC_PER_MSEC));
    for (size_t i = 0; i < DAY_HOSTS; i++) {
        double more = shares[i] - n / (double) DAY_HOSTS;

        printf("host %s began %.0f\n", sharing_hosts[i]->name, shares[i]);
        CU_ASSERT(more * more <= 2.5 * n); /* four standard deviations: 60 of 288 */
        sharing_hosts[i]->mark = 0;
    }
    TEST_INT(sharing_count("started", "job=j"), n);
    if (getenv("BERTH_TEST_MINUTES"))
        CU_ASSERT(late[n * 99 / 100] <= LATE_MAX);
    check_shown();
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

/* ant's config loses the job, so another host begins the due time. */
static void job_is_removed(void) {
    ant_waits();
    host_set_config(sharing_hosts[0], "pool \"db\" { limit = 1 }\n");
    TEST_INT(berth(sharing_hosts[0], "reload"), 0);
    host_await(sharing_hosts[0], "withdrawn", "job=j");
    TEST_INT(berth_count_runs(sharing_hosts[0]), 0);
    await_once();
    TEST_INT(host_count(sharing_hosts[0], "started", "job=j"), 0);
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
    {"the job is removed", job_is_removed},
    {"stopped", job_is_stopped},
    {"started-elsewhere", started_elsewhere},
    {"started-without-redis", started_without_redis},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turns", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down, .pTests = tests});
