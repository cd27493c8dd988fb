/* SPDX-License-Identifier: MIT */

/* `berth explain` of runs that wait for something else than the permits of a pool: each reason, with its place and
 * name, as JSON and as text. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define DB "pool \"db\" { limit = 3 host-limit = 1 }\n"
#define NET "pool \"db\" { limit = 1 }\npool \"net\" { limit = 1 }\n"
#define NOW(pool) "explained.0.pools.pool=" pool

static struct host *ant;

static void up(void) {
    cluster_up_patient();
}

static json_t *explain(const char *word) {
    return berth_json(ant, "explain %s", word);
}

static void shows(const char *word, const char *text) {
    TEST_INT(berth(ant, "explain %s", word), 0);
    if (!strstr(berth_out, text))
        printf("%s", berth_out);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, text));
}

/* The pool has room, but this host holds what it may. */
static void host_limit(void) {
    struct child *children[2];
    json_t *answer;

    ant = host_up("ant", DB);
    children[0] = berth_at_gate(ant, "-p db", "import", "started");
    children[1] = berth_at_gate(ant, "-p db", "report", "queued");
    answer = explain("report");
    AT_STRING(answer, "explained.0.name", "report");
    AT_STRING(answer, "explained.0.blocked_by", "host-limit: db");
    AT_STRING(answer, NOW("db") ".why.code", "host-limit");
    AT_STRING(answer, NOW("db") ".why.text", "host-limit: full on this host");
    AT_INT(answer, NOW("db") ".free", 2);
    AT_STRING(answer, NOW("db") ".holders.0.name", "import");
    AT_NULL(answer, "explained.0.estimate");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 0); /* a limit of the cluster does not help */
    json_decref(answer);
    shows("report", "\n  wants    db:1\n  blocked  db  host-limit: full on this host\n  holders  db  ");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(children[0]), 0);
    TEST_INT(berth_end(children[1]), 0);
}

/* No host defines the pool any more, and the claim that waits for it has nobody who would give it a limit. */
static void undefined(void) {
    struct child *children[2];
    json_t *answer;

    ant = host_up("ant", NET);
    children[0] = berth_at_gate(ant, "-p net", "import", "started");
    children[1] = berth_at_gate(ant, "-p net", "report", "queued");
    host_set_config(ant, "pool \"db\" { limit = 1 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    host_await_pool(ant, "net", "limit", 0);
    answer = explain("report");
    AT_STRING(answer, NOW("net") ".why.code", "undefined");
    AT_STRING(answer, NOW("net") ".why.text", "no host defines it");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 0);
    json_decref(answer);
    shows("report", "\n  blocked  net  no host defines it\n");
    host_set_config(ant, NET);
    TEST_INT(berth(ant, "reload"), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(children[0]), 0);
    TEST_INT(berth_end(children[1]), 0);
}

/* Two runs of a job: the later one waits for the end of the other, and asks for no permits yet. */
static void overlap(void) {
    json_t *answer;

    ant = host_up("ant", "job \"copy\" { %s overlap = \"queue\" }\n", witness_at_gate("copy", 0));
    TEST_INT(berth(ant, "start copy"), 0);
    host_await(ant, "started", "job=copy");
    TEST_INT(berth(ant, "start copy"), 0);
    answer = explain("copy");
    TEST_INT(json_array_size(berth_at(answer, "explained")), 2);
    AT_STRING(answer, "explained.0.state", "running");
    AT_STRING(answer, "explained.1.state", "pending");
    AT_STRING(answer, "explained.1.blocked_by", "overlap");
    json_decref(answer);
    shows("copy", " on ant, pending: overlap\n");
    test_gate_open(&cluster.gate);
    host_await_count(ant, 2, "exited", "job=copy");
}

/* In the grace period of a new namespace nothing is granted, though the pool is free. */
static void grace(void) {
    struct child *child;
    json_t *answer;

    ant = host_add("ant", DB);
    host_start(ant);
    host_await(ant, "grace-begun", " ");
    child = berth_at_gate(ant, "-p db", "report", "queued");
    answer = explain("report");
    AT_STRING(answer, "explained.0.blocked_by", "grace");
    AT_INT(answer, NOW("db") ".used", 0);
    AT_NULL(answer, "explained.0.estimate");
    AT_STRING(answer, "explained.0.no_estimate", "grace");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 0);
    json_decref(answer);
    shows("report", "\n  blocked  grace\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: grace period: nothing is granted for up to "));
    host_end_grace(ant);
    host_await(ant, "started", "job=report");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(child), 0);
}

/* A drained host has no waiting run. */
static void drained(void) {
    struct child *child;
    json_t *answer;

    ant = host_up("ant", DB "job \"copy\" { command = {\"/bin/true\"} schedule = {\"@yearly\"} }\n");
    child = berth_at_gate(ant, "-p db", "import", "started");
    TEST_INT(berth(ant, "drain"), 0);
    shows("copy", "copy  has no run; next: drained\n");
    answer = explain("copy");
    TEST_INT(json_array_size(berth_at(answer, "explained")), 0);
    json_decref(answer);
    shows("import", " on ant, running, began ");
    TEST_INT(berth(ant, "undrain"), 0);
    shows("copy", "copy  has no run; next: in ");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(child), 0);
}

static CU_TestInfo tests[] = {
    {"host-limit", host_limit}, {"undefined", undefined}, {"overlap", overlap}, {"grace", grace},
    {"drained", drained},       CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "explain-codes", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
