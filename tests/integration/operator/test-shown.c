/* SPDX-License-Identifier: MIT */

/* What `berth pools`, `hosts`, `runs` and `jobs` show of a real berthd with its runner and a Redis. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define CONFIG                                                                                         \
    "pool \"db\" { limit = 2 }\n"                                                                      \
    "pool \"here\" { limit = 1 scope = \"host\" description = \"of this host\" }\n"                    \
    "job \"three\" { command = {\"/bin/sh\", \"-c\", \"exit 3\"} pools = {\"db\"} on-broken = {\"warn\"} }\n" \
    "job \"warn\" { command = {\"/bin/true\"} }\n"                                                    \
    "job \"slow\" { command = {\"/bin/sleep\", \"1000\"} pools = {\"here\"} stop-timeout = \"1s\" }\n"

static struct host *ant;

static void up(void) {
    cluster_up();
    ant = host_up("ant", CONFIG);
}

static void up_patient(void) {
    cluster_up_patient();
    ant = host_up("ant", CONFIG);
}

static void test_pools(void) {
    struct child *holder, *waiter;
    json_t *json, *db;

    host_mark(ant);
    holder = berth_start(ant, "run -p db:2 --name first -- sleep 1000");
    host_await(ant, "started", "job=first");
    waiter = berth_start(ant, "run -p db --name second -- true");
    host_await(ant, "queued", "job=second");
    json = berth_json(ant, "pools");
    AT_STRING(json, "host", "ant");
    AT_STRING(json, "redis.state", "connected");
    AT_INT(json, "redis.grace_ms", 0);
    CU_ASSERT(json_is_false(berth_at(json, "stale")));
    TEST_INT(json_array_size(berth_at(json, "pools")), 2);
    db = berth_at(json, "pools.name=db");
    AT_STRING(db, "scope", "cluster");
    AT_INT(db, "limit", 2);
    AT_INT(db, "configured", 2);
    AT_NULL(db, "override");
    AT_INT(db, "used", 2);
    AT_INT(db, "waiting", 1);
    CU_ASSERT(json_is_false(berth_at(db, "limits_differ")));
    TEST_INT(json_array_size(berth_at(db, "holders")), 1);
    AT_STRING(db, "holders.0.host", "ant");
    AT_STRING(db, "holders.0.name", "first");
    AT_INT(db, "holders.0.permits", 2);
    CU_ASSERT(berth_number_at(db, "holders.0.token") > 0);
    CU_ASSERT(berth_number_at(db, "holders.0.pid") > 0);
    CU_ASSERT(berth_number_at(db, "holders.0.seen_ms") >= 0 && berth_number_at(db, "holders.0.seen_ms") <= 5000);
    TEST_INT(strlen(json_string_value(berth_at(db, "holders.0.since"))), strlen("2026-11-20T11:01:19.123456Z"));
    TEST_INT(json_array_size(berth_at(db, "queue")), 1);
    AT_STRING(db, "queue.0.name", "second");
    AT_INT(db, "queue.0.position", 1);
    AT_INT(db, "queue.0.permits", 1);
    AT_STRING(json, "pools.name=here.scope", "host");
    AT_STRING(json, "pools.name=here.description", "of this host");
    json_decref(json);
    TEST_INT(berth(ant, "pools db"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "ant:first x2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "second"));
    TEST_INT(berth(ant, "pools here db --json"), 0);
    TEST_INT(berth(ant, "pools dbb"), 65);
    TEST_STRING(berth_err, "berth: no such pool: dbb (did you mean \"db\"? known: db, here)\n");
    child_kill(holder, 15);
    TEST_INT(berth_end(holder), 143);
    TEST_INT(berth_end(waiter), 0);
}

static void test_stale(void) {
    json_t *json;

    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    json = berth_json(ant, "pools");
    CU_ASSERT(json_is_true(berth_at(json, "stale")));
    AT_STRING(json, "redis.state", "away");
    AT_INT(json, "pools.name=db.limit", 2);
    json_decref(json);
    json = berth_json(ant, "hosts");
    CU_ASSERT(json_is_true(berth_at(json, "stale")));
    AT_STRING(json, "hosts.0.host", "ant");
    json_decref(json);
    TEST_INT(berth(ant, "pools"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "Redis is away"));
    TEST_INT(berth(ant, "limit db 1"), 69);
    CU_ASSERT_PTR_EQUAL(strstr(berth_err, "berth: Redis is away ("), berth_err);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "): nothing was changed\n"));
    TEST_INT(berth(ant, "limit here 3"), 0); /* a pool of scope host needs no Redis */
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await_redis(ant);
    json = berth_json(ant, "pools");
    CU_ASSERT(json_is_false(berth_at(json, "stale")));
    CU_ASSERT(berth_number_at(json, "redis.grace_ms") > 0); /* Redis has lost its data */
    AT_INT(json, "pools.name=here.limit", 3);
    json_decref(json);
    host_end_grace(ant);
}

