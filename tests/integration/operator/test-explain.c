/* SPDX-License-Identifier: MIT */

/* `berth explain`: why runs of two hosts wait, and that the proposed commands work. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS                                                                                               \
    "pool \"db\" { limit = 3 }\npool \"net\" { limit = 1 }\npool \"cpu\" { limit = 1 scope = \"host\" }\n"
#define WHY(pool) "explained.0.pools.pool=" pool ".why.code"

static struct host *ant, *bee;

static void up(void) {
    cluster_up_patient();
}

static void hosts_up(void) {
    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
}

static json_t *explain(struct host *h, const char *word) {
    return berth_json(h, "explain %s", word);
}

/* Runs the command that "sooner" names at this place. */
static void obey(struct host *h, const json_t *answer, size_t place) {
    const json_t *words = berth_at(json_array_get(berth_at(answer, "explained.0.sooner"), place), "do");
    char line[256] = "";
    json_t *word;
    size_t i;

    json_array_foreach (words, i, word)
        if (i > 0)
            snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s ", json_string_value(word));
    TEST_FATAL(line[0] != '\0', "no such command");
    line[strlen(line) - 1] = '\0';
    TEST_INT(berth(h, "%s", line), 0);
}

static void all_end(struct child *const children[], size_t n) {
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < n; i++)
        TEST_INT(berth_end(children[i]), 0);
}

/* A full pool: the holders, the claims ahead, and the limit that starts the last one. */
static void full(void) {
    struct child *children[3];
    json_t *answer;

    hosts_up();
    children[0] = berth_at_gate(ant, "-p db:3", "import", "started");
    children[1] = berth_at_gate(bee, "-p db:2", "dump", "queued");
    children[2] = berth_at_gate(bee, "-p db", "report", "queued");
    (void) host_pool(bee, "db", "waiting");
    answer = explain(bee, "report");
    AT_STRING(answer, "explained.0.name", "report");
    AT_STRING(answer, "explained.0.state", "waiting");
    AT_STRING(answer, WHY("db"), "full");
    AT_STRING(answer, "explained.0.pools.0.why.text", "full: 3 of 3 used, place 2");
    AT_INT(answer, "explained.0.pools.0.place", 2);
    AT_STRING(answer, "explained.0.pools.0.ahead.0.name", "dump");
    AT_STRING(answer, "explained.0.pools.0.holders.0.name", "import");
    AT_STRING(answer, "explained.0.sooner.0.do.3", "6");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner.0.starts")), 2);
    AT_STRING(answer, "explained.0.sooner.1.stops", "ant:import");
    TEST_INT(berth(bee, "explain report"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\n  blocked  db  full: 3 of 3 used, place 2\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\n  sooner   berth limit db 6"));
    obey(bee, answer, 0);
    host_await(bee, "started", "job=report");
    json_decref(answer);
    answer = explain(bee, "report");
    AT_STRING(answer, "explained.0.state", "running");
    json_decref(answer);
    all_end(children, 3);
    TEST_INT(berth(bee, "limit db --clear"), 0);
}

/* The first of the queue waits for another pool, or needs more than is free; the end of one holder starts
 * both. */
static void head_needs(void) {
    struct child *children[4];
    json_t *answer;

    hosts_up();
    children[0] = berth_at_gate(ant, "-p net", "upload", "started");
    children[1] = berth_at_gate(ant, "-p db:1 -p net:1", "sync", "queued");
    children[2] = berth_at_gate(bee, "-p db", "report", "queued");
    children[3] = berth_at_gate(bee, "-p db", "tail", "queued");
    answer = explain(bee, "report");
    AT_STRING(answer, WHY("db"), "head-needs");
    AT_STRING(answer, "explained.0.pools.0.why.text", "place 2, 3 free; the first, ant:sync, waits for net");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 2); /* no limit of db helps */
    AT_STRING(answer, "explained.0.sooner.0.do.1", "move");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner.0.starts")), 1);
    AT_STRING(answer, "explained.0.sooner.1.stops", "ant:upload");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner.1.starts")), 3);
    json_decref(answer);
    answer = explain(ant, "sync");
    AT_STRING(answer, WHY("net"), "full");
    AT_STRING(answer, WHY("db"), "free");
    AT_STRING(answer, "explained.0.sooner.0.do.2", "net");
    json_decref(answer);
    all_end(children, 4);
}

/* A pause, whose end is the command; and a limit below the demand. */
static void low(void) {
    struct child *child, *big;
    json_t *answer;

    hosts_up();
    TEST_INT(berth(ant, "pause db --reason backup"), 0);
    child = berth_at_gate(bee, "-p db:2", "dump", "queued");
    answer = explain(bee, "dump");
    AT_STRING(answer, WHY("db"), "paused");
    AT_STRING(answer, "explained.0.pools.0.why.text", "paused (backup)");
    AT_INT(answer, "explained.0.pools.0.place", 1);
    AT_STRING(answer, "explained.0.sooner.0.do.1", "resume");
    obey(bee, answer, 0);
    host_await(bee, "started", "job=dump");
    json_decref(answer);
    TEST_INT(berth(ant, "limit db 2"), 0);
    big = berth_at_gate(bee, "-p db:3", "wide", "parked");
    answer = explain(bee, "wide");
    AT_STRING(answer, WHY("db"), "limit-below");
    AT_STRING(answer, "explained.0.pools.0.why.text", "limit 2 is below 3");
    AT_STRING(answer, "explained.0.sooner.0.do.3", "5");
    obey(bee, answer, 0);
    host_await(bee, "started", "job=wide");
    json_decref(answer);
    all_end((struct child *[]){child, big}, 2);
    TEST_INT(berth(ant, "limit db --clear"), 0);
}

/* Neither the end of a pause nor the end of a holder helps alone, so neither is named. */
static void two_reasons(void) {
    struct child *children[2];
    json_t *answer;

    hosts_up();
    children[0] = berth_at_gate(ant, "-p db:3", "import", "started");
    TEST_INT(berth(ant, "pause db"), 0);
    children[1] = berth_at_gate(bee, "-p db:2", "dump", "queued");
    answer = explain(bee, "dump");
    AT_STRING(answer, WHY("db"), "paused");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 0);
    json_decref(answer);
    TEST_INT(berth(ant, "resume db"), 0);
    all_end(children, 2);
}

