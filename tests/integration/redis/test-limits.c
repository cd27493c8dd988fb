/* SPDX-License-Identifier: MIT */

/* Limits: raised and lowered by reload and override, pause and resume, disagreeing hosts, queue-limit, host-limit, head start
 * (R1, R2, R14). */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define DB(limit) "pool \"db\" { limit = " #limit " }\npool \"net\" { limit = 2 }\n"

static struct host *ant, *bee;

static void end_all(struct child **children, size_t n) {
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < n; i++)
        TEST_INT(berth_end(children[i]), 0);
}

/* A raised limit is in force when the last host has it, a lowered one with the first host. Hosts that differ
 * are logged and shown. */
static void limit_by_reload(void) {
    struct child *c[3];
    json_t *json;

    ant = host_up("ant", DB(1));
    bee = host_up("bee", DB(1));
    c[0] = berth_at_gate(ant, "-p db", "a", "started");
    c[1] = berth_at_gate(bee, "-p db", "b", "queued");
    host_set_config(ant, DB(3));
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "config-loaded", " ");
    host_await(ant, "limits-differ", "pools=db");
    TEST_INT(host_pool(ant, "db", "limit"), 1);
    json = berth_json(ant, "pools db");
    CU_ASSERT(json_is_true(berth_at(json, "pools.0.limits_differ")));
    json_decref(json);
    host_set_config(bee, DB(3));
    TEST_INT(berth(bee, "reload"), 0);
    host_await(bee, "started", "job=b"); /* no release: the limit alone */
    host_await_pool(ant, "db", "limit", 3);

    host_set_config(bee, DB(2));
    TEST_INT(berth(bee, "reload"), 0);
    host_await_pool(ant, "db", "limit", 2);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    c[2] = berth_at_gate(ant, "-p db", "c", "queued");
    end_all(c, 3);
}

static void limit_by_override(void) {
    struct child *c[3];

    ant = host_up("ant", DB(3));
    bee = host_up("bee", DB(3));
    c[0] = berth_at_gate(ant, "-p db", "a", "started");
    TEST_INT(berth(bee, "limit db 2 --reason 'too much load'"), 0);
    host_await_pool(ant, "db", "limit", 2);
    host_await(bee, "limit-changed", "pools=db");
    c[1] = berth_at_gate(bee, "-p db:3", "wide", "parked");
    c[2] = berth_at_gate(ant, "-p db", "narrow", "started"); /* a parked claim blocks no other claim */
    TEST_INT(berth(bee, "limit db 1"), 0);
    host_await_pool(ant, "db", "limit", 1);
    TEST_INT(host_pool(ant, "db", "used"), 2); /* a lowered limit stops no run */
    TEST_INT(berth(ant, "limit db 4"), 0);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75); /* wide is requeued, at the head */
    TEST_INT(berth(ant, "limit db 5"), 0);
    host_await(bee, "started", "job=wide");
    TEST_INT(berth(ant, "limit db --clear"), 0);
    host_await_pool(bee, "db", "limit", 3);
    end_all(c, 3);
}

static void override_for_a_while(void) {
    usec_t begun, msec = 500;
    int status;

    ant = host_up("ant", DB(2));
    do { /* until it lasts longer than this machine takes for two commands */
        msec *= 2;
        TEST_FATAL(msec < 60000, "an override does not hold");
        begun = clock_boottime();
        TEST_INT(berth(ant, "limit db 0 --for %" PRIu64 "ms", msec), 0);
        status = berth(ant, "run -n -p db -- true");
    } while (status == 0 && clock_boottime() - begun >= msec * USEC_PER_MSEC);
    TEST_INT(status, 75);
    TEST_INT(berth(ant, "run -p db -- true"), 0); /* waits for the override's end */
    CU_ASSERT(clock_boottime() - begun >= msec * USEC_PER_MSEC);
    TEST_INT(host_pool(ant, "db", "limit"), 2);
}

