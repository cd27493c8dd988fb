/* SPDX-License-Identifier: MIT */

/* `berth doctor`: findings about hosts, pools and queues of a cluster, each ended by the remedy that it
 * names. */

#include <signal.h>
#include <string.h>

#include "tests/harness/host/remedy.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\npool \"net\" { limit = 2 scope = \"host\" }\n"

static int doctor(struct host *h, const char *checks) {
    return berth(h, "doctor -c %s --only %s", h->config, checks);
}

static void is_fine(struct host *h, const char *check) {
    TEST_INT(doctor(h, check), 0);
    TEST_STRING(berth_out, "1 check fine\n");
}

/* Runs the check until it has a finding with this text, or none ("1 check fine"). */
static void await(struct host *h, const char *check, const char *text) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    do
        (void) doctor(h, check);
    while (!strstr(berth_out, text) && clock_boottime() < until);
    if (!strstr(berth_out, text))
        TEST_STRING(berth_out, text);
}

static void test_limits(void) {
    struct host *ant = host_up("ant", POOLS), *bee;

    is_fine(ant, "limits-differ");
    bee = host_up("bee", "pool \"db\" { limit = 3 }\n");
    await(ant, "limits-differ",
          "WARN limits-differ     db: hosts declare different limits; 2 is in force, as on");
    TEST_INT(doctor(ant, "limits-differ"), 1);
    await(ant, "limits-differ", "ant; others: bee 3\n");
    host_set_config(bee, POOLS);
    remedy_run(ant, bee, "limits-differ");
    await(ant, "limits-differ", "1 check fine");
}

static void test_pools(void) {
    struct host *ant = host_up("ant", POOLS), *bee = host_up("bee", POOLS "pool \"web\" { limit = 3 }\n");

    await(ant, "pools-differ", "NOTE pools-differ      ant does not define pools of bee: web\n");
    await(bee, "pools-differ", "NOTE pools-differ      ant does not define pools of bee: web\n");
    TEST_INT(doctor(ant, "limits-differ,pools-differ"), 0);
    host_set_config(bee, POOLS "pool \"web\" { limit = 3 scope = \"host\" }\n");
    remedy_run(ant, bee, "pools-differ");
    await(ant, "pools-differ", "1 check fine"); /* it is bee's own */
    await(bee, "pools-differ", "1 check fine");
    host_set_config(ant, POOLS "pool \"web\" { limit = 3 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    await(ant, "limits-differ", "web: hosts declare different limits"); /* scopes: not a second finding */
    await(bee, "pools-differ", "1 check fine");
    await(ant, "pools-differ", "1 check fine");
}

/* A clone: each test host has the machine id of this machine. */
static void test_twice(void) {
    struct host *ant = host_up("ant", POOLS), *bee;
    struct child *held;

    is_fine(ant, "hosts-twice");
    bee = host_add("bee", POOLS);
    bee->called = "ant";
    host_set_config(bee, POOLS);
    host_start(bee);
    held = berth_at_gate(bee, "-p db:2", "held", "started");
    await(ant, "hosts-twice", "WARN hosts-twice       ant: two machines have this name and the same machine id\n");
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(held), 0);
    bee->called = NULL; /* as it says */
    host_stop(bee);
    host_set_config(bee, POOLS);
    host_start(bee);
    await(ant, "hosts-twice", "1 check fine");
}

#define NIGHTLY(hour) "job \"nightly\" { command = {\"/bin/true\"} zone = \"UTC\" on = \"any\" schedule = {\"0 " hour " * * *\"} }\n"

static void test_jobs(void) {
    struct host *ant = host_up("ant", NIGHTLY("3")), *bee;

    is_fine(ant, "jobs-differ");
    bee = host_up("bee", NIGHTLY("4"));
    host_await(bee, "jobs-differ", "job=nightly other_host=ant");
    await(ant, "jobs-differ", "WARN jobs-differ       nightly: bee defines other due times than ant; the");
    TEST_INT(doctor(ant, "jobs-differ"), 1);
    TEST_INT(berth(ant, "hosts"), 0);
    CU_ASSERT(strstr(berth_out, " nightly has other due times\n") != NULL);
    host_mark(bee);
    host_set_config(bee, NIGHTLY("3"));
    remedy_run(ant, bee, "jobs-differ");
    await(ant, "jobs-differ", "1 check fine");
    TEST_INT(host_count(bee, "jobs-differ", " "), 0);
}

static void test_open_turns(void) {
    struct host *ant = host_up("ant", NIGHTLY("3")), *bee = host_up("bee", NIGHTLY("3"));

    is_fine(ant, "open-turns");
    TEST_INT(berth(ant, "drain"), 0);
    await(ant, "open-turns", "1 check fine"); /* there is bee */
    TEST_INT(berth(bee, "drain"), 0);
    await(ant, "open-turns", "WARN open-turns        nightly: no host takes its due times: every host that");
    TEST_INT(doctor(ant, "open-turns"), 1);
    remedy_run(ant, ant, "open-turns");
    await(ant, "open-turns", "1 check fine");
    TEST_INT(berth(bee, "undrain"), 0);
}

