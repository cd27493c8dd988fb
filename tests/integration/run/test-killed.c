/* SPDX-License-Identifier: MIT */

/* kill -9 of `berth run` and berthd: permits are free when the last process is gone, not before; jobs outlive
 * berthd until their deadline. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit/check.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/witness.h"
#include "tests/harness/place.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\n"

static struct host *ant, *bee;
static struct witness w;

static void down(void) {
    witness_done(&w);
    cluster_down();
}

/* A host with this job on all of db. */
static struct host *host_with_job(const char *host, const char *job, const char *command) {
    return host_up(host, POOLS "job \"%s\" { %s pools = {\"db:2\"} stop-timeout = \"700ms\" }\n", job, command);
}

static const struct witness_run *seen(const char *id) {
    const struct witness_run *r;

    witness_read(&w, cluster.witness);
    r = witness_find(&w, id);
    TEST_FATAL(r != NULL, "a command has not run");
    return r;
}

static void kill_berth_run(bool restart_berthd) {
    struct child *c;

    ant = host_up("ant", POOLS);
    c = berth_start(ant, "run -p db:2 --name held -- sh -c '%s --id inner & exec %s --id outer'", cluster.at_gate, cluster.at_gate);
    host_await(ant, "started", "job=held");
    witness_await_start(cluster.witness, "inner");
    witness_await_start(cluster.witness, "outer");
    child_kill(c, SIGKILL);
    TEST_INT(berth_end(c), 137);
    witness_await_alive(cluster.witness, 1); /* its command dies with it, what that had started goes on */
    if (restart_berthd) {
        host_kill(ant);
        host_start(ant);
        host_await_redis(ant);
    }
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    TEST_INT(host_pool(ant, "db", "used"), 2);
    TEST_INT(host_count(ant, "released", "job=held"), 0);
    test_gate_open(&cluster.gate);
    host_await(ant, "released", "job=held");
    TEST_INT(berth(ant, "run -n -p db:2 -- true"), 0);
    CU_ASSERT(seen("inner")->end > 0);
    CU_ASSERT(seen("outer")->end == 0);
}

/* `berth run -v` has its hold, and waits. */
static void await_waiting(struct child *c) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (!strstr(child_text(c, 2), "waiting") && !c->ended && clock_boottime() < until)
        child_turn(until);
    TEST_FATAL(strstr(child_text(c, 2), "waiting") != NULL, "it does not wait");
}

/* The next berthd knows the grant, although the client has reported nothing yet. */
static void berthd_is_killed_after_a_grant(void) {
    struct child *first, *second;
    char token[32];

    ant = host_up("ant", POOLS);
    first = berth_at_gate(ant, "-p db:2", "first", "started");
    second = berth_start(ant, "run -v -p db:2 --name second -- %s --id second", cluster.command);
    await_waiting(second);
    child_kill(second, SIGSTOP);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(first), 0);
    snprintf(token, sizeof(token), "%s", event_get(host_await(ant, "granted", "job=second"), "token"));
    TEST_INT(host_pool(ant, "db", "used"), 2); /* berthd answers, so it has sent the hold, too */
    host_kill(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    TEST_INT(host_pool(ant, "db", "used"), 2);
    child_kill(second, SIGCONT);
    TEST_INT(berth_end(second), 0);
    host_await(ant, "started", "job=second token=%s", token);
    host_await(ant, "released", "job=second token=%s", token);
}

static void berth_run_is_killed(void) {
    kill_berth_run(false);
}

static void berth_run_is_killed_and_berthd_restarted(void) {
    kill_berth_run(true);
}

/* A command closes all that it inherited, and does not die with its `berth run`, like one that changes its
 * user. berthd knows the command by its process, and so does the next berthd. */
static void command_without_hold(void) {
    struct child *c;

    ant = host_up("ant", POOLS);
    c = berth_start(ant,
                    "run -p db:2 --name held -- bash -c 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; "
                    "[ $fd -le 2 ] || eval exec $fd\">&-\"; done; exec setpriv --pdeathsig clear %s --id bare'",
                    cluster.at_gate);
    host_await(ant, "started", "job=held");
    witness_await_start(cluster.witness, "bare");
    child_kill(c, SIGKILL);
    TEST_INT(berth_end(c), 137);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    host_kill(ant);
    host_start(ant);
    host_await_redis(ant);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    test_gate_open(&cluster.gate);
    host_await(ant, "released", "job=held");
    TEST_INT(witness_count_alive(cluster.witness), 0);
}