static void pause_and_resume(void) {
    struct child *c[3];

    ant = host_up("ant", DB(2));
    bee = host_up("bee", DB(2));
    c[0] = berth_at_gate(ant, "-p db", "a", "started");
    TEST_INT(berth(bee, "limit db 1"), 0);
    TEST_INT(berth(bee, "pause db net"), 0);
    host_await_pool(ant, "db", "limit", 0);
    TEST_INT(host_pool(ant, "net", "limit"), 0);
    c[1] = berth_at_gate(bee, "-p db", "b", "queued");
    TEST_INT(berth(ant, "run -n -p net -- true"), 75);
    TEST_INT(berth(ant, "resume db net"), 0);
    host_await_pool(bee, "db", "limit", 1); /* what pause replaced */
    TEST_INT(berth(ant, "limit db --clear"), 0);
    host_await(bee, "started", "job=b");
    TEST_INT(berth(ant, "run -n -p net -- true"), 0);
    end_all(c, 2);
}

/* A claim for two permits waits at the head. A smaller claim that would fit does not overtake it, except
 * with a head start. */
static void nobody_is_overtaken(void) {
    struct child *c[4];
    struct witness w = {0};

    ant = host_up("ant", DB(3));
    bee = host_up("bee", DB(3));
    c[0] = berth_at_gate(ant, "-p db:2", "first", "started");
    c[1] = berth_at_gate(bee, "-p db:2", "wide", "queued");
    TEST_INT(berth(ant, "run -n -p db -- true"), 75); /* one is free, and waits for the head */
    c[2] = berth_at_gate(ant, "-p db", "narrow", "queued");
    TEST_INT(berth(bee, "run -n -p db --head-start 1h -- true"), 0);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    c[3] = berth_start(ant, "run -p db:3 --name last -- %s --id last", cluster.command);
    host_await(ant, "queued", "job=last");
    end_all(c, 4);
    witness_read(&w, cluster.witness);
    TEST_STRING(w.runs[0].id, "first");
    TEST_STRING(w.runs[3].id, "last");
    TEST_INT(witness_max(&w, "db"), 3);
    witness_done(&w);
}

static void full_queue(void) {
    struct child *c[2];

    ant = host_up("ant", "pool \"db\" { limit = 1 queue-limit = 1 }\n");
    c[0] = berth_at_gate(ant, "-p db", "a", "started");
    c[1] = berth_at_gate(ant, "-p db", "b", "queued");
    TEST_INT(berth(ant, "run -p db --name c -- true"), 75);
    host_await(ant, "refused", "job=c");
    end_all(c, 2);
}

static void host_limit(void) {
    struct child *c[3];

    ant = host_up("ant", "pool \"db\" { limit = 3 host-limit = 1 }\n");
    bee = host_up("bee", "pool \"db\" { limit = 3 host-limit = 1 }\n");
    c[0] = berth_at_gate(ant, "-p db", "a", "started");
    c[1] = berth_at_gate(ant, "-p db", "b", "queued");
    c[2] = berth_at_gate(bee, "-p db", "c", "started");
    TEST_INT(host_pool(bee, "db", "used"), 2); /* of three: the host's own bound is what b waits for */
    TEST_INT(berth(ant, "run -p db:2 -- true"), 64);
    end_all(c, 3);
}

