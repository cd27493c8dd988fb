/* SPDX-License-Identifier: MIT */

/* berthd is killed and started again while fifty jobs run: all continue, and each ends with its own status,
 * also those that end while berthd is down (hashicorp/nomad#6980, hashicorp/nomad#4302,
 * Supervisor/supervisor#729, etcd-io/etcd#19261). $RESTARTS: how many times (5). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define JOBS 10  /* their statuses are 0 to 9; the first half waits at one gate, the others at another */
#define EACH 5

static struct host *ant;
static struct test_gate gates[2];

static void up(void) {
    cluster_up();
    for (size_t i = 0; i < ELEMENTSOF(gates); i++)
        test_gate_make(&gates[i], i ? "late" : "early");
}

static void down(void) {
    for (size_t i = 0; i < ELEMENTSOF(gates); i++)
        test_gate_done(&gates[i]);
    cluster_down();
}

static void shut(struct test_gate *g) {
    char byte;

    while (read(g->fd, &byte, 1) > 0)
        ;
}

static void make_config(char *text, size_t size) {
    size_t n = (size_t) snprintf(text, size, "pool \"db\" { limit = %d }\n", JOBS * EACH);

    for (unsigned i = 0; i < JOBS; i++)
        n += (size_t) snprintf(text + n, size - n,
                               "job \"j%u\" { command = {\"%s/tests/tools/witness\", \"%s\", \"--id\", \"@run\", \"--gate\", \"%s\", "
                               "\"--exit\", \"%u\"} pools = {\"db\"} overlap = \"allow\" output = \"null\" stop-timeout = \"300ms\" }\n",
                               i, cluster.build, cluster.witness, gates[i >= JOBS / 2].path, i);
}

static void await_count(const char *event, unsigned count) {
    usec_t until = clock_boottime() + 3 * HOST_PATIENCE;
    unsigned n;

    while ((n = host_count(ant, event, " ")) < count && clock_boottime() < until)
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    TEST_INT(n, count);
}

/* Waits until all fifty ends are logged since the mark, and checks the status of each. */
static void check_statuses(void) {
    await_count("exited", JOBS * EACH);
    for (unsigned i = 0; i < JOBS; i++)
        TEST_INT(host_count(ant, "exited", "job=j%u exit_code=%u", i, i), EACH);
    await_count("released", JOBS * EACH);
}

/* berthd logs `released` when Redis has the release: after redis-connected, also for runs that ended
 * meanwhile. */
static void check_order(void) {
    const char *log = host_log(ant), *connected = strstr(log, "\nredis-connected: "), *released = strstr(log, "\nreleased: ");

    CU_ASSERT(connected && released && connected < released);
}

/* early: the first half ends while berthd is down; late: the other half as well. */
static void restart_once(bool early, bool late) {
    host_mark(ant);
    for (unsigned i = 0; i < EACH; i++)
        TEST_INT(berth(ant, "start j0 j1 j2 j3 j4 j5 j6 j7 j8 j9"), 0);
    await_count("started", JOBS * EACH);
    witness_await_alive(cluster.witness, JOBS * EACH);
    host_kill(ant);
    if (early)
        test_gate_open(&gates[0]);
    if (late)
        test_gate_open(&gates[1]);
    witness_await_alive(cluster.witness, (size_t) (JOBS * EACH * (!early + !late)) / 2);
    host_start(ant); /* and marks */
    if (!early)
        test_gate_open(&gates[0]);
    if (!late)
        test_gate_open(&gates[1]);
    check_statuses();
    check_order();
    for (size_t i = 0; i < ELEMENTSOF(gates); i++)
        shut(&gates[i]);
}

static void restarts(void) {
    uint64_t times = test_count("RESTARTS", 5);
    struct witness w = {0};
    char config[8192];

    make_config(config, sizeof(config));
    cluster.lease = "10s"; /* a busy machine stands still for less */
    ant = host_up("ant", "%s", config);
    for (uint64_t i = 0; i < times; i++) {
        restart_once(i % 3 == 1 || i % 3 == 2, i % 3 == 2);
        if (CU_get_number_of_failures() > 0) {
            printf("restart %" PRIu64 " of %" PRIu64 "\n", i + 1, times);
            break;
        }
    }
    witness_read(&w, cluster.witness);
    printf("%" PRIu64 " restarts, %zu runs, all went on and ended with their own status\n", times, w.n);
    TEST_INT(w.n, times * JOBS * EACH);
    for (size_t i = 0; i < w.n; i++) {
        CU_ASSERT(w.runs[i].end > 0 && w.runs[i].signal == 0);
        TEST_INT(witness_count(&w, w.runs[i].id), 1);
    }
    witness_done(&w);
}

static CU_TestInfo tests[] = {{"restarts with fifty jobs", restarts}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "restarts", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