static void test_hosts(void) {
    struct host *bee = host_up("bee", "pool \"db\" { limit = 3 }\n");
    json_t *json = berth_json(bee, "hosts");
    size_t n = 0;

    TEST_FATAL(json_array_size(berth_at(json, "hosts")) == 2, "there are two hosts");
    for (size_t i = 0; i < 2; i++) {
        json_t *h = json_array_get(berth_at(json, "hosts"), i);

        AT_STRING(h, "version", VERSION);
        TEST_INT(strlen(json_string_value(berth_at(h, "session"))), 32);
        if (strcmp(json_string_value(berth_at(h, "host")), "bee") == 0) { /* the lowest limit is in force */
            AT_STRING(h, "limits.0.pool", "db");
            AT_INT(h, "limits.0.limit", 3);
            n++;
        } else {
            TEST_INT(json_array_size(berth_at(h, "limits")), 0);
        }
    }
    TEST_INT(n, 1);
    json_decref(json);
    json = berth_json(bee, "pools");
    CU_ASSERT(json_is_true(berth_at(json, "pools.name=db.limits_differ")));
    AT_INT(json, "pools.name=db.limit", 2);
    AT_INT(json, "pools.name=db.configured", 3);
    json_decref(json);
    TEST_INT(berth(bee, "hosts"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "db 3"));
}

