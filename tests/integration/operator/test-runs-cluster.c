/* SPDX-License-Identifier: MIT */

/* Runs of other hosts: `berth runs --cluster`, and which host has a run. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS                                                                                               \
    "pool \"db\" { limit = 1 }\npool \"net\" { limit = 200 }\npool \"cpu\" { limit = 4 scope = \"host\" "   \
    "}\n"

static struct host *ant, *bee;

static void up(void) {
    cluster_up_patient();
    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
}

static void all_hosts(void) {
    struct child *holder = berth_at_gate(ant, "-p db -p net:3", "dump", "started"), *waiter, *own;
    json_t *answer;

    waiter = berth_at_gate(bee, "-p cpu -p db -p net:2", "report", "queued");
    own = berth_at_gate(bee, "-p cpu", "lint", "started");
    answer = berth_json(ant, "runs --cluster");
    TEST_INT(json_array_size(berth_at(answer, "runs")),
             2); /* lint holds only permits of bee itself, which ant does not see */
    AT_STRING(answer, "runs.name=dump.host", "ant");
    AT_STRING(answer, "runs.name=dump.state", "holding");
    AT_INT(answer, "runs.name=dump.pools.net", 3);
    AT_NULL(answer, "runs.name=dump.position");
    AT_STRING(answer, "runs.name=report.host", "bee");
    AT_STRING(answer, "runs.name=report.state", "waiting");
    AT_INT(answer, "runs.name=report.position.db", 1);
    CU_ASSERT(json_is_true(berth_at(answer, "complete")));
    json_decref(answer);
    answer = berth_json(bee, "runs --cluster");
    TEST_INT(json_array_size(berth_at(answer, "runs")), 3);
    AT_STRING(answer, "runs.name=report.state", "waiting"); /* although it holds a permit of its host */
    json_decref(answer);
    answer = berth_json(bee, "pools db");
    AT_STRING(answer, "pools.name=db.holders.name=dump.host", "ant");
    AT_NULL(answer, "pools.name=db.holders.name=dump.pid"); /* of another host */
    json_decref(answer);
    answer = berth_json(ant, "runs --cluster report");
    TEST_INT(json_array_size(berth_at(answer, "runs")), 1);
    json_decref(answer);
    TEST_INT(berth(ant, "runs --cluster"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "report"));
    TEST_INT(berth(ant, "runs --cluster none"), 65);
    TEST_INT(berth(ant, "runs --cluster --all"), 64);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    TEST_INT(berth_end(waiter), 0);
    TEST_INT(berth_end(own), 0);
    TEST_INT(berth(ant, "runs --cluster"), 0);
    TEST_STRING(berth_err, "no run holds permits or waits for them\n");
}

/* A verb for runs of this host names the host of another's run. */
static void elsewhere(void) {
    struct child *holder = berth_at_gate(bee, "-p db", "dump", "started");
    char id[9], expected[128];

    snprintf(id, sizeof(id), "%s", event_get(bee->event, "run"));
    snprintf(expected, sizeof(expected), "berth: run %s (dump) is on bee: ask berth there\n", id);
    TEST_INT(berth(ant, "stop %s", id), 65);
    TEST_STRING(berth_err, expected);
    TEST_INT(berth(ant, "stop ffffffff"), 65);
    CU_ASSERT_PTR_NULL(strstr(berth_err, "is on"));
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

/* More claims than the list shows. */
static void cut(void) {
    struct child *children[101];
    json_t *answer;

    for (size_t i = 0; i < ELEMENTSOF(children); i++)
        children[i] = berth_start(bee, "run -p net --name many -- %s", cluster.at_gate);
    host_await_count(bee, ELEMENTSOF(children), "started", "job=many");
    answer = berth_json(ant, "runs --cluster");
    TEST_INT(json_array_size(berth_at(answer, "runs")), 100);
    CU_ASSERT(json_is_false(berth_at(answer, "complete")));
    json_decref(answer);
    TEST_INT(berth(ant, "runs --cluster"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "not all runs are listed"));
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < ELEMENTSOF(children); i++)
        TEST_INT(berth_end(children[i]), 0);
}

static CU_TestInfo tests[] = {
    {"all-hosts", all_hosts}, {"elsewhere", elsewhere}, {"cut", cut}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "runs-cluster", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
