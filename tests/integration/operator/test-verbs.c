/* SPDX-License-Identifier: MIT */
/* The verbs that change something, against a real berthd, runner and Redis: effects, output, exit status. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define CONFIG                                                                                                  \
    "pool \"db\" { limit = 2 }\n"                                                                               \
    "pool \"here\" { limit = 1 scope = \"host\" }\n"                                                               \
    "job \"three\" { command = {\"/bin/sh\", \"-c\", \"exit 3\"} pools = {\"db\"} stop-timeout = \"1s\" }\n"    \
    "job \"slow\" { command = {\"/bin/sleep\", \"1000\"} pools = {\"here\"} stop-timeout = \"1s\" }\n"          \
    "job \"limited\" { command = {\"/bin/sleep\", \"1000\"} timeout = \"1s\" stop-timeout = \"1s\" }\n"      \
    "job \"impatient\" { command = {\"/bin/true\"} pools = {\"here\"} queue-timeout = \"100ms\" }\n"            \
    "job \"missing\" { command = {\"/nonexistent\"} }\n"                                                        \
    "job \"again\" { command = {\"/bin/sh\", \"-c\", \"exit 4\"} pools = {\"here\"} overlap = \"queue\" }\n"

static struct host *ant;

static void up(void) {
    cluster_up();
    ant = host_up("ant", CONFIG);
}

static void test_start_wait(void) {
    struct child *a, *b;

    TEST_INT(berth(ant, "start three --wait"), 3);
    TEST_STRING(berth_err, "berth: three: failure (exit 3)\n");
    TEST_INT(strlen(berth_out), 33); /* the run's id */
    TEST_INT(berth(ant, "start --wait limited"), 124);
    TEST_INT(berth(ant, "start --wait missing"), 125);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "not-started"));
    TEST_INT(berth(ant, "start nope"), 65);
    host_mark(ant);
    a = berth_start(ant, "start slow --wait");
    host_await(ant, "started", "job=slow");
    TEST_INT(berth(ant, "start slow"), 75); /* overlap = "skip" */
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "skipped"));
    TEST_INT(berth(ant, "start --wait impatient"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "queue-timeout"));
    b = berth_start(ant, "start --wait again");
    host_await(ant, "queued", "job=again");
    TEST_INT(berth(ant, "stop slow"), 0);
    TEST_INT(berth_end(a), 143);
    TEST_INT(berth_end(b), 4);
    TEST_INT(berth(ant, "start three limited --wait"), 3); /* the status of the first job that failed */
}

/* overlap = "queue": --wait waits for the run that its own start began. */
static void test_start_behind(void) {
    struct child *a, *b;

    TEST_INT(berth(ant, "pause here"), 0);
    host_mark(ant);
    a = berth_start(ant, "start --wait again");
    host_await(ant, "parked", "job=again");
    b = berth_start(ant, "start --wait again");
    for (usec_t until = clock_boottime() + HOST_PATIENCE; !child_text(b, 1)[0] && clock_boottime() < until;)
        child_turn(until); /* an id in its output: berthd has replied */
    TEST_INT(berth(ant, "start again"), 75); /* overlap = "queue" keeps one run at most */
    TEST_INT(berth(ant, "resume here"), 0);
    TEST_INT(berth_end(a), 4);
    TEST_INT(berth_end(b), 4);
    TEST_INT(host_count(ant, "exited", "job=again"), 2);
}

static void test_limits(void) {
    struct child *waiter;
    json_t *json;

    TEST_INT(berth(ant, "limit db 1 --for 10m --reason 'slow disk'"), 0);
    json = berth_json(ant, "pools db");
    AT_INT(json, "pools.0.limit", 1);
    AT_INT(json, "pools.0.configured", 2);
    AT_INT(json, "pools.0.override.limit", 1);
    AT_STRING(json, "pools.0.override.reason", "slow disk");
    CU_ASSERT(json_is_string(berth_at(json, "pools.0.override.until")));
    json_decref(json);
    host_mark(ant);
    TEST_INT(berth(ant, "pause db"), 0);
    waiter = berth_start(ant, "run -p db --name w -- true");
    host_await(ant, "queued", "job=w");
    json = berth_json(ant, "runs");
    AT_STRING(json, "runs.0.blocked_by", "paused: db");
    json_decref(json);
    TEST_INT(berth(ant, "resume db"), 0);
    TEST_INT(berth_end(waiter), 0);
    TEST_INT(host_pool(ant, "db", "limit"), 1); /* the override before the pause */
    TEST_INT(berth(ant, "limit db --clear"), 0);
    TEST_INT(host_pool(ant, "db", "limit"), 2);
    TEST_INT(berth(ant, "limit here 5"), 0);
    TEST_INT(host_pool(ant, "here", "limit"), 5);
    TEST_INT(berth(ant, "limit here --clear"), 0);
    TEST_INT(berth(ant, "limit nope 5"), 65);
    TEST_INT(berth(ant, "pause nope"), 65);
    TEST_INT(berth(ant, "resume nope"), 65);
    TEST_INT(berth(ant, "limit db 5 --reason 'a\nb'"), 64);
    TEST_STRING(berth_err, "berth: the reason has a control character; write one line of text\n");
}

