/* SPDX-License-Identifier: MIT */

/* `berth stop --wait` ends when the stopped runs are over. */

#include <signal.h>

#include "tests/harness/host/host.h"
#include "tests/harness/judge/witness.h"
#include "tests/harness/test.h"

static struct host *ant;

static void up(void) {
    cluster_up_without_redis();
    ant = host_add_alone("ant", "pool \"slot\" { limit = 1 scope = \"host\" }\n"
                                "job \"slow\" { %s stop-timeout = \"1h\" }\n"
                                "job \"quick\" { command = {\"/bin/sleep\", \"1000\"} output = \"null\" pools = {\"slot\"} }\n"
                                "job \"quick2\" { command = {\"/bin/true\"} output = \"null\" pools = {\"slot\"} }\n",
                         witness_at_gate("slow --ignore-term", 0));
    host_start(ant);
}

static void begin(const char *job) {
    TEST_INT(berth(ant, "start %s", job), 0);
    host_await(ant, "started", "job=%s", job);
}

static void begin_slow(void) {
    begin("slow");
    witness_await_start(cluster.witness, "slow"); /* it ignores TERM from then on */
}

/* Awaits the stop signal of the slow job, which ignores it. */
static void await_stopping(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    unsigned n = 0;

    while (n == 0 && clock_boottime() < until) {
        const struct witness_run *run;
        struct witness w = {0};

        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
        witness_read(&w, cluster.witness);
        run = witness_find(&w, "slow");
        n = run ? run->n_ignored : 0;
        witness_done(&w);
    }
    TEST_FATAL(n > 0, "the command received no stop signal");
}

static void ends_with_the_last_run(void) {
    struct child *c;

    begin_slow();
    begin("quick");
    TEST_INT(berth(ant, "start quick2"), 0);
    c = berth_start(ant, "stop --wait quick2 slow quick"); /* quick2 before quick, whose permit it would get */
    await_stopping();
    host_await(ant, "withdrawn", "job=quick2");
    host_await(ant, "released", "job=quick"); /* all are stopped before one of them is awaited */
    TEST_INT(berth(ant, "stop quick"), 0);
    TEST_STRING(berth_err, "berth: quick: nothing to stop\n");
    CU_ASSERT(!c->ended);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
    TEST_INT(witness_count_alive(cluster.witness), 0);
    TEST_STRING(berth_err, "");
    TEST_INT(berth(ant, "stop --wait slow"), 0);
    TEST_STRING(berth_err, "berth: slow: nothing to stop\n");
}

static void of_berth_run(void) {
    struct child *run = berth_at_gate(ant, "-p slot", "mine", "started"), *c = berth_start(ant, "stop --wait mine");

    TEST_INT(berth_end(c), 0);
    host_await(ant, "exited", "job=mine result=stopped");
    TEST_INT(berth_end(run), 143);
}

/* A client that leaves does not end the stop. */
static void client_leaves(void) {
    struct child *c;

    begin_slow();
    c = berth_start(ant, "stop --wait slow");
    await_stopping();
    TEST_INT(kill(c->pid, SIGKILL), 0);
    TEST_INT(berth_end(c), 128 + SIGKILL);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=slow result=stopped");
    begin("quick");
    TEST_INT(berth(ant, "stop --wait quick"), 0);
    host_await(ant, "exited", "job=quick result=stopped");
}

/* berthd does not know the run's end any more when it is away. */
static void berthd_killed(void) {
    struct child *c;

    begin_slow();
    c = berth_start(ant, "stop --wait slow");
    await_stopping();
    host_kill(ant);
    TEST_INT(berth_end(c), 69);
    host_start(ant);
    c = berth_start(ant, "stop --wait slow");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
    host_await(ant, "exited", "job=slow result=stopped");
}

static CU_TestInfo tests[] = {
    {"ends with the last run", ends_with_the_last_run},
    {"of berth run", of_berth_run},
    {"its client leaves", client_leaves},
    {"berthd is killed", berthd_killed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "stop --wait", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