static void test_runs_and_jobs(void) {
    struct child *waiter, *next;
    char words[64];
    json_t *json;

    TEST_INT(berth(ant, "runs"), 0);
    TEST_STRING(berth_out, "");
    host_mark(ant);
    TEST_INT(berth(ant, "start slow"), 0);
    host_await(ant, "started", "job=slow");
    waiter = berth_start(ant, "run -p here --name w -- true");
    host_await(ant, "queued", "job=w");
    next = berth_start(ant, "run -p here --name x -- true");
    host_await(ant, "queued", "job=x");
    json = berth_json(ant, "runs");
    TEST_INT(json_array_size(berth_at(json, "runs")), 3);
    AT_INT(json, "runs.2.position.here", 2);
    AT_STRING(json, "runs.0.name", "slow");
    AT_STRING(json, "runs.0.kind", "job");
    AT_STRING(json, "runs.0.state", "running");
    AT_INT(json, "runs.0.pools.here", 1);
    CU_ASSERT(berth_number_at(json, "runs.0.pid") > 0);
    AT_NULL(json, "runs.0.position");
    AT_NULL(json, "runs.0.blocked_by");
    AT_NULL(json, "runs.0.result");
    AT_NULL(json, "runs.0.ended");
    AT_STRING(json, "runs.1.name", "w");
    AT_STRING(json, "runs.1.kind", "adhoc");
    AT_STRING(json, "runs.1.state", "waiting");
    AT_INT(json, "runs.1.position.here", 1);
    AT_STRING(json, "runs.1.blocked_by", "pool full: here");
    AT_NULL(json, "runs.1.token");
    AT_NULL(json, "runs.1.started");
    AT_NULL(json, "runs.1.run_ms");
    snprintf(words, sizeof(words), "stop %s", json_string_value(berth_at(json, "runs.1.run")));
    json_decref(json);
    TEST_INT(berth(ant, "%s", words), 0);
    TEST_INT(berth_end(waiter), 75);
    child_kill(next, 15);
    TEST_INT(berth_end(next), 143);
    json = berth_json(ant, "jobs");
    AT_STRING(json, "jobs.0.name", "slow"); /* sorted */
    AT_STRING(json, "jobs.0.state", "running");
    AT_INT(json, "jobs.0.runs", 1);
    AT_NULL(json, "jobs.0.last_result");
    json_decref(json);
    TEST_INT(berth(ant, "stop slow"), 0);
    host_await(ant, "released", "job=slow");
    TEST_INT(berth(ant, "stop slow"), 0);
    TEST_STRING(berth_err, "berth: slow: nothing to stop\n");
    json = berth_json(ant, "jobs");
    AT_STRING(json, "jobs.0.state", "idle");
    AT_STRING(json, "jobs.0.last_result", "stopped");
    AT_INT(json, "jobs.0.last_signal", 15);
    json_decref(json);
    json = berth_json(ant, "runs --all");
    TEST_INT(json_array_size(berth_at(json, "runs")), 3);
    json_decref(json);
    TEST_INT(berth(ant, "start --wait three"), 3);
    TEST_INT(berth(ant, "start --wait three"), 3);
    TEST_INT(berth(ant, "jobs"), 0);
    CU_ASSERT(strstr(berth_out, "failure (exit 3), broken 2x") != NULL);
    CU_ASSERT(strstr(berth_out, "stopped (signal 15) ") != NULL); /* does not count */
    TEST_INT(berth(ant, "stop slwo"), 65);
    TEST_INT(berth(ant, "stop 0123456789abcdef0123456789abcdef"), 65);
    TEST_STRING(berth_err, "berth: no such run: 0123456789abcdef0123456789abcdef\n");
}

#define QUEUES "pool \"db\" { limit = 1 }\npool \"net\" { limit = 3 }\npool \"own\" { limit = 3 scope = \"host\" }\n"

static void end(struct child *c) {
    child_kill(c, 15);
    TEST_INT(berth_end(c), 143);
}

static void expect_why(const char *name, const char *why) {
    json_t *json = berth_json(ant, "runs");
    char path[64];

    snprintf(path, sizeof(path), "runs.name=%s.blocked_by", name);
    AT_STRING(json, path, why);
    json_decref(json);
}

static struct child *wait_in(struct host *h, const char *pools, const char *name) {
    struct child *c = berth_start(h, "run %s --name %s -- true", pools, name);

    host_await(h, "queued", "job=%s", name);
    return c;
}

static void expect_pid(struct host *h, bool is_known) {
    json_t *json = berth_json(h, "pools");

    AT_STRING(json, "pools.name=db.holders.0.host", "ant");
    TEST_INT(berth_number_at(json, "pools.name=db.holders.0.pid") > 0, is_known);
    TEST_INT(json_is_null(berth_at(json, "pools.name=db.holders.0.pid")), !is_known);
    json_decref(json);
}

/* Permits are free, but another claim is ahead. The view shows its name, its host, and what it waits for. */
static void test_behind(void) {
    struct host *bee = host_up("bee", QUEUES);
    struct child *holder, *both, *small, *own, *many, *few;

    host_set_config(ant, QUEUES);
    host_signal(ant, 1);
    host_await(ant, "limit-changed", "limits=db:1/declared");
    host_mark(ant);
    holder = berth_start(ant, "run -p db -p own:2 --name holder -- sleep 1000");
    host_await(ant, "started", "job=holder");
    both = wait_in(bee, "-p db -p net", "both");
    small = wait_in(ant, "-p net", "small");
    expect_why("small", "behind both on bee, which waits for db: net");
    expect_pid(ant, true);
    expect_pid(bee, false); /* the process is on another host */
    many = wait_in(ant, "-p own:2", "many");
    expect_why("many", "needs 2, free 1: own");
    few = wait_in(ant, "-p own", "few");
    expect_why("few", "behind many on ant, which needs 2: own");
    own = wait_in(ant, "-p db -p net", "late");
    expect_why("late", "pool full: db");
    TEST_INT(berth(ant, "pause net"), 0);
    host_await(ant, "limit-changed", "limits=net:0");
    expect_why("late", "paused: net"); /* the pause comes first, because no release ends it */
    end(own);
    end(few);
    end(many);
    end(both);
    end(small);
    end(holder);
    TEST_INT(berth(ant, "resume net"), 0);
}

