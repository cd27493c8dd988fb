/* SPDX-License-Identifier: MIT */

/* `berth explain` of runs that wait for something else than the permits of a pool: each reason, with its place and
 * name, as JSON and as text. */

#include <signal.h>
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
    shows("report", "\n  next     define the pool in a config again and run berth reload there, or stop the run\n");
    host_set_config(ant, NET);
    TEST_INT(berth(ant, "reload"), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(children[0]), 0);
    TEST_INT(berth_end(children[1]), 0);
}

/* The config has lost a pool of this host, while a run is parked there. A limit cannot be set, so none is proposed. */
static void lost_here(void) {
    struct child *children[2];
    json_t *answer;

    ant = host_up("ant", "pool \"disk\" { limit = 2 scope = \"host\" }\n");
    children[0] = berth_at_gate(ant, "-p disk", "import", "started");
    children[1] = berth_at_gate(ant, "-p disk:2", "report", "queued");
    TEST_INT(berth(ant, "limit disk 1"), 0);
    host_await(ant, "parked", "job=report");
    host_set_config(ant, DB);
    TEST_INT(berth(ant, "reload"), 0);
    answer = explain("report");
    AT_STRING(answer, "explained.0.blocked_by", "this host's config lacks it: disk");
    AT_STRING(answer, NOW("disk") ".why.code", "undefined");
    AT_STRING(answer, NOW("disk") ".why.text", "this host's config lacks it");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 0);
    json_decref(answer);
    shows("report", "\n  blocked  disk  this host's config lacks it\n");
    shows("report", "\n  next     define the pool again and run berth reload, or stop the run\n");
    TEST_INT(berth(ant, "limit disk 3"), 65);
    host_set_config(ant, "pool \"disk\" { limit = 2 scope = \"host\" }\n");
    TEST_INT(berth(ant, "reload"), 0); /* as it says */
    TEST_INT(berth(ant, "limit disk --clear"), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(children[0]), 0);
    TEST_INT(berth_end(children[1]), 0);
}

/* The pool is one of the cluster now. The run that waits for a host-limit that is gone is not said to wait for a lost pool. */
static void lost_host_limit(void) {
    struct child *children[2];
    json_t *answer;

    ant = host_up("ant", "pool \"db\" { limit = 3 host-limit = 3 }\n");
    children[0] = berth_at_gate(ant, "-p db:2", "import", "started");
    children[1] = berth_at_gate(ant, "-p db:3", "report", "queued");
    host_set_config(ant, "pool \"db\" { limit = 2 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    answer = explain("report");
    AT_STRING(answer, "explained.0.blocked_by", "limit 2 is below 3: db");
    json_decref(answer);
    host_set_config(ant, "pool \"db\" { limit = 3 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(children[0]), 0);
    TEST_INT(berth_end(children[1]), 0);
}

/* While Redis is away, this host knows neither what is free nor who is about to start. */
static void away(void) {
    struct child *children[3];
    json_t *answer;

    ant = host_up("ant", "pool \"db\" { limit = 3 }\npool \"disk\" { limit = 1 scope = \"host\" }\n");
    children[0] = berth_at_gate(ant, "-p db:2", "import", "started");
    children[1] = berth_at_gate(ant, "-p db:2", "load", "queued");
    children[2] = berth_at_gate(ant, "-p db -p disk", "report", "queued");
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    answer = explain("report");
    AT_STRING(answer, NOW("db") ".why.code", "away");
    AT_STRING(answer, NOW("db") ".why.text", "Redis alone knows");
    AT_STRING(answer, NOW("disk") ".why.code", "held");
    json_decref(answer);
    shows("report", "\n  blocked  redis away: ");
    shows("report", "\n  next     berth redis names the server; ");
    CU_ASSERT_PTR_NULL(strstr(berth_out, "about to start"));
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_end_grace(ant);
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < 3; i++)
        TEST_INT(berth_end(children[i]), 0);
}

/* No command alone starts the run: one pool is full, the other one is paused, and later has a low limit. The pool that parks the
 * claim alone lists it. */
static void several(void) {
    struct child *children[2];

    ant = host_up("ant", "pool \"db\" { limit = 1 }\npool \"net\" { limit = 2 }\n");
    children[0] = berth_at_gate(ant, "-p db", "import", "started");
    children[1] = berth_at_gate(ant, "-p db -p net:2", "report", "queued");
    TEST_INT(berth(ant, "pause net"), 0);
    shows("report", "\n  next     berth resume net ends the pause\n");
    TEST_INT(berth(ant, "limit db 2"), 0);
    shows("report", "\n  sooner   berth resume net "); /* now it helps */
    TEST_INT(berth(ant, "limit db --clear"), 0);
    TEST_INT(berth(ant, "resume net"), 0);
    TEST_INT(berth(ant, "limit net 1"), 0);
    shows("report", "\n  next     berth limit net shows who set the limit, or changes it\n");
    TEST_INT(berth(ant, "limit net --clear"), 0);
    shows("report", "\n  sooner   ");
    CU_ASSERT_PTR_NULL(strstr(berth_out, "\n  next "));
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(children[0]), 0);
    TEST_INT(berth_end(children[1]), 0);
}

