/* SPDX-License-Identifier: MIT */

/* Redis is missing at start, restarted empty, or frozen; hosts are frozen until others expire them. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 2 }\npool \"disk\" { limit = 1 scope = \"host\" }\n"

static struct host *ant, *bee;
static struct witness w;

static void down(void) {
    if (cluster.redis.pid > 0)
        (void) kill(cluster.redis.pid, SIGCONT);
    witness_done(&w);
    cluster_down();
}

static size_t count_runs(struct host *h) {
    json_t *json = berth_json(h, "runs");
    size_t n = json_array_size(json_object_get(json, "runs"));

    json_decref(json);
    return n;
}

static void missing_at_start(void) {
    struct child *c[3];

    ant = host_add("ant", POOLS "job \"kept\" { %s pools = {\"db\"} }\n", witness_command("--id kept"));
    host_start(ant);
    TEST_INT(berth(ant, "start kept"), 0);
    host_kill(ant); /* it had no answer yet, and still it is there */
    host_start(ant);
    TEST_INT(count_runs(ant), 1);
    host_await(ant, "redis-lost", " ");
    TEST_INT(berth(ant, "run -p disk -- true"), 0);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    for (size_t i = 0; i < ELEMENTSOF(c); i++)
        c[i] = berth_start(ant, "run -p db --name r%zu -- %s --id r%zu", i, cluster.command, i);
    for (usec_t until = clock_boottime() + HOST_PATIENCE; count_runs(ant) < 1 + ELEMENTSOF(c) && clock_boottime() < until;)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    TEST_INT(host_count(ant, "granted", "pools=db:1"), 0);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_open(ant);
    for (size_t i = 0; i < ELEMENTSOF(c); i++)
        TEST_INT(berth_end(c[i]), 0);
    host_await(ant, "exited", "job=kept result=success");
}

/* The limit holds although Redis has lost its data, and the queue keeps its order. */
static void restarted_empty(void) {
    struct child *holders[2], *waiting[6];
    char id[16];

    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
    for (size_t i = 0; i < ELEMENTSOF(holders); i++) {
        holders[i] = berth_start(i ? bee : ant, "run -p db --name h%zu -- %s --id h%zu", i, cluster.at_gate, i);
        host_await(i ? bee : ant, "started", "job=h%zu", i);
    }
    for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
        waiting[i] = berth_start(i % 2 ? bee : ant, "run -p db:2 --name w%zu -- %s --id w%zu", i, cluster.command, i);
        host_await(i % 2 ? bee : ant, "queued", "job=w%zu", i);
    }
    TEST_INT(redis_server_restart(&cluster.redis, false), 0);
    host_await(ant, "grace-begun", " ");
    host_await(bee, "grace-begun", " ");
    host_await(ant, "grace-ended", " ");
    host_await_pool(bee, "db", "used", 2);
    host_await_pool(ant, "db", "waiting", 6);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < ELEMENTSOF(holders); i++)
        TEST_INT(berth_end(holders[i]), 0);
    for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
        TEST_INT(berth_end(waiting[i]), 0);
    witness_read(&w, cluster.witness);
    TEST_INT(w.n, 8);
    TEST_INT(witness_max(&w, "db"), 2);
    for (size_t i = 0; i < ELEMENTSOF(waiting) && i + 2 < w.n; i++) {
        snprintf(id, sizeof(id), "w%zu", i);
        TEST_STRING(w.runs[i + 2].id, id);
        CU_ASSERT(i == 0 || w.runs[i + 2].token > w.runs[i + 1].token);
    }
}

/* Redis does not answer for a lease: commands are stopped in time, and users see why (etcdctl-lock,
 * clilocker). */
static void frozen_redis(void) {
    struct child *c, *job;

    cluster.lease = "6s"; /* the time to stop is a sixth of it: also on a busy machine */
    ant = host_up("ant", POOLS "job \"nap\" { command = {\"/bin/sleep\", \"60\"} pools = {\"db\"} output = \"null\" }\n");
    c = berth_start(ant, "run -p db --name held -- sleep 60");
    job = berth_start(ant, "start nap --wait");
    host_await(ant, "started", "job=held");
    host_await(ant, "started", "job=nap");
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    host_await(ant, "lease-late", " ");
    TEST_INT(berth_end(c), 76);
    TEST_INT(berth_end(job), 76);
    host_await(ant, "lease-lost", "job=nap");
    host_await(ant, "fenced", "job=nap");
    host_await(ant, "exited", "job=nap result=lease-lost");
    host_await(ant, "exited", "job=held result=lease-lost");
    host_mark(ant);
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    host_await(ant, "redis-connected", " ");
    TEST_INT(berth(ant, "run --wait 10s -p db:2 -- true"), 0);
}