static void test_silent(void) {
    struct host *ant, *bee;

    cluster.lease = "12s"; /* three quarters of it */
    cluster.heartbeat = "3s"; /* a busy machine stands still for less */
    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
    await(ant, "hosts-silent", "1 check fine");
    host_signal(bee, SIGSTOP);
    await(ant, "hosts-silent", "WARN hosts-silent      bee: not seen for ");
    TEST_INT(doctor(ant, "hosts-silent"), 1);
    is_fine(ant, "suspend");
    host_signal(bee, SIGCONT);
    await(ant, "hosts-silent", "1 check fine");
    await(bee, "suspend", "NOTE suspend           berthd or this machine stood still for ");
}

static void test_drained(void) {
    struct host *ant = host_up("ant", POOLS), *bee = host_up("bee", POOLS);

    is_fine(ant, "host-drained");
    TEST_INT(berth(bee, "drain"), 0);
    await(ant, "host-drained", "NOTE host-drained      other drained hosts: bee\n");
    TEST_INT(doctor(bee, "host-drained"), 0);
    CU_ASSERT_PTR_EQUAL(strstr(berth_out, "NOTE host-drained      this host is drained: it begins no runs\n"),
                        berth_out);
    remedy_run(bee, bee, "host-drained");
    is_fine(bee, "host-drained");
    await(ant, "host-drained", "1 check fine");
}

static void test_paused(void) {
    struct host *ant = host_up("ant", POOLS);

    is_fine(ant, "paused");
    TEST_INT(berth(ant, "pause db --for 1h"), 0);
    await(ant, "paused", "1 check fine"); /* it ends by itself */
    TEST_INT(berth(ant, "pause db --reason upgrade"), 0);
    await(ant, "paused", "NOTE paused            db: paused until somebody resumes it: upgrade\n");
    TEST_INT(doctor(ant, "paused"), 0);
    remedy_run(ant, ant, "paused");
    await(ant, "paused", "1 check fine");
    TEST_INT(berth(ant, "limit db 5"), 0);
    await(ant, "paused", "NOTE paused            db: the limit is overridden with 5 until the override is\n");
    remedy_run(ant, ant, "paused");
    await(ant, "paused", "1 check fine");
    TEST_INT(berth(ant, "pause net"), 0); /* of this host alone */
    await(ant, "paused", "NOTE paused            net: paused until somebody resumes it\n");
    remedy_run(ant, ant, "paused");
    await(ant, "paused", "1 check fine");
}

/* A run waits for more than hosts declare: the config that allowed it is gone. */
static void test_impossible(void) {
    struct host *ant = host_up("ant", "pool \"db\" { limit = 3 }\n");
    struct child *holder = berth_at_gate(ant, "-p db", "holder", "started"), *big;

    big = berth_start(ant, "run -p db:3 --name big -- true");
    host_await(ant, "queued", "job=big");
    TEST_INT(berth(ant, "pause db"), 0);
    host_await_pool(ant, "db", "limit", 0);
    await(ant, "impossible", "1 check fine"); /* parked, but not for ever */
    TEST_INT(berth(ant, "resume db"), 0);
    host_set_config(ant, POOLS);
    TEST_INT(berth(ant, "reload"), 0);
    await(ant, "impossible", "WARN impossible        db: big on ant (run ");
    TEST_INT(doctor(ant, "impossible"), 1);
    remedy_run(ant, ant, "impossible");
    TEST_INT(berth_end(big), 75);
    await(ant, "impossible", "1 check fine");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

static void test_overcommitted(void) {
    struct host *ant = host_up("ant", POOLS);
    struct child *holder = berth_at_gate(ant, "-p db:2", "holder", "started");

    is_fine(ant, "overcommitted");
    TEST_INT(berth(ant, "limit db 1"), 0);
    await(ant, "overcommitted",
          "NOTE overcommitted     db: 2 permits are in use, the limit is 1 by an override\n");
    TEST_INT(doctor(ant, "overcommitted"), 0);
    TEST_INT(berth(ant, "limit db --clear"), 0);
    host_set_config(ant, "pool \"db\" { limit = 1 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    await(ant, "overcommitted", "WARN overcommitted     db: 2 permits are in use, the limit is 1\n");
    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    TEST_INT(redis_server_resume(&cluster.redis), 0); /* the run is restored beyond the limit */
    host_await(ant, "overcommitted", " ");
    await(ant, "overcommitted", "CRIT overcommitted     db: 2 permits are in use, the limit is 1\n");
    TEST_INT(doctor(ant, "overcommitted"), 2);
    host_end_grace(ant);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    await(ant, "overcommitted", "1 check fine");
}

static void test_alone(void) {
    struct host *ant = host_add_alone("ant", "pool \"net\" { limit = 2 scope = \"host\" }\n");

    host_start(ant);
    TEST_INT(berth(ant, "doctor -c %s --skip journal,journal-age,journal-rate,unit,stray-process", ant->config), 0);
    TEST_STRING(berth_out, "34 checks fine\n");
}

static CU_TestInfo tests[] = {
    {"hosts declare different limits", test_limits},
    {"hosts define different pools", test_pools},
    {"a job has other due times elsewhere", test_jobs},
    {"due times that no host takes", test_open_turns},
    {"a host is silent", test_silent},
    {"two hosts have one name", test_twice},
    {"a host is drained", test_drained},
    {"a pool is paused or overridden", test_paused},
    {"a run waits for ever", test_impossible},
    {"more is in use than the limit", test_overcommitted},
    {"without a redis section", test_alone},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor-cluster", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