/* A run of another host, by the first digits of its id. It may hold a permit of its host while it waits. */
static void elsewhere(void) {
    struct child *children[3];
    json_t *answer;
    char id[9];

    hosts_up();
    children[0] = berth_at_gate(ant, "-p net", "upload", "started");
    children[1] = berth_at_gate(bee, "-p net -p cpu", "dump", "queued");
    snprintf(id, sizeof(id), "%s", event_get(bee->event, "run"));
    children[2] = berth_at_gate(bee, "-p cpu", "lint", "queued");
    answer = explain(ant, id);
    AT_STRING(answer, "explained.0.host", "bee");
    AT_STRING(answer, "explained.0.name", "dump");
    AT_STRING(answer, WHY("net"), "full");
    json_decref(answer);
    answer = explain(ant, "dump"); /* the name as berth pools shows it */
    AT_STRING(answer, "explained.0.host", "bee");
    AT_STRING(answer, WHY("net"), "full");
    json_decref(answer);
    answer = explain(bee, "dump");
    AT_STRING(answer, WHY("cpu"), "held");
    AT_STRING(answer, WHY("net"), "full");
    AT_STRING(answer, "explained.0.sooner.0.do.2", "net");
    json_decref(answer);
    answer = explain(bee, "lint"); /* the end of its holder starts it */
    AT_STRING(answer, WHY("cpu"), "full");
    AT_STRING(answer, "explained.0.sooner.1.stops", "bee:dump");
    json_decref(answer);
    all_end(children, 3);
}

static json_t *await_estimate(struct host *h, const char *word) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    json_t *answer = explain(h, word);

    while (!json_is_object(berth_at(answer, "explained.0.estimate")) && clock_boottime() < until) {
        json_decref(answer);
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
        answer = explain(h, word);
    }
    CU_ASSERT(json_is_object(berth_at(answer, "explained.0.estimate")));
    return answer;
}

/* An estimate needs ten runs of the holder, also after a restart of berthd. The holder's host has it at
 * once, another host once these runs are published. A move to the front helps a claim that stands behind
 * others. */
