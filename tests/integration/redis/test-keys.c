/* SPDX-License-Identifier: MIT */

/* Patterns and their keys: each key has a queue and a limit of its own, on all hosts or on one. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS                                                                       \
    "pool \"db\" { limit = 4 }\n"                                                   \
    "pool \"tenant/*\" { limit = 1 queue-limit = 2 description = \"of each\" }\n"   \
    "pool \"tenant/big\" { limit = 2 }\n"                                           \
    "pool \"disk/*\" { limit = 1 scope = \"host\" }\n"                              \
    "pool \"few/*\" { limit = 2 host-limit = 1 }\n"

static struct host *ant, *bee;

static void begin(void) {
    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
}

static void end_all(struct child **children, size_t n) {
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < n; i++)
        TEST_INT(berth_end(children[i]), 0);
}

static void keys_are_pools(void) {
    struct child *c[4];

    begin();
    c[0] = berth_at_gate(ant, "-p tenant/acme", "a", "started");
    c[1] = berth_at_gate(bee, "-p tenant/acme", "b", "queued");
    c[2] = berth_at_gate(ant, "-p tenant/acme", "c", "queued");
    TEST_INT(berth(bee, "run -p tenant/acme -- true"), 75); /* queue-limit, of each key */
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "tenant/acme"));
    TEST_INT(berth(bee, "run -n -p tenant/b -- true"), 0);
    TEST_INT(berth(bee, "run -n -p tenant/acme -- true"), 75);
    c[3] = berth_at_gate(bee, "-p tenant/big:2", "big", "started");
    TEST_INT(berth(ant, "run -n -p tenant/big -- true"), 75);
    json_t *json = berth_json(bee, "runs");
    bool found = false;
    for (size_t i = 0; i < json_array_size(json_object_get(json, "runs")); i++) {
        const json_t *run = json_array_get(json_object_get(json, "runs"), i);

        if (strcmp(json_string_value(json_object_get(run, "name")), "b") == 0) {
            TEST_STRING(json_string_value(json_object_get(run, "blocked_by")), "pool full: tenant/acme");
            found = true;
        }
    }
    CU_ASSERT(found);
    json_decref(json);
    end_all(c, 4);
}

static void shown(void) {
    struct child *c[2];
    json_t *json;

    begin();
    c[0] = berth_at_gate(ant, "-p tenant/acme", "a", "started");
    c[1] = berth_at_gate(bee, "-p tenant/acme", "b", "queued");
    json = berth_json(ant, "pools");
    TEST_INT(json_array_size(json_object_get(json, "pools")), 5); /* no keys */
    json_decref(json);
    TEST_INT(host_pool(ant, "tenant/*", "keys"), 1);
    TEST_INT(host_pool(ant, "tenant/*", "used"), 1);
    TEST_INT(host_pool(ant, "tenant/*", "waiting"), 1);
    TEST_INT(host_pool(bee, "tenant/acme", "used"), 1);
    TEST_INT(host_pool(bee, "tenant/none", "used"), 0); /* idle, and there */
    json = berth_json(ant, "pools 'tenant/*'");
    TEST_INT(json_array_size(json_object_get(json, "pools")), 2);
    TEST_STRING(json_string_value(berth_at(json, "pools.0.name")), "tenant/*");
    CU_ASSERT(json_is_null(berth_at(json, "pools.0.pattern")));
    TEST_STRING(json_string_value(berth_at(json, "pools.1.name")), "tenant/acme");
    TEST_STRING(json_string_value(berth_at(json, "pools.1.pattern")), "tenant/*");
    CU_ASSERT(json_is_null(berth_at(json, "pools.1.keys")));
    json_decref(json);
    json = berth_json(ant, "pools tenant/acme");
    TEST_STRING(json_string_value(berth_at(json, "pools.0.queue.0.name")), "b");
    json_decref(json);
    TEST_INT(berth(ant, "pools tenant"), 65);
    TEST_STRING(berth_err, "berth: no such pool: tenant (did you mean \"tenant/KEY\"?)\n");
    TEST_INT(berth(ant, "run -p tenant -- true"), 65);
    TEST_STRING(berth_err, "berth: no such pool: tenant (did you mean \"tenant/KEY\"?)\n");
    TEST_INT(berth(ant, "pools nobody/acme"), 65);
    TEST_INT(berth(ant, "run -p 'tenant/*' -- true"), 64);
    end_all(c, 2);
    host_await_pool(ant, "tenant/*", "keys", 0);
}