/* berth-runner does not find what a killed `berth run` left: berthd still exits, and the permits stay taken. */
static void berthd_stops_beside_an_orphan(void) {
    struct child *c;

    ant = host_up("ant", POOLS);
    c = berth_start(ant, "run -p db:2 --name held -- sh -c 'env -u BERTH_RUN %s --id orphan & wait'", cluster.at_gate);
    witness_await_start(cluster.witness, "orphan");
    host_await(ant, "started", "job=held");
    child_kill(c, SIGKILL);
    TEST_INT(berth_end(c), 137);
    host_stop(ant);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    host_start(ant);
    host_await_redis(ant);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    test_gate_open(&cluster.gate);
    host_await(ant, "released", "job=held");
    TEST_INT(berth(ant, "run -n -p db:2 -- true"), 0);
}

/* `berth run` itself goes on over a restart of berthd, and reports its end. */
static void berthd_restarts_under_berth_run(void) {
    struct child *c, *waiter;

    ant = host_up("ant", POOLS);
    c = berth_start(ant, "run -p db:2 --name held -- %s --id held --exit 3", cluster.at_gate);
    host_await(ant, "started", "job=held");
    waiter = berth_start(ant, "run -p db --name waiter -- %s --id waiter", cluster.command);
    host_await(ant, "queued", "job=waiter");
    host_kill(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    host_await_pool(ant, "db", "used", 2);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 3);
    host_await(ant, "exited", "job=held result=failure exit_code=3");
    TEST_INT(berth_end(waiter), 0);
    CU_ASSERT(seen("waiter")->start >= seen("held")->end);
}

/* Both die together. A grant to a claim without a client ends soon (R4), and does not keep berthd from
 * ending. */
static void berth_run_and_berthd_are_killed(void) {
    struct child *c, *waiters[2];
    json_t *json;

    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
    c = berth_at_gate(bee, "-p db:2", "held", "started");
    for (size_t i = 0; i < ELEMENTSOF(waiters); i++) {
        waiters[i] = berth_start(ant, "run -p db --name w%zu -- %s --id waiter", i, cluster.command);
        host_await(ant, "queued", "job=w%zu", i);
    }
    host_kill(ant);
    for (size_t i = 0; i < ELEMENTSOF(waiters); i++) {
        child_kill(waiters[i], SIGKILL);
        TEST_INT(berth_end(waiters[i]), 137);
    }
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
    host_await(ant, "granted", "job=w0");
    host_await(ant, "granted", "job=w1");
    json = berth_json(ant, "runs");
    TEST_INT(berth(ant, "stop %s", json_string_value(berth_at(json, "runs.0.run"))), 0);
    json_decref(json);
    host_await_pool(bee, "db", "used", 1);
    TEST_INT(berth(bee, "run --wait 10s -p db:2 -- true"), 0);
    CU_ASSERT(witness_count_alive(cluster.witness) == 0);
}