static void revokes(const char *pool) {
    struct child *holder;
    char claim[40];
    json_t *json;

    host_mark(ant);
    holder = berth_start(ant, "run -p %s --name h -- sleep 1000", pool);
    host_await(ant, "started", "job=h");
    json = berth_json(ant, "pools %s", pool);
    snprintf(claim, sizeof(claim), "%s", json_string_value(berth_at(json, "pools.0.holders.0.claim")));
    json_decref(json);
    TEST_STRING(claim, event_get(host_await(ant, "started", "job=h"), "run")); /* the run's id */
    TEST_INT(berth(ant, "revoke %.6s --reason test", claim), 0);
    TEST_INT(berth_end(holder), 143);
    host_await(ant, "revoked", "job=h");
    host_await_pool(ant, pool, "used", 0);
    TEST_INT(berth(ant, "revoke %.6s", claim), 65);
    TEST_INT(berth(ant, "revoke %s", claim), 65);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "holds permits or waits for them"));
}

static void test_revoke(void) {
    revokes("db");
    revokes("here");
}

static void test_reload(void) {
    TEST_INT(berth(ant, "reload"), 0);
    host_set_config(ant, "pool \"db\" { limit = 2 \n limti = 3 }\npool \"here\" { limit = x }\n");
    TEST_INT(berth(ant, "reload"), 78);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "limti"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "nothing was changed"));
    TEST_INT(host_pool(ant, "db", "limit"), 2);
    host_set_config(ant, "pool \"db\" { limit = 1 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    host_await_pool(ant, "db", "limit", 1);
    cluster.lease = "4s"; /* host_set_config() writes it into the config */
    host_set_config(ant, "pool \"db\" { limit = 2 }\n");
    TEST_INT(berth(ant, "reload"), 78);
    CU_ASSERT(strstr(berth_err, "lease has changed: restart berthd, a reload cannot change it") != NULL);
    TEST_INT(host_pool(ant, "db", "limit"), 1);
    TEST_INT(berth(ant, "version"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "berthd " VERSION " on ant, namespace test, process "));
}

/* A service manager's restart: no waiting client loses its place or sees an error. */
static void test_restart(void) {
    struct child *holder, *waiter;
    uint64_t ticket;
    struct host *bee;

    TEST_INT(setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1), 0);
    bee = host_up("bee", "pool \"one\" { limit = 1 scope = \"host\" }\n");
    host_mark(bee);
    holder = berth_start(bee, "run -p one --name h -- sleep 1000");
    host_await(bee, "started", "job=h");
    waiter = berth_start(bee, "run -p one --name w -- true");
    ticket = event_get_u64(host_await(bee, "queued", "job=w"), "ticket");
    host_stop(bee);
    TEST_INT(host_count(bee, "withdrawn", " "), 0);
    TEST_INT(host_count(bee, "stopping", " "), 0);
    host_start(bee);
    TEST_INT(unsetenv("NOTIFY_SOCKET"), 0);
    host_await(bee, "ready", " ");
    TEST_INT(host_pool(bee, "one", "used"), 1);
    TEST_INT(host_pool(bee, "one", "waiting"), 1);
    child_kill(holder, 15);
    TEST_INT(berth_end(holder), 143);
    TEST_INT(event_get_u64(host_await(bee, "granted", "job=w"), "ticket"), ticket);
    TEST_INT(berth_end(waiter), 0);
    bee->abandoned = true; /* berthd leaves its records for its successor */
}

/* berthd raises its limit of descriptors. Commands have the limit that berthd was started with. */
static void test_file_limit(void) {
    struct rlimit before, low = {512, 2048};
    struct host *bee;
    char path[96], text[16] = "";
    _cleanup_fclose_ FILE *f = NULL;
    struct rlimit raised;

    TEST_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    low.rlim_max = before.rlim_max;
    TEST_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
    snprintf(path, sizeof(path), "%s/limit", cluster.folder);
    bee = host_up("bee", "job \"limit\" { command = {\"/bin/sh\", \"-c\", \"ulimit -Sn\"} output = \"%s\" }\n", path);
    TEST_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
    TEST_INT(prlimit(bee->berthd->pid, RLIMIT_NOFILE, NULL, &raised), 0);
    CU_ASSERT(raised.rlim_cur > 512);
    TEST_INT(berth(bee, "start limit --wait"), 0);
    f = fopen(path, "re");
    CU_ASSERT(f && fgets(text, sizeof(text), f));
    TEST_STRING(text, "512\n");
}

static CU_TestInfo tests[] = {
    {"start-wait", test_start_wait},
    {"start-behind", test_start_behind},
    {"limits", test_limits},
    {"revoke", test_revoke},
    {"reload", test_reload},
    {"restart", test_restart},
    {"file-limit", test_file_limit},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "verbs", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
