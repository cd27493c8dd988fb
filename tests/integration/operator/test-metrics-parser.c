/* SPDX-License-Identifier: MIT */

/* `berth metrics --format openmetrics` of an idle, a busy and a broken cluster, for the reference parser of the format. */

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define NO_PARSER 77
#define CONFIG                                                                                              \
    "pool \"db\" { limit = 1 }\npool \"tenant/*\" { limit = 1 }\npool \"net\" { limit = 2 scope = \"host\" }\n" \
    "job \"bad\" { command = {\"/bin/false\"} pools = {\"net\"} }\n"

static bool has_parser;

/* Returns the number of samples that the parser finds, and fails the test for a malformed text. */
static int parse(struct host *h, const char *options) {
    char path[96], command[256];
    int samples = 0;
    FILE *f;

    (void) snprintf(path, sizeof(path), "%s/berth.prom", cluster.folder);
    TEST_INT(berth(h, "metrics --format openmetrics %s --output %s", options, path), 0);
    (void) snprintf(command, sizeof(command),
                    "p=/usr/bin/python3; [ -x $p ] || p=python3; PYTHONDONTWRITEBYTECODE=1 exec $p tests/oracle/openmetrics.py %s", path);
    f = popen(command, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    if (fscanf(f, "%d", &samples) != 1)
        samples = 0;
    int status = pclose(f);

    has_parser = !(WIFEXITED(status) && WEXITSTATUS(status) == NO_PARSER);
    if (has_parser)
        TEST_INT(status, 0);
    return samples;
}

static void test_parser(void) {
    struct host *ant = host_up("ant", "%s", CONFIG);
    int idle = parse(ant, "--cluster"), busy;
    struct child *holder, *waiter;

    if (!has_parser)
        TEST_SKIP("needs python3-prometheus-client");
    CU_ASSERT(idle > 60);
    holder = berth_at_gate(ant, "-p db -p net -p tenant/acme", "holder", "started");
    waiter = berth_at_gate(ant, "-p db", "waiter", "queued");
    TEST_INT(berth(ant, "start --wait bad"), 1);
    busy = parse(ant, "--cluster");
    CU_ASSERT(busy >= idle + 2 * 3 * 13); /* two histograms of three pools */
    CU_ASSERT(parse(ant, "") < busy);
    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    CU_ASSERT(parse(ant, "--cluster") > idle);
    host_stop(ant);
    TEST_INT(parse(ant, ""), 1); /* berth_up */
    (void) berth_end(holder);
    (void) berth_end(waiter);
}

static CU_TestInfo tests[] = {{"parser", test_parser}, CU_TEST_INFO_NULL};

TEST_SUITES({"metrics-parser", NULL, NULL, cluster_up_patient, cluster_down, tests});
