/* SPDX-License-Identifier: MIT */

/* Hosts share pools through one Redis: many `berth run` at once, mixed claims, order, and nothing is
 * left. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 4 }\npool \"net\" { limit = 2 }\n"

static const char *const names[] = {"ant", "bee", "cow"};
static struct host *hosts[3];

static void three_hosts(void) {
    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        hosts[i] = host_up(names[i], POOLS);
}

struct grant {
    uint64_t token, ticket;
};
struct grants {
    struct grant list[256];
    size_t n;
};

static void note_grant(const char *line, void *userdata) {
    struct grants *g = userdata;

    if (g->n < ELEMENTSOF(g->list))
        g->list[g->n++] = (struct grant) {event_get_u64(line, "token"), event_get_u64(line, "ticket")};
}

static int by_token(const void *a, const void *b) {
    const struct grant *x = a, *y = b;

    return x->token < y->token ? -1 : x->token > y->token;
}

static void sixty_runs_of_three_hosts(void) {
    struct child *runs[60];
    struct witness w = {0};
    struct grants grants = {0};

    three_hosts();
    for (size_t i = 0; i < ELEMENTSOF(runs); i++)
        runs[i] = berth_start(hosts[i % 3], "run -p db -- %s --id r%zu --for 300", cluster.command, i);
    for (size_t i = 0; i < ELEMENTSOF(runs); i++)
        TEST_INT(berth_end(runs[i]), 0);

    witness_read(&w, cluster.witness);
    TEST_INT(w.n, 60);
    for (size_t i = 0; i < ELEMENTSOF(runs); i++) {
        char id[16];

        snprintf(id, sizeof(id), "r%zu", i);
        TEST_INT(witness_count(&w, id), 1);
    }
    TEST_INT(witness_max(&w, "db"), 4); /* reached, and never more */
    witness_done(&w);

    for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
        hosts[i]->mark = 0;
        host_each(hosts[i], "granted", note_grant, &grants);
    }
    TEST_INT(grants.n, 60);
    qsort(grants.list, grants.n, sizeof(*grants.list), by_token);
    for (size_t i = 1; i < grants.n; i++)
        CU_ASSERT(grants.list[i - 1].ticket < grants.list[i].ticket);
    host_await_pool(hosts[0], "db", "used", 0);
}

/* What went wrong elsewhere: redisson/redisson#6664, apache/airflow#29474. */
static void weighted_and_two_pools(void) {
    static const char *const claims[] = {"-p db", "-p db:3", "-p db:2 -p net", "-p net:2", "-p db -p net", "-p db:4"};
    struct child *runs[48];
    struct witness w = {0};

    three_hosts();
    for (size_t i = 0; i < ELEMENTSOF(runs); i++)
        runs[i] = berth_start(hosts[i % 3], "run %s -- %s --id m%zu --for %zu", claims[i % ELEMENTSOF(claims)], cluster.command, i,
                              20 + i * 37 % 80);
    for (size_t i = 0; i < ELEMENTSOF(runs); i++)
        TEST_INT(berth_end(runs[i]), 0);
    witness_read(&w, cluster.witness);
    TEST_INT(w.n, 48);
    TEST_INT(witness_max(&w, "db"), 4);
    TEST_INT(witness_max(&w, "net"), 2);
    witness_done(&w);
    host_await_pool(hosts[1], "net", "used", 0);
    host_await_pool(hosts[1], "db", "waiting", 0);
}

static CU_TestInfo tests[] = {
    {"60 runs of three hosts", sixty_runs_of_three_hosts},
    {"weighted claims and claims on two pools", weighted_and_two_pools},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "main job", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