static void estimate(void) {
    struct child *children[3];
    json_t *answer;
    char id[33];

    hosts_up();
    for (int i = 0; i < 9; i++)
        TEST_INT(berth(bee, "run -p db:3 --name dump -- /bin/sleep 0.02"), 0);
    host_await_count(bee, 9, "released", "job=dump");
    host_mark(bee);
    children[0] = berth_at_gate(bee, "-p db:3", "dump", "started");
    children[1] = berth_at_gate(bee, "-p db:3", "report", "queued");
    answer = explain(bee, "report");
    CU_ASSERT(json_is_null(berth_at(answer, "explained.0.estimate")));
    AT_STRING(answer, "explained.0.no_estimate", "bee:dump has run only 9 times");
    AT_INT(answer, "explained.0.pools.0.holders.0.usual.runs", 9);
    json_decref(answer);
    TEST_INT(berth(bee, "stop report"), 0);
    TEST_INT(berth(bee, "stop dump"), 0); /* a run that was stopped does not count */
    (void) berth_end(children[0]);
    (void) berth_end(children[1]);
    host_await_pool(bee, "db", "used", 0);
    host_mark(bee);
    TEST_INT(berth(bee, "run -p db:3 --name dump -- /bin/sleep 0.02"), 0);
    host_await(bee, "released", "job=dump");
    host_stop(bee);
    host_mark(bee);
    host_start(bee);
    host_open(bee);
    host_mark(bee);
    children[0] = berth_at_gate(bee, "-p db:3", "dump", "started");
    children[1] = berth_at_gate(bee, "-p db:3", "dump", "queued");
    children[2] = berth_at_gate(bee, "-p db:3", "copy", "queued");
    answer = await_estimate(bee, "copy");
    AT_INT(answer, "explained.0.estimate.samples", 200);
    AT_INT(answer, "explained.0.estimate.basis.0.runs", 10);
    AT_STRING(answer, "explained.0.estimate.basis.0.basis", "own");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.estimate.basis")), 1);
    CU_ASSERT(berth_number_at(answer, "explained.0.estimate.low_ms") <= berth_number_at(answer, "explained.0.estimate.high_ms"));
    AT_STRING(answer, "explained.0.sooner.1.do.1", "move");
    CU_ASSERT(berth_number_at(answer, "explained.0.sooner.1.high_ms") <= berth_number_at(answer, "explained.0.estimate.high_ms"));
    AT_STRING(answer, "explained.0.sooner.2.do.1", "steal");
    snprintf(id, sizeof(id), "%s", json_string_value(berth_at(answer, "explained.0.run")));
    json_decref(answer);
    TEST_INT(berth(bee, "explain copy"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\n  start    in "));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "from the last 10 runs"));
    TEST_INT(berth(bee, "explain --no-estimate copy"), 0);
    CU_ASSERT_PTR_NULL(strstr(berth_out, "\n  start "));
    json_decref(await_estimate(ant, id));
    all_end(children, 3);
}

/* A job without a run, runs that are over, and words that name nothing or several runs. */
static void not_waiting(void) {
    struct child *slow;
    json_t *answer;
    char id[33];

    ant = host_add("ant", POOLS "job \"copy\" {\n  command = { \"/bin/true\" }\n  pools = { \"db:1\" }\n}\n"
                         "job \"slow\" { command = { \"/bin/sleep\", \"60\" } timeout = \"10s\" }\n");
    host_clock_give(ant);
    host_start(ant);
    host_open(ant);
    slow = berth_start(ant, "start --wait slow");
    host_await(ant, "started", "job=slow"); /* before its command has begun, a timeout ends it without a signal */
    host_clock_jump(ant, 10 * USEC_PER_SEC);
    TEST_INT(berth_end(slow), 124);
    TEST_INT(berth(ant, "explain slow"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " is over: timeout (signal 15), "));
    CU_ASSERT_PTR_NULL(strstr(berth_out, "(timeout)")); /* no reason beside the result */
    TEST_INT(berth(ant, "explain copy"), 0);
    TEST_STRING(berth_out, "copy  has no run; next: none\n");
    TEST_INT(berth(ant, "start --wait copy"), 0);
    answer = explain(ant, "copy");
    AT_STRING(answer, "explained.0.state", "done");
    AT_STRING(answer, "explained.0.result", "success");
    snprintf(id, sizeof(id), "%s", json_string_value(berth_at(answer, "explained.0.run")));
    json_decref(answer);
    TEST_INT(berth(ant, "explain %.6s", id), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " on ant, is over: success"));
    TEST_INT(berth(ant, "explain cpy"), 65);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "copy"));
    TEST_INT(berth(ant, "explain ffffffff"), 65);
    TEST_INT(berth(ant, "explain"), 64);
}

/* Without Redis, its absence is the reason, and explain proposes nothing from old data. */
static void redis_away(void) {
    struct child *children[2];
    json_t *answer;

    ant = host_up("ant", POOLS);
    children[0] = berth_at_gate(ant, "-p net", "sync", "started");
    children[1] = berth_at_gate(ant, "-p net", "upload", "queued");
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", "%s", "");
    answer = explain(ant, "upload");
    CU_ASSERT(json_is_true(berth_at(answer, "stale")));
    CU_ASSERT(strncmp(json_string_value(berth_at(answer, "explained.0.blocked_by")), "redis away", 10) == 0);
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 0);
    json_decref(answer);
    TEST_INT(berth(ant, "explain upload"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\n  blocked  redis away"));
    redis_server_resume(&cluster.redis);
    host_mark(ant);
    host_open(ant);
    all_end(children, 2);
}

static CU_TestInfo tests[] = {
    {"full", full},
    {"head-needs", head_needs},
    {"low", low},
    {"two-reasons", two_reasons},
    {"elsewhere", elsewhere},
    {"estimate", estimate},
    {"not-waiting", not_waiting},
    {"redis-away", redis_away},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "explain", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