/* berthd receives the end of a `berth run` long after its lease: the reported time of the end counts. */
static void frozen_berthd(void) {
    struct child *held, *waiter;
    usec_t margin = 0;
    const char *line;
    char text[32];

    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
    held = berth_start(ant, "run -p db:2 --name held -- sleep 60");
    host_await(ant, "started", "job=held");
    waiter = berth_start(bee, "run -p db -- true");
    host_signal(ant, SIGSTOP);
    TEST_INT(berth_end(held), 76);
    TEST_INT(berth_end(waiter), 0); /* a lease later */
    host_mark(ant);
    host_signal(ant, SIGCONT);
    host_await(ant, "redis-connected", " "); /* with a new session, which ends with bye */
    line = host_await(ant, "fenced", "job=held");
    TEST_FATAL(strstr(line, " was gone ") && sscanf(strstr(line, " was gone "), " was gone %31s", text) == 1, "no margin is named");
    TEST_INT(duration_parse(text, &margin), 0);
    CU_ASSERT(margin >= 100 * USEC_PER_MSEC && margin < CLUSTER_LEASE_USEC);
}

/* A job that goes on after a lost lease comes back beyond the limit, and that is logged. */
static void frozen_host(void) {
    struct child *other, *waiter;

    ant = host_up("ant", POOLS "job \"keep\" { %s pools = {\"db:2\"} on-lease-lost = \"continue\" }\n", witness_at_gate("keep", 0));
    bee = host_up("bee", POOLS);
    TEST_INT(berth(ant, "start keep"), 0);
    host_await(ant, "started", "job=keep");
    other = berth_at_gate(bee, "-p db:2", "other", "queued");
    waiter = berth_start(bee, "run -p db --name waiter -- %s --id waiter", cluster.command);
    host_await(bee, "queued", "job=waiter");
    host_signal(ant, SIGSTOP);
    host_await(bee, "host-expired", "host=ant");
    host_await(bee, "reclaimed", " ");
    host_await(bee, "started", "job=other");
    host_signal(ant, SIGCONT);
    host_await(ant, "session-lost", " ");
    host_await(ant, "overcommitted", "pools=db");
    host_await_pool(bee, "db", "used", 4);
    TEST_INT(host_count(bee, "started", "job=waiter"), 0);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=keep result=success");
    TEST_INT(berth_end(other), 0);
    TEST_INT(berth_end(waiter), 0);
}

static void hosts_that_do_not_agree(void) {
    ant = host_up("ant", POOLS);
    cluster.lease = "4s";
    bee = host_add("bee", POOLS);
    host_start(bee);
    host_await(bee, "lease-differs", " ");
    TEST_INT(berth(bee, "run -n -p db -- true"), 75);
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0);
}

/* What another machine's berthd of that name would have written. */
static void move_sessions_to_another_machine(void) {
    _cleanup_reply_ redisReply *sessions = redis_command(&cluster.redis, "HGETALL berth:{test}:sessions");

    TEST_FATAL(sessions && sessions->type == REDIS_REPLY_ARRAY && sessions->elements == 2, "not one session");
    {
        const char *record = sessions->element[1]->str, *machine = strchr(record, ' '), *rest = machine ? strchr(machine + 1, ' ') : NULL;
        char moved[512];

        TEST_FATAL(rest != NULL, "a session's record is not NAME MACHINE ...");
        if (!rest)
            return;
        snprintf(moved, sizeof(moved), "%.*s another-machine%s", (int) (machine - record), record, rest);
        TEST_INT(redis_number(&cluster.redis, "HSET berth:{test}:sessions %s %s", sessions->element[0]->str, moved), 0);
    }
}

static void two_machines_of_one_name(void) {
    ant = host_up("ant", POOLS);
    move_sessions_to_another_machine();
    bee = host_add("bee", POOLS);
    bee->called = "ant";
    host_set_config(bee, POOLS);
    host_start(bee);
    host_await(bee, "host-name-taken", " ");
    TEST_INT(berth(bee, "run -n -p db -- true"), 75);
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0);
}

static CU_TestInfo with_redis[] = {
    {"restarted empty", restarted_empty},
    {"frozen Redis", frozen_redis},
    {"frozen berthd", frozen_berthd},
    {"frozen host", frozen_host},
    {"hosts that do not agree on the lease", hosts_that_do_not_agree},
    {"two machines of one name", two_machines_of_one_name},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo without_redis[] = {
    {"missing at start", missing_at_start},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "no Redis", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = down,
             .pTests = without_redis},
            {.pName = "Redis away", .pSetUpFunc = cluster_up, .pTearDownFunc = down, .pTests = with_redis});
