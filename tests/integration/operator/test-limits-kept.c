/* SPDX-License-Identifier: MIT */

/* Limits that an operator sets for pools of one host, over a restart of berthd. */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

static struct host *ant;

static void end_all(struct child **children, size_t n) {
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < n; i++)
        TEST_INT(berth_end(children[i]), 0);
}

static void restart(void) {
    host_kill(ant);
    host_mark(ant);
    host_start(ant);
}

/* Limits that an operator sets for pools of this host end neither with berthd nor with a reload. */
static void kept_on_the_host(void) {
    static const char pools[] = "pool \"disk\" { limit = 1 scope = \"host\" }\npool \"cpu\" { limit = 1 scope = \"host\" }\n"
                                "pool \"t/*\" { limit = 1 scope = \"host\" }\n";
    char path[sizeof(ant->runtime) + 32];
    struct child *c[2];

    ant = host_add_alone("ant", "%s", pools);
    host_start(ant);
    TEST_INT(berth(ant, "limit disk 3 --reason 'new disk'"), 0);
    TEST_INT(berth(ant, "pause disk --reason 'it is full'"), 0);
    TEST_INT(berth(ant, "limit cpu 2"), 0);
    TEST_INT(berth(ant, "limit t/x 2 --for 1h"), 0);
    restart();
    host_await(ant, "limit-changed", "pools=disk");
    TEST_INT(berth(ant, "run -n -p disk -- true"), 75);
    TEST_INT(berth(ant, "run -n -p t/x:2 -- true"), 64); /* the config's limit bounds a single run */
    TEST_INT(host_pool(ant, "t/x", "limit"), 2);
    c[0] = berth_at_gate(ant, "-p cpu", "a", "started"); /* `berth audit` of this journal finds no violation */
    TEST_INT(berth(ant, "reload"), 0);
    c[1] = berth_at_gate(ant, "-p cpu", "b", "started");
    end_all(c, 2);
    TEST_INT(berth(ant, "resume disk"), 0);
    TEST_INT(host_pool(ant, "disk", "limit"), 3);
    TEST_INT(berth(ant, "limit disk --clear"), 0);
    TEST_INT(berth(ant, "limit cpu --clear"), 0);
    TEST_INT(berth(ant, "limit t/x --clear"), 0);
    (void) snprintf(path, sizeof(path), "%s/state/overrides", ant->runtime);
    CU_ASSERT(access(path, F_OK) < 0);
}

/* Lines before the damage count. */
static void kept_damaged(void) {
    char path[sizeof(ant->runtime) + 32];
    struct stat st;

    ant = host_add_alone("ant", "pool \"disk\" { limit = 1 scope = \"host\" }\n");
    host_start(ant);
    TEST_INT(berth(ant, "limit disk 3"), 0);
    (void) snprintf(path, sizeof(path), "%s/state/overrides", ant->runtime);
    CU_ASSERT_FATAL(stat(path, &st) == 0);
    FILE *f = fopen(path, "ae");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs("disk set many 0 \ndisk set 5 0 \n", f);
    fclose(f);
    restart();
    host_await(ant, "warning", "/state/overrides: cannot read (Bad message), limits that were set by hand");
    TEST_INT(host_pool(ant, "disk", "limit"), 3);
}

/* Something at the path of the file has the effect of a full disk. The limit is in force all the
 * same. */
static void not_kept(void) {
    char path[sizeof(ant->runtime) + 32], inside[sizeof(path) + 8];

    ant = host_add_alone("ant", "pool \"disk\" { limit = 1 scope = \"host\" }\n");
    host_start(ant);
    (void) snprintf(path, sizeof(path), "%s/state/overrides", ant->runtime);
    (void) snprintf(inside, sizeof(inside), "%s/x", path);
    CU_ASSERT_FATAL(mkdir(path, 0700) == 0 && mkdir(inside, 0700) == 0);
    TEST_INT(berth(ant, "limit disk 3"), 70);
    TEST_STRING(berth_err, "berth: disk: changed, but not for the next berthd, because the runtime directory "
                           "cannot be written\n");
    TEST_INT(host_pool(ant, "disk", "limit"), 3);
    TEST_INT(berth(ant, "pause disk"), 70);
    TEST_INT(berth(ant, "run -n -p disk -- true"), 75);
    CU_ASSERT_FATAL(rmdir(inside) == 0 && rmdir(path) == 0);
    TEST_INT(berth(ant, "resume disk"), 0);
    restart();
    TEST_INT(host_pool(ant, "disk", "limit"), 3);
}

static CU_TestInfo tests[] = {
    {"limits of the host's pools are kept", kept_on_the_host},
    {"a damaged file of kept limits", kept_damaged},
    {"a limit that cannot be kept", not_kept},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "limits that are kept", .pSetUpFunc = cluster_up_patient,
             .pTearDownFunc = cluster_down, .pTests = tests});