/* Waits until `berth hosts` on host `at` shows whether host `of` is drained. */
static void await_drained(struct host *at, const struct host *of, bool drained) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char path[64];
    bool is;

    snprintf(path, sizeof(path), "hosts.host=%s.drained", of->name);
    do {
        json_t *json = berth_json(at, "hosts");

        is = json_is_true(berth_at(json, path));
        json_decref(json);
    } while (is != drained && clock_boottime() < until);
    TEST_INT(is, drained);
}

/* A drained host is shown as drained on itself, on other hosts, and after a restart of berthd. */
static void test_drained(void) {
    struct host *bee = host_up("bee", CONFIG "job \"often\" { command = {\"/bin/true\"} every = \"1d\" output = \"null\" }\n");
    json_t *json;

    await_drained(ant, bee, false);
    host_mark(bee);
    TEST_INT(berth(bee, "drain"), 0);
    host_await(bee, "drained", "uid=%u", (unsigned) getuid());
    await_drained(bee, bee, true);
    await_drained(ant, bee, true);
    await_drained(ant, ant, false);
    TEST_INT(berth(ant, "hosts"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " drained "));
    TEST_INT(berth(bee, "version"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, ", drained\n"));
    json = berth_json(bee, "jobs");
    CU_ASSERT(json_is_true(berth_at(json, "jobs.name=often.drained")));
    AT_NULL(json, "jobs.name=often.next");
    json_decref(json);
    TEST_INT(berth(bee, "jobs"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "drained"));
    host_stop(bee);
    host_start(bee);
    await_drained(ant, bee, true);
    host_mark(bee);
    TEST_INT(berth(bee, "undrain"), 0);
    TEST_INT(berth(bee, "undrain"), 0);
    host_await(bee, "undrained", "uid=%u", (unsigned) getuid());
    TEST_INT(host_count(bee, "undrained", " "), 1);
    await_drained(ant, bee, false);
    json = berth_json(bee, "jobs");
    CU_ASSERT(json_is_false(berth_at(json, "jobs.name=often.drained")));
    CU_ASSERT(json_is_string(berth_at(json, "jobs.name=often.next")));
    json_decref(json);
    TEST_INT(berth(bee, "version"), 0);
    CU_ASSERT_PTR_NULL(strstr(berth_out, "drained"));
}

/* A claim that Redis has not received is not parked. */
static void test_unasked(void) {
    struct child *waiter;
    json_t *json;

    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    host_mark(ant);
    waiter = berth_start(ant, "run -p db --name early -- true");
    host_await_pool(ant, "db", "waiting", 1);
    json = berth_json(ant, "pools db");
    AT_STRING(json, "pools.0.queue.0.name", "early");
    AT_NULL(json, "pools.0.queue.0.position");
    json_decref(json);
    TEST_INT(berth(ant, "pools db"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "early"));
    CU_ASSERT_PTR_NULL(strstr(berth_out, "parked"));
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_end_grace(ant);
    TEST_INT(berth_end(waiter), 0);
}

static CU_TestInfo tests[] = {
    {"drained", test_drained},
    {"behind", test_behind},
    {"pools", test_pools},
    {"hosts", test_hosts},
    {"runs and jobs", test_runs_and_jobs},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo patient_tests[] = {
    {"stale", test_stale},
    {"unasked", test_unasked},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "shown", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
            {.pName = "shown-patient", .pSetUpFunc = up_patient, .pTearDownFunc = cluster_down,
             .pTests = patient_tests});