static void limits(void) {
    struct child *c[4];

    begin();
    TEST_INT(berth(ant, "limit tenant/acme 2"), 0);
    host_await(bee, "limit-changed", "pools=tenant/acme limits=tenant/acme:2");
    c[0] = berth_at_gate(ant, "-p tenant/acme", "a", "started");
    c[1] = berth_at_gate(bee, "-p tenant/acme", "b", "started");
    TEST_INT(berth(bee, "pause 'tenant/*'"), 0);
    TEST_INT(berth(ant, "run -n -p tenant/other -- true"), 75);
    c[2] = berth_at_gate(ant, "-p tenant/big", "c", "queued");
    TEST_INT(host_pool(ant, "tenant/acme", "limit"), 2);
    TEST_INT(host_pool(ant, "tenant/other", "limit"), 0);
    TEST_INT(berth(ant, "limit tenant/none 1"), 0);
    TEST_INT(berth(ant, "limit nobody/none 1"), 65);
    TEST_INT(berth(ant, "resume 'tenant/*'"), 0);
    host_await(ant, "started", "job=c");
    TEST_INT(berth(ant, "limit tenant/acme --clear"), 0);
    TEST_INT(host_pool(bee, "tenant/acme", "limit"), 1);
    c[3] = berth_at_gate(ant, "-p tenant/acme", "d", "queued");
    end_all(c, 4);
}

static void of_a_host(void) {
    struct child *c[3];

    begin();
    c[0] = berth_at_gate(ant, "-p disk/a", "a", "started");
    c[1] = berth_at_gate(bee, "-p disk/a", "b", "started");
    TEST_INT(berth(ant, "run -n -p disk/a -- true"), 75);
    TEST_INT(berth(ant, "run -n -p disk/b -- true"), 0);
    TEST_INT(host_pool(ant, "disk/*", "keys"), 1);
    TEST_INT(host_pool(ant, "disk/idle", "limit"), 1);
    TEST_INT(berth(ant, "limit disk/a 2"), 0);
    c[2] = berth_at_gate(ant, "-p disk/a -p few/x", "c", "started");
    TEST_INT(berth(ant, "run -n -p few/x -- true"), 75); /* host-limit, of each key */
    TEST_INT(berth(bee, "run -n -p few/x -- true"), 0);
    TEST_INT(berth(ant, "run -n -p few/y -- true"), 0);
    TEST_INT(berth(ant, "limit disk/a --clear"), 0);
    end_all(c, 3);
}

/* A berthd that is killed reports its keys again. */
static void over_a_restart(void) {
    struct child *c[2];

    begin();
    c[0] = berth_at_gate(ant, "-p tenant/acme -p disk/a", "a", "started");
    c[1] = berth_at_gate(ant, "-p tenant/acme", "b", "queued");
    host_kill(ant);
    host_start(ant);
    host_await_pool(bee, "tenant/acme", "used", 1);
    TEST_INT(berth(bee, "run -n -p tenant/acme -- true"), 75);
    TEST_INT(berth(ant, "run -n -p disk/a -- true"), 75);
    end_all(c, 2);
    host_await_pool(bee, "tenant/*", "keys", 0);
}

static CU_TestInfo tests[] = {
    {"each key is a pool of its own", keys_are_pools},
    {"patterns and keys are shown", shown},
    {"limits of keys and patterns", limits},
    {"keys of scope host, and host-limit", of_a_host},
    {"keys over a restart", over_a_restart},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "keys", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