static bool says(struct host *h, const char *words, const char *text) {
    return berth(h, "%s", words) == 0 && strstr(berth_out, text);
}

/* A host hangs. Until its session expires, the others see that it is silent. */
static void silent(void) {
    struct child *children[2];
    usec_t until = clock_boottime() + 2 * HOST_PATIENCE;
    struct host *bee;
    bool is_silent = false;

    cluster.lease = "10s";
    cluster.heartbeat = "1s";
    ant = host_up("ant", "pool \"db\" { limit = 1 }\n");
    bee = host_up("bee", "pool \"db\" { limit = 1 }\n");
    children[0] = berth_at_gate(bee, "-p db", "import", "started");
    children[1] = berth_at_gate(ant, "-p db", "report", "queued");
    CU_ASSERT(!says(ant, "hosts", "silent") && !says(ant, "explain report", "silent"));
    host_signal(bee, SIGSTOP);
    while (!is_silent && clock_boottime() < until && host_count(ant, "started", "job=report") == 0) {
        is_silent = says(ant, "hosts", "silent") && says(ant, "explain report", ", its host is silent\n");
        child_turn(clock_boottime() + 50 * USEC_PER_MSEC);
    }
    CU_ASSERT(is_silent);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\n  next     bee was last seen "));
    host_signal(bee, SIGCONT);
    test_gate_open(&cluster.gate);
    (void) berth_end(children[0]); /* its lease may be over */
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
    shows("copy", " on ant, pending: overlap\n  next     an earlier run of the job must end first; ");
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
    host_await_redis(ant);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    TEST_STRING(berth_err, "berth: no permit: grace period: nothing is granted yet; berth redis says for how long\n");
    child = berth_at_gate(ant, "-p db", "report", "queued");
    answer = explain("report");
    AT_STRING(answer, "explained.0.blocked_by", "grace");
    AT_INT(answer, NOW("db") ".used", 0);
    AT_STRING(answer, NOW("db") ".why.code", "grace");
    AT_NULL(answer, "explained.0.estimate");
    AT_STRING(answer, "explained.0.no_estimate", "grace");
    TEST_INT(json_array_size(berth_at(answer, "explained.0.sooner")), 0);
    json_decref(answer);
    shows("report", "\n  wants    db:1\n  blocked  db  grace period: nothing is granted for up to ");
    shows("report", "\n  next     hosts report first what they hold; berth help grace says how to end it now\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: grace period: nothing is granted for up to "));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "; what hosts have not reported since is missing here\n"));
    answer = berth_json(ant, "runs --cluster");
    CU_ASSERT(json_is_false(berth_at(answer, "complete")));
    json_decref(answer);
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
    {"drained", drained},       {"lost here", lost_here}, {"lost host-limit", lost_host_limit},
    {"away", away},             {"silent", silent},       {"several", several},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "explain-codes", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