/* A run that is parked, because the host-limit is too low for it, waits for the pool alone when a reload removes that bound. */
static void host_limit_removed(void) {
    struct child *c[2];

    ant = host_up("ant", "pool \"db\" { limit = 3 host-limit = 3 }\n");
    c[0] = berth_at_gate(ant, "-p db:2", "a", "started");
    c[1] = berth_at_gate(ant, "-p db:2", "b", "queued");
    host_set_config(ant, "pool \"db\" { limit = 3 host-limit = 1 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "parked", "job=b");
    host_set_config(ant, "pool \"db\" { limit = 3 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "queued", "job=b");
    end_all(c, 2);
}

static void pool_of_the_host(void) {
    struct child *c[2];

    ant = host_add_alone("ant", "pool \"disk\" { limit = 1 scope = \"host\" }\n");
    host_start(ant);
    c[0] = berth_at_gate(ant, "-p disk", "a", "started");
    c[1] = berth_at_gate(ant, "-p disk", "b", "queued");
    TEST_INT(berth(ant, "run -n -p disk -- true"), 75);
    TEST_INT(host_pool(ant, "disk", "used"), 1);
    end_all(c, 2);
    TEST_INT(berth(ant, "pause disk"), 0);
    TEST_INT(host_pool(ant, "disk", "limit"), 0);
    TEST_INT(berth(ant, "run -n -p disk -- true"), 75);
    TEST_INT(berth(ant, "resume disk"), 0);
    TEST_INT(berth(ant, "run -n -p disk -- true"), 0);
    host_set_config(ant, "pool \"disk\" { limit = 2 scope = \"host\" }\n");
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(ant, "run --wait 10s -p disk:2 -- true"), 0);
}

/* A berthd restarted with a config without the pool reports that to the waiting client. */
static void pool_that_is_gone(void) {
    struct child *waiter;

    ant = host_add_alone("ant", "pool \"disk\" { limit = 0 scope = \"host\" }\n");
    host_start(ant);
    waiter = berth_at_gate(ant, "-p disk", "a", "parked");
    host_kill(ant);
    host_set_config(ant, "pool \"tape\" { limit = 1 scope = \"host\" }\n");
    host_start(ant);
    host_await(ant, "refused", "job=a");
    CU_ASSERT(strstr(host_log(ant), "the config no longer has this pool: disk") != NULL);
    TEST_INT(berth_end(waiter), 65); /* it claims again */
}

static void awaits_definition(struct host *h, const char *name, const char *pool) {
    json_t *json = berth_json(h, "runs %s", name);
    char reason[64];

    snprintf(reason, sizeof(reason), "no host defines it: %s", pool);
    AT_STRING(json, "runs.0.blocked_by", reason);
    json_decref(json);
    TEST_INT(berth(h, "explain %s", name), 0);
    CU_ASSERT(strstr(berth_out, "no host defines it") != NULL && strstr(berth_out, "berth limit") == NULL);
}

/* All hosts lose pools by a reload, while runs hold permits of them and wait for more. */
static void pool_that_a_reload_removes(void) {
    static const char before[] = "pool \"db\" { limit = 1 }\npool \"tenant/*\" { limit = 1 }\n"
                                 "pool \"disk\" { limit = 1 scope = \"host\" }\n";
    struct child *c[6];
    json_t *json;

    ant = host_up("ant", "%s", before);
    bee = host_up("bee", "%s", before);
    c[0] = berth_at_gate(ant, "-p db", "a", "started");
    c[1] = berth_at_gate(bee, "-p tenant/x", "b", "started");
    c[2] = berth_at_gate(bee, "-p disk", "c", "started");
    c[3] = berth_at_gate(bee, "-p db", "d", "queued");
    c[4] = berth_at_gate(bee, "-p tenant/x", "e", "queued");
    c[5] = berth_at_gate(bee, "-p disk", "f", "queued");
    host_set_config(ant, "pool \"net\" { limit = 1 }\n");
    host_set_config(bee, "pool \"net\" { limit = 1 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(bee, "reload"), 0);
    json = berth_json(bee, "pools");
    AT_STRING(json, "pools.name=db.holders.0.name", "a");
    AT_STRING(json, "pools.name=db.queue.0.name", "d");
    AT_STRING(json, "pools.name=tenant/x.queue.0.name", "e");
    AT_STRING(json, "pools.name=disk.queue.0.name", "f");
    AT_INT(json, "pools.name=disk.limit", 1); /* a pool of the host keeps its limit */
    json_decref(json);
    awaits_definition(bee, "d", "db");
    awaits_definition(bee, "e", "tenant/x");
    test_gate_open(&cluster.gate);
    host_await(bee, "started", "job=f");
    host_set_config(ant, "%s", before);
    TEST_INT(berth(ant, "reload"), 0);
    host_await(bee, "started", "job=d");
    host_await(bee, "started", "job=e");
    end_all(c, 6);
}

static void is_full(const char *name, const char *holder, const char *scope) {
    json_t *json = berth_json(ant, "runs %s", name);

    AT_STRING(json, "runs.0.blocked_by", "pool full: db");
    json_decref(json);
    json = berth_json(ant, "explain %s", name);
    AT_STRING(json, "explained.0.pools.0.why.code", "full");
    AT_STRING(json, "explained.0.pools.0.scope", scope);
    AT_STRING(json, "explained.0.pools.0.holders.0.name", holder);
    json_decref(json);
}

/* A run that waits for a pool of the cluster, or of the host, goes on waiting for that one after a reload gave the name
 * another scope. Both pools are shown. */
static void scope_by_reload(void) {
    static const char shared[] = "pool \"db\" { limit = 1 }\n", own[] = "pool \"db\" { limit = 1 scope = \"host\" }\n";
    struct child *c[5];
    json_t *json;

    ant = host_up("ant", "%s", shared);
    bee = host_up("bee", "%s", shared);
    c[0] = berth_at_gate(bee, "-p db", "a", "started");
    c[1] = berth_at_gate(ant, "-p db", "b", "queued");
    host_set_config(ant, "%s", own);
    TEST_INT(berth(ant, "reload"), 0);
    is_full("b", "a", "cluster");
    json = berth_json(ant, "pools");
    AT_STRING(json, "pools.0.scope", "host");
    AT_STRING(json, "pools.1.name", "db");
    AT_STRING(json, "pools.scope=cluster.queue.0.name", "b");
    json_decref(json);
    c[2] = berth_at_gate(ant, "-p db", "c", "started");
    c[3] = berth_at_gate(ant, "-p db", "d", "queued");
    is_full("d", "c", "host");
    host_set_config(ant, "%s", shared);
    TEST_INT(berth(ant, "reload"), 0);
    is_full("b", "a", "cluster");
    is_full("d", "c", "host");
    c[4] = berth_at_gate(ant, "-p db", "e", "queued");
    test_gate_open(&cluster.gate);
    host_await(ant, "started", "job=b");
    host_await(ant, "started", "job=d");
    end_all(c, 5);
}

/* The record of one new job cannot be read. The other changes of the reload are in force. */
static void reload_with_unreadable_memory(void) {
    char path[128];

    ant = host_add_alone("ant", "pool \"disk\" { limit = 3 scope = \"host\" }\n");
    host_start(ant);
    snprintf(path, sizeof(path), "%s/jobs/bad", ant->runtime);
    TEST_INT(mkdir(path, 0700), 0);
    host_set_config(ant, "pool \"disk\" { limit = 1 scope = \"host\" }\n"
                         "job \"bad\" { command = {\"/bin/true\"} }\njob \"good\" { command = {\"/bin/true\"} }\n");
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(host_pool(ant, "disk", "limit"), 1);
    TEST_INT(berth(ant, "start good --wait"), 0);
    TEST_INT(berth(ant, "start bad"), 65); /* it may have run already */
    CU_ASSERT(strstr(host_log(ant), "out of memory") == NULL);
    TEST_INT(rmdir(path), 0);
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(ant, "start bad --wait"), 0);
}

static CU_TestInfo tests[] = {
    {"limit raised and lowered by reload", limit_by_reload},
    {"limit by override", limit_by_override},
    {"override for a while", override_for_a_while},
    {"pause and resume", pause_and_resume},
    {"nobody is overtaken", nobody_is_overtaken},
    {"full queue", full_queue},
    {"host-limit", host_limit},
    {"a host-limit that a reload removes", host_limit_removed},
    {"pool of the host, no Redis", pool_of_the_host},
    {"a pool that is gone after a restart", pool_that_is_gone},
    {"a pool that a reload removes", pool_that_a_reload_removes},
    {"a reload that changes a scope", scope_by_reload},
    {"a job's memory cannot be read at a reload", reload_with_unreadable_memory},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "limits", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
