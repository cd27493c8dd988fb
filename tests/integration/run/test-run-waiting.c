/* SPDX-License-Identifier: MIT */

/* The messages of a waiting `berth run`: after a second on a terminal, otherwise only with -v. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 1 }\n"

static struct host *ant;

static void down(void) {
    if (cluster.redis.pid > 0)
        (void) kill(cluster.redis.pid, SIGCONT);
    cluster_down();
}

/* Starts `berth run -p db --name NAME -- sh -c SCRIPT` on a terminal, which gets both outputs. */
static struct child *run_on_terminal(const char *name, const char *script, int *ret_master) {
    char program[256];
    char *argv[] = {program, (char *) "--socket", ant->socket, (char *) "run", (char *) "-p", (char *) "db", (char *) "--name",
                    (char *) name, (char *) "--", (char *) "sh", (char *) "-c", (char *) script, NULL};

    (void) place_program(program, sizeof(program), "berth");
    return child_start_on_terminal(argv, NULL, ret_master);
}

static void await_text(struct child *c, int which, const char *text) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (!strstr(child_text(c, which), text) && clock_boottime() < until)
        child_turn(until);
    if (!strstr(child_text(c, which), text))
        TEST_STRING(child_text(c, which), text);
}

static void end(struct child *c, int master, int status) {
    CU_ASSERT(child_await(c, HOST_PATIENCE));
    TEST_INT(c->exit_code, status);
    child_free(c);
    close_fd(master);
}

/* The message names the holder and the runs ahead, and appears again when these change. */
static void full(void) {
    struct child *held, *ahead, *c;
    int master;

    ant = host_up("ant", POOLS);
    held = berth_start(ant, "run -p db --name held -- sleep 60");
    host_await(ant, "started", "job=held");
    ahead = berth_start(ant, "run -p db --name ahead -- sleep 60");
    host_await(ant, "queued", "job=ahead");
    c = run_on_terminal("shown", "exit 3", &master);
    await_text(c, 1, "berth: waiting: db: 1 of 1 permits in use, held by held on ant; 1 ahead, first ahead on ant");
    child_kill(held, SIGTERM);
    TEST_INT(berth_end(held), 143);
    await_text(c, 1, "berth: waiting: db: 1 of 1 permits in use, held by ahead on ant\r\n");
    child_kill(ahead, SIGTERM);
    TEST_INT(berth_end(ahead), 143);
    end(c, master, 3);
}

/* No end of another run helps a run that needs more than the limit in force, and the message names the limit. */
static void low(void) {
    struct child *c;

    ant = host_up("ant", "pool \"db\" { limit = 3 }\n");
    TEST_INT(berth(ant, "limit db 1"), 0);
    c = berth_start(ant, "run -v -p db:2 --name low -- true");
    await_text(c, 2, "berth: waiting: db: the limit in force is 1, this needs 2\n");
    TEST_INT(berth(ant, "limit db --clear"), 0);
    TEST_INT(berth_end(c), 0);
}

/* While Redis is away, the message says why. */
static void away(void) {
    struct child *c, *verbose, *nowait;
    int master;

    ant = host_up("ant", POOLS);
    TEST_INT(kill(cluster.redis.pid, SIGSTOP), 0);
    nowait = berth_start(ant, "run -n -v -p db -- true"); /* fails when berthd gives the connection up */
    host_await(ant, "redis-lost", " ");
    CU_ASSERT_PTR_NULL(strstr(child_text(nowait, 2), "waiting"));
    TEST_INT(berth_end(nowait), 75);
    c = run_on_terminal("shown", "exit 3", &master);
    verbose = berth_start(ant, "run -v -p db --name verbose -- true");
    await_text(c, 1, "berth: waiting: redis away: ");
    await_text(verbose, 2, "berth: waiting: redis away: ");
    TEST_INT(kill(cluster.redis.pid, SIGCONT), 0);
    end(c, master, 3);
    TEST_INT(berth_end(verbose), 0);
}

/* The run keeps its permits while one of its processes lives, and `berth run` names these processes. */
static void left_behind(void) {
    struct child *c, *silent;
    int master;

    ant = host_up("ant", "pool \"db\" { limit = 2 }\n");
    c = run_on_terminal("shown", "sleep 987 </dev/null >/dev/null 2>&1 & exit 3", &master);
    await_text(c, 1, "berth: the command has ended; waiting for what it left behind: sleep (");
    TEST_INT(host_pool(ant, "db", "used"), 1);
    silent = berth_start(ant, "run -p db --name silent -- sh -c 'sleep 2 & exit 4'");
    TEST_INT(berth_end(silent), 4);
    TEST_STRING(berth_err, "");
    TEST_INT(berth(ant, "stop shown"), 0);
    end(c, master, 3);
}

static CU_TestInfo tests[] = {
    {"full", full},
    {"low", low},
    {"away", away},
    {"left behind", left_behind},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run waiting", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = down, .pTests = tests});
