/* SPDX-License-Identifier: MIT */

/* The command of a `berth run` ends after berthd was killed: the next berthd logs the true end, or that the
 * end is unknown. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 1 }\npool \"own\" { limit = 1 scope = \"host\" }\n"

static struct host *ant;

static void up(void) {
    cluster_up_patient();
    ant = host_up("ant", POOLS);
}

/* Starts a `berth run` whose command waits at the gate, and kills berthd. */
static struct child *begin(const char *pool, const char *words) {
    struct child *c = berth_start(ant, "run -p %s --name held -- %s --id held %s", pool, cluster.at_gate, words);

    host_await(ant, "started", "job=held");
    witness_await_start(cluster.witness, "held");
    host_kill(ant);
    return c;
}

static void check_last_run(const char *result, int exit_code) {
    json_t *json = berth_json(ant, "runs --all");

    AT_STRING(json, "runs.0.name", "held");
    AT_STRING(json, "runs.0.result", result);
    AT_INT(json, "runs.0.exit_code", exit_code); /* -1: it has none */
    json_decref(json);
}

static void comes_back(const char *pool, const char *words, int status, const char *event, const char *result) {
    struct child *c = begin(pool, words);

    test_gate_open(&cluster.gate);
    witness_await_alive(cluster.witness, 0);
    host_start(ant);
    TEST_INT(berth_end(c), status);
    host_await(ant, "exited", "job=held %s", event);
    host_await(ant, "released", "job=held");
    TEST_INT(host_count(ant, "exited", "job=held"), 1);
    check_last_run(result, status);
}

static void success(void) {
    comes_back("db", "", 0, "result=success exit_code=0", "success");
}

static void failure(void) {
    comes_back("own", "--exit 7", 7, "result=failure exit_code=7", "failure");
}

/* berthd is killed before it reads the report. */
static void not_read(void) {
    struct child *c = berth_start(ant, "run -p db --name held -- %s --id held --exit 7", cluster.at_gate);
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char path[64];

    host_await(ant, "started", "job=held");
    witness_await_start(cluster.witness, "held");
    host_signal(ant, SIGSTOP);
    test_gate_open(&cluster.gate);
    snprintf(path, sizeof(path), "/proc/%d/fd/20", (int) c->pid);
    while (access(path, F_OK) == 0 && clock_boottime() < until) /* it has reported the end and closed the hold */
        child_turn(clock_boottime() + USEC_PER_MSEC);
    CU_ASSERT(!c->ended);
    host_kill(ant);
    host_start(ant);
    TEST_INT(berth_end(c), 7);
    host_await(ant, "exited", "job=held result=failure exit_code=7");
    host_await(ant, "released", "job=held");
    TEST_INT(host_count(ant, "exited", "job=held"), 1);
}

/* `berth run` has given up or was killed: no status is reported. */
static void no_report(void) {
    struct child *c = begin("db", "--exit 7");
    const char *line;

    test_gate_open(&cluster.gate);
    witness_await_alive(cluster.witness, 0);
    child_kill(c, SIGKILL);
    TEST_INT(berth_end(c), 137);
    host_start(ant);
    line = host_await(ant, "exited", "job=held result=guard-died");
    TEST_STRING(event_get(line, "reason"), "it ended while berthd was down; its exit status is known only to the caller of `berth run`");
    TEST_STRING(event_get(line, "exit_code"), "");
    host_await(ant, "released", "job=held");
    check_last_run("guard-died", -1);
}

/* The end was reported. berthd is killed before the last process that has the hold closes it. */
static void reported_before(void) {
    struct child *c = berth_start(ant, "run -p db --name held -- %s --id held --exit 4", cluster.at_gate), *other;
    usec_t until = clock_boottime() + HOST_PATIENCE;
    char script[128], *argv[] = {(char *) "sh", (char *) "-c", script, NULL};

    witness_await_start(cluster.witness, "held");
    snprintf(script, sizeof(script), "exec 9>/proc/%d/fd/20; echo has it; exec sleep 1000", (int) c->pid);
    other = child_start(argv, NULL); /* no child of `berth run`, so that does not wait for it */
    while (!strstr(child_text(other, 1), "has it") && !other->ended && clock_boottime() < until)
        child_turn(until);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 4);
    host_await(ant, "exited", "job=held result=failure exit_code=4");
    host_kill(ant);
    host_start(ant);
    host_await_pool(ant, "db", "used", 1);
    child_kill(other, SIGKILL);
    TEST_INT(berth_end(other), 137);
    host_await(ant, "released", "job=held");
    TEST_INT(host_count(ant, "exited", "job=held"), 0); /* the earlier berthd has logged it */
    check_last_run("failure", 4);
}

static void start_on(int listen_fd) {
    host_launch_on(ant, listen_fd);
    host_await(ant, "ready", " ");
    host_await(ant, "redis-connected", " ");
}

/* `berth run` has ended, but its report waits for the next berthd, which reads it before it decides. */
static void words_wait(void) {
    struct child *c;
    _cleanup_close_ int listen_fd = -1;

    host_stop(ant);
    listen_fd = socket_listen(ant->socket, SOCK_STREAM, 0600);
    TEST_FATAL(listen_fd >= 0 && fcntl(listen_fd, F_SETFD, 0) == 0, "no socket");
    start_on(listen_fd);
    c = begin("db", "--exit 7");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 7);
    start_on(listen_fd);
    host_await(ant, "exited", "job=held result=failure exit_code=7");
    host_await(ant, "released", "job=held");
    (void) unlink(ant->socket);
}

static CU_TestInfo tests[] = {
    {"success", success}, {"failure", failure}, {"not read", not_read}, {"no report", no_report}, {"reported before", reported_before},
    {"words wait", words_wait}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "ended away", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