static void job_goes_on_over_a_restart(void) {
    ant = host_with_job("ant", "job", witness_at_gate("job", 7));
    TEST_INT(berth(ant, "start job"), 0);
    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    host_kill(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    TEST_INT(host_pool(ant, "db", "used"), 2);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=job result=failure exit_code=7");
    host_await(ant, "released", "job=job");
    TEST_INT(berth(ant, "start job --wait"), 7);
    seen("job");
    TEST_INT(witness_count(&w, "job"), 2);
}

/* The run ends while berthd is down: its status waits for the next one. */
static void job_ends_while_berthd_is_away(void) {
    json_t *json;

    ant = host_with_job("ant", "job", witness_at_gate("job", 7));
    TEST_INT(berth(ant, "start job"), 0);
    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    host_kill(ant);
    test_gate_open(&cluster.gate);
    witness_await_alive(cluster.witness, 0);
    host_start(ant);
    host_await(ant, "exited", "job=job result=failure exit_code=7");
    json = berth_json(ant, "runs --all");
    AT_STRING(json, "runs.0.result", "failure");
    AT_INT(json, "runs.0.exit_code", 7);
    json_decref(json);
    host_await(ant, "redis-connected", " ");
    host_await_pool(ant, "db", "used", 0);
}

/* The guard asks the command to stop, kills it, and the permits go to the next run, all within its time. */
static void check_in_time(usec_t killed, usec_t alive) {
    usec_t next_start = seen("next")->start;

    CU_ASSERT(alive > killed + CLUSTER_LEASE_USEC / 3); /* not at once: jobs outlive berthd */
    CU_ASSERT(next_start - killed < 2 * CLUSTER_LEASE_USEC);
    if (witness_max(&w, "db") > 2 || seen("deaf")->n_ignored != 1)
        printf("ms since berthd was killed: stop signal %" PRIu64 ", last seen alive %" PRIu64 ", next started %" PRIu64 "\n",
               usec_sub(seen("deaf")->ignored, killed) / 1000, usec_sub(alive, killed) / 1000, usec_sub(next_start, killed) / 1000);
    TEST_INT(witness_max(&w, "db"), 2);
    TEST_INT(seen("deaf")->n_ignored, 1);
}

/* Without berthd nothing extends the deadline: the guard stops the run before another one gets the
 * permits. */
static void job_is_stopped_at_its_deadline(void) {
    struct child *c;
    usec_t killed, alive = 0;
    bool started;

    stall_start();
    ant = host_with_job("ant", "deaf", witness_command("--id deaf --ignore-term --for 60000"));
    bee = host_up("bee", POOLS);
    TEST_INT(berth(ant, "start deaf"), 0);
    witness_await_start(cluster.witness, "deaf");
    c = berth_start(bee, "run -p db:2 --name next -- %s --id next", cluster.command);
    host_await(bee, "queued", "job=next");
    host_kill(ant);
    killed = clock_boottime();
    for (usec_t now; now = clock_boottime(), witness_count_alive(cluster.witness) > 0; alive = now) {
        TEST_FATAL(now - killed < CLUSTER_LEASE_USEC + stall_between(killed, now), "it outlives the lease");
        child_turn(now + 2 * USEC_PER_MSEC);
    }
    started = host_count(bee, "started", "job=next") > 0;
    TEST_INT(berth_end(c), 0);
    if (stall_excuses(killed)) { /* bee may have lost its own session, and the reply that expired ant */
        cluster.broken = 1U << AUDIT_ABOVE_LIMIT;
    } else {
        CU_ASSERT(!started);
        host_await(bee, "host-expired", "host=ant");
        host_await(bee, "reclaimed", " ");
        check_in_time(killed, alive);
    }
    host_start(ant); /* a new session; the report of what was stopped is recorded */
    host_await(ant, "exited", "job=deaf result=lease-lost");
    host_await(ant, "redis-connected", " ");
}

/* In a container a process has another pid than here, where that pid may be of any process. */
static void pid_of_another_namespace(void) {
    char program[256], *argv[] = {(char *) "unshare", (char *) "--pid", (char *) "--fork", (char *) "--mount-proc", program, (char *) "--socket",
                                  NULL, (char *) "run", (char *) "-p", (char *) "db", (char *) "--", (char *) "sleep", (char *) "1000", NULL};
    struct child *c;
    json_t *answer;

    TEST_NEEDS_ROOT();
    ant = host_up("ant", POOLS);
    (void) place_program(program, sizeof(program), "berth");
    argv[6] = ant->socket;
    c = child_start(argv, NULL);
    host_await(ant, "started", "job=sleep");
    answer = berth_json(ant, "pools db");
    TEST_STRING(json_string_value(berth_at(answer, "pools.0.holders.0.name")), "sleep");
    CU_ASSERT(json_is_null(berth_at(answer, "pools.0.holders.0.pid")));
    json_decref(answer);
    answer = berth_json(ant, "runs");
    CU_ASSERT(json_is_null(berth_at(answer, "runs.0.pid")));
    json_decref(answer);
    TEST_INT(berth(ant, "stop sleep"), 0);
    TEST_INT(berth_end(c), 143);
}

static CU_TestInfo tests[] = {
    {"berth run is killed", berth_run_is_killed},
    {"berthd is killed after a grant", berthd_is_killed_after_a_grant},
    {"berth run is killed and berthd restarted", berth_run_is_killed_and_berthd_restarted},
    {"the command of a killed berth run has closed its hold", command_without_hold},
    {"berthd stops beside an orphan", berthd_stops_beside_an_orphan},
    {"berthd restarts under berth run", berthd_restarts_under_berth_run},
    {"berth run and berthd are killed", berth_run_and_berthd_are_killed},
    {"the pid of another namespace", pid_of_another_namespace},
    {"a job goes on over a restart of berthd", job_goes_on_over_a_restart},
    {"a job ends while berthd is away", job_ends_while_berthd_is_away},
    {"a job without berthd is stopped at its deadline", job_is_stopped_at_its_deadline},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "killed", .pSetUpFunc = cluster_up, .pTearDownFunc = down, .pTests = tests});
