/* SPDX-License-Identifier: MIT */

/* Each test breaks an assumption that the limit depends on, and sees more commands at once than the limit
 * allows. So the witness can see an overlap, and the list in doc/faults.md of what is not covered is
 * right. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/audit/check.h"
#include "tests/faults/fault.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 1 }\n"

static struct bed bed;
static struct injection injection;
static struct host *ant, *bee;
static struct witness w;

static void stop_replica(void) {
    redis_server_done(&bed.replica);
}

static void up(void) {
    cluster_up();
    cluster.on_stopped = stop_replica;
    cluster.broken = 1U << AUDIT_ABOVE_LIMIT; /* in the journals as well */
    bed = (struct bed) {0};
    injection = (struct injection) {0};
}

static void down(void) {
    unpin(&injection);
    witness_done(&w);
    cluster_down();
}

static unsigned most(void) {
    witness_read(&w, cluster.witness);
    return witness_max(&w, "db");
}

static void two_hosts(void) {
    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
    bed.load.hosts[0].host = ant;
    bed.load.hosts[1].host = bee;
}

static struct child *run_for(struct host *h, const char *id, unsigned msec) {
    struct child *c = berth_start(h, "run -p db --name %s -- %s --id %s --for %u", id, cluster.command, id, msec);

    return c;
}

/* A hypervisor pauses a virtual machine, clocks included, and resumes it after its permits were granted to
 * another host. Here only the processes of the host are stopped (swarthy/redis-semaphore#24). */
static void paused_machine(void) {
    /* `berth run` first: on a busy machine it could stop its command before it is stopped itself. */
    static const enum kind kinds[] = {KIND_RUN, KIND_COMMAND, KIND_GUARD, KIND_RUNNER, KIND_BERTHD};
    struct child *old, *new;
    uint64_t token;

    two_hosts();
    old = run_for(ant, "old", 60000);
    host_await(ant, "started", "job=old");
    witness_await_alive(cluster.witness, 1);
    for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
        (void) hit(&bed, &injection, kinds[i], SIGSTOP, 10, true);
    new = run_for(bee, "new", 300);
    host_await(bee, "host-expired", "host=ant");
    TEST_INT(berth_end(new), 0);
    CU_ASSERT(most() > 1);
    unpin(&injection);
    TEST_INT(berth_end(old), 76); /* stopped as soon as possible */
    token = witness_find(&w, "old")->token;
    CU_ASSERT(witness_find(&w, "new")->token > token); /* a resource that checks tokens refuses the old one */
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0); /* in its new session, which ends with bye */
}

/* `berth run` and berthd are frozen, and the lease is lost: no process can stop the command. */
static void frozen_run(void) {
    struct child *old, *new;

    two_hosts();
    old = run_for(ant, "old", 60000);
    host_await(ant, "started", "job=old");
    witness_await_alive(cluster.witness, 1);
    TEST_INT(hit(&bed, &injection, KIND_RUN, SIGSTOP, 1, true), 1);
    TEST_INT(hit(&bed, &injection, KIND_BERTHD, SIGSTOP, 1, true), 1);
    new = run_for(bee, "new", 300);
    TEST_INT(berth_end(new), 0);
    CU_ASSERT(most() > 1);
    unpin(&injection);
    TEST_INT(berth_end(old), 76);
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0); /* in its new session, which ends with bye */
}

/* An administrator deletes the key `held`. Redis does not know the holders until a host notices the loss;
 * then all hosts report them again (redisson/redisson#3573, dv/redis-semaphore#40). */
static void deleted_keys(void) {
    unsigned n = 0;
    struct child *old;
    int status;

    two_hosts();
    old = run_for(ant, "old", 60000);
    host_await(ant, "started", "job=old");
    witness_await_alive(cluster.witness, 1);
    do {
        host_mark(ant);
        TEST_INT(redis_number(&cluster.redis, "DEL berth:{test}:pool:db:held"), 1);
        status = berth(bee, "run -n -p db --name new -- %s --id new", cluster.command);
        if (status == 75) { /* ant verified before bee claimed; it verifies once a lease */
            host_await(ant, "grace-ended", " ");
            TEST_INT(berth(bee, "run --wait 1s -p db -- true"), 75); /* meanwhile ant verifies again */
        }
    } while (status == 75 && ++n < 5);
    TEST_INT(status, 0);
    CU_ASSERT(most() > 1);
    host_await(ant, "grace-begun", " ");
    host_await(ant, "grace-ended", " ");
    TEST_INT(berth(bee, "run -n -p db -- true"), 75); /* Redis knows the holder again */
    child_kill(old, SIGTERM);
    TEST_INT(berth_end(old), 143);
    TEST_INT(berth(bee, "run --wait 10s -p db -- true"), 0);
}

/* There are two masters at once, and each host reaches another one. */
static void split_redis(void) {
    static const char *const extra[] = {"--port", "0", NULL};
    struct child *old, *new;

    TEST_FATAL(redis_server_start(&bed.replica, extra) == 0, "no second Redis");
    ant = host_up("ant", POOLS);
    bee = host_add("bee", POOLS);
    bee->redis = bed.replica.socket;
    host_set_config(bee, POOLS);
    host_start(bee);
    host_open(bee);
    old = run_for(ant, "old", 2000);
    host_await(ant, "started", "job=old");
    new = run_for(bee, "new", 0);
    TEST_INT(berth_end(new), 0);
    CU_ASSERT(most() > 1);
    TEST_INT(berth_end(old), 0);
}

static CU_TestInfo tests[] = {
    {"a paused machine", paused_machine},
    {"a frozen berth run and a frozen berthd", frozen_run},
    {"deleted keys", deleted_keys},
    {"two masters", split_redis},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "assumptions", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
