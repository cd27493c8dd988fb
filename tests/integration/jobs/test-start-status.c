/* SPDX-License-Identifier: MIT */

/* The exit status of `berth start`, row by row of berth(1). Those for the end of a command are in
 * test-jobs.c. */

#include <signal.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"own\" { limit = 1 scope = \"host\" queue-limit = 1 }\n"
#define JOB(name, command) "job \"" name "\" { command = {" command "} pools = {\"own\"} output = \"null\" }\n"
#define SLEEP "\"/bin/sleep\", \"1000\""

static struct host *ant;

static void up(void) {
    cluster_up_without_redis();
    ant = host_add_alone("ant", POOLS JOB("fine", "\"/bin/true\"") JOB("missing", "\"/nonexistent\"") JOB("nap", SLEEP) JOB("rest", SLEEP)
                                    JOB("more", SLEEP));
    host_start(ant);
}

static void begun(void) {
    TEST_INT(berth(ant, "start nap"), 0);
    host_await(ant, "started", "job=nap");
    TEST_INT(berth(ant, "start rest"), 0); /* the run waits */
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: rest: waiting"));
    host_await(ant, "queued", "job=rest");
    TEST_INT(berth(ant, "start nap"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: skipped: "));
    TEST_INT(berth(ant, "start more"), 0); /* the reply comes before the queue turns out to be full */
    host_await(ant, "refused", "job=more");
    TEST_INT(berth(ant, "start more --wait"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "queue-full"));
    TEST_INT(berth(ant, "stop rest"), 0);
    TEST_INT(berth(ant, "stop nap"), 0);
    host_await(ant, "exited", "job=nap");
}

static void waited_for(void) {
    struct child *nap = berth_start(ant, "start nap --wait"), *rest;

    host_await(ant, "started", "job=nap");
    rest = berth_start(ant, "start rest --wait");
    host_await(ant, "queued", "job=rest");
    TEST_INT(berth(ant, "stop rest"), 0);
    TEST_INT(berth_end(rest), 75); /* the command never started */
    TEST_INT(berth(ant, "stop nap"), 0);
    TEST_INT(berth_end(nap), 143);
    TEST_INT(berth(ant, "start missing --wait"), 125);
    TEST_INT(berth(ant, "start fine --wait"), 0);
}

static void not_begun(void) {
    TEST_INT(berth(ant, "start fin"), 65);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "did you mean \"fine\"?"));
    TEST_INT(berth(ant, "start 'f ne'"), 64);
    TEST_INT(berth(ant, "drain"), 0);
    TEST_INT(berth(ant, "start fine"), 75);
    TEST_STRING(berth_err, "berth: no permit: this host is drained\n");
    TEST_INT(berth(ant, "run -p own -- true"), 75);
    TEST_STRING(berth_err, "berth: no permit: this host is drained\n");
    TEST_INT(berth(ant, "undrain"), 0);
}

/* `berth start` starts all jobs and exits with the first failure. */
static void several(void) {
    TEST_INT(berth(ant, "start missing fine nobody --wait"), 65); /* no job starts if a name is unknown */
    TEST_INT(host_count(ant, "granted", " "), 0);
    TEST_INT(berth(ant, "start missing fine --wait"), 125);
    host_await(ant, "exited", "job=missing");
    host_await(ant, "exited", "job=fine result=success");
}

static void berthd_goes_away(void) {
    struct child *nap = berth_start(ant, "start nap --wait");

    host_await(ant, "started", "job=nap");
    host_kill(ant);
    TEST_INT(berth(ant, "start fine"), 69);
    TEST_INT(berth(ant, "start fine --wait"), 69); /* there is no run to wait for */
    host_start(ant);
    TEST_INT(berth(ant, "stop nap"), 0);
    host_await(ant, "exited", "job=nap");
    TEST_INT(berth_end(nap), 143);
}

static CU_TestInfo tests[] = {
    {"begun", begun},     {"waited for", waited_for},           {"not begun", not_begun},
    {"several", several}, {"berthd goes away", berthd_goes_away}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "start status", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
