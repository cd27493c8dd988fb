/* SPDX-License-Identifier: MIT */

/* A `berth run` that knows a run but does not descend from it is an ordinary claim. (Descendants:
 * test-jobs.) */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static struct host *ant;
static struct child *outer;
static char run[64];

static void up(void) {
    cluster_up_patient();
    ant = host_up("ant", "pool \"db\" { limit = 1 }\npool \"disk\" { limit = 1 }\n");
    outer = berth_start(ant, "run -p db --name outer -- %s --id outer --exit 3", cluster.at_gate);
    snprintf(run, sizeof(run), "%s", event_get(host_await(ant, "started", "job=outer"), "run"));
}

static void end_outer(void) {
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(outer), 3);
    host_await(ant, "released", "job=outer");
}

/* A `berth run` beside the outer one, with the environment of that one's command. Descriptor 9 is what `redirection` opens. */
static int run_beside(const char *redirection, const char *words) {
    char script[1024], named[80], socket[128];
    char *argv[] = {(char *) "sh", (char *) "-c", script, NULL};
    char *environment[] = {named, (char *) "BERTH_HOLD=9", socket, NULL};

    snprintf(named, sizeof(named), "BERTH_RUN=%s", run);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", ant->socket);
    snprintf(script, sizeof(script), "exec %s && exec %s/berth run %s", redirection, cluster.build, words);
    return berth_end(child_start(argv, environment));
}

/* A process with the hold itself is not inside, either: `berth run` and its command have it as number 20. */
static void beside(void) {
    char hold[64];

    snprintf(hold, sizeof(hold), "9>/proc/%d/fd/20", (int) outer->pid);
    TEST_INT(run_beside("9>&-", "-n -p db -- true"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "busy"));
    TEST_INT(run_beside(hold, "-n -p db -- true"), 75);
    TEST_INT(run_beside(hold, "-n -p disk -- sh -c 'exit 4'"), 4); /* permits of its own */
    end_outer();
    TEST_INT(run_beside("9>&-", "-n -p db -- true"), 0);
}

static void environment(void) {
    char expected[160];

    TEST_INT(berth(ant, "run -p disk --name env -- sh -c 'readlink /proc/self/fd/$BERTH_HOLD'"), 0);
    snprintf(expected, sizeof(expected), "%s/holds/%s\n", ant->runtime, event_get(host_await(ant, "started", "job=env"), "run"));
    TEST_STRING(berth_out, expected);
    end_outer();
}

/* berthd is killed, and the `berth run` around the client comes back later than the client asks. A process whose parent has
 * ended descends from that `berth run` alone. */
static void berthd_killed(void) {
    char script[512], said[80];
    struct test_gate gate;
    struct child *around;
    struct stat st;
    usec_t end;

    end_outer();
    test_gate_make(&gate, "inner");
    (void) snprintf(said, sizeof(said), "%s/said", cluster.folder);
    (void) snprintf(script, sizeof(script), "(head -c 1 %s; exec %s/berth run -v -p db --name inner -- mkdir %s/ran 2>%s) & exit 5", gate.path, cluster.build,
                    cluster.folder, said);
    around = berth_start(ant, "run -p db --name around -- sh -c '%s'", script);
    host_await(ant, "started", "job=around");
    host_kill(ant);
    TEST_INT(kill(around->pid, SIGSTOP), 0);
    host_start(ant);
    test_gate_open(&gate);
    for (end = clock_boottime() + HOST_PATIENCE; (stat(said, &st) < 0 || st.st_size == 0) && clock_boottime() < end;)
        (void) poll(NULL, 0, 1);
    TEST_INT(kill(around->pid, SIGCONT), 0);
    TEST_INT(berth_end(around), 5);
    (void) snprintf(said, sizeof(said), "%s/ran", cluster.folder);
    TEST_INT(rmdir(said), 0); /* the inner command ran */
    host_await(ant, "released", "job=around");
    TEST_INT(host_count(ant, "queued", "job=inner"), 0);
    test_gate_done(&gate);
}

static CU_TestInfo tests[] = {
    {"beside", beside},
    {"berthd killed", berthd_killed},
    {"environment", environment},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "nested", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
