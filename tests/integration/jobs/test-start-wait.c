/* SPDX-License-Identifier: MIT */

/* berthd is killed and started again during `berth start --wait`, which exits with the status of the
 * command. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/start-jobs.h"
#include "cli/verbs.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static struct host *ant;

static void up(void) {
    char behind[1024];

    cluster_up_without_redis();
    snprintf(behind, sizeof(behind), "job \"behind\" { %s overlap = \"queue\" }\n", witness_at_gate("behind", 6));
    ant = host_add_alone("ant", "%spool \"slot\" { limit = 1 scope = \"host\" }\n"
                                "job \"job\" { %s pools = {\"slot\"} }\n"
                                "job \"next\" { command = {\"/bin/sh\", \"-c\", \"exit 5\"} pools = {\"slot\"} }\n"
                                "job \"missing\" { command = {\"/nonexistent\"} pools = {\"slot\"} }\n",
                         behind, witness_at_gate("job", 7));
    host_start(ant);
}

static void await_text(struct child *c, int which, const char *text) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (!strstr(child_text(c, which), text) && !c->ended && clock_boottime() < until)
        child_turn(until);
    TEST_FATAL(strstr(child_text(c, which), text) != NULL, text);
}

static struct child *start_running(void) {
    struct child *c = berth_start(ant, "start job --wait");

    witness_await_start(cluster.witness, "job");
    host_await(ant, "started", "job=job");
    return c;
}

static void killed_while_it_runs(void) {
    struct child *c = start_running(), *next = berth_start(ant, "start --wait next");

    host_await(ant, "queued", "job=next");
    host_kill(ant);
    await_text(c, 2, "berthd is away; waiting for it and run ");
    await_text(next, 2, "berthd is away; waiting for it and run ");
    host_start(ant);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 7);
    TEST_INT(berth_end(next), 5); /* it waited for the permit, and waits again */
}

/* A run that is queued behind another one of its job (overlap = "queue") keeps its id over a restart. */
static void killed_while_it_is_behind(void) {
    struct child *c = berth_start(ant, "start behind --wait"), *next;
    const json_t *run;
    json_t *runs;

    host_await(ant, "started", "job=behind");
    next = berth_start(ant, "start --wait behind");
    await_text(next, 1, "\n");
    CU_ASSERT(strncmp(child_text(next, 1), child_text(c, 1), ID_TEXT_SIZE - 1) != 0);
    host_kill(ant);
    await_text(c, 2, "berthd is away; waiting for it and run ");
    await_text(next, 2, "berthd is away; waiting for it and run ");
    host_start(ant);
    runs = berth_json(ant, "runs");
    run = json_array_get(json_object_get(runs, "runs"), 1); /* waiting runs come last */
    TEST_STRING(json_string_value(json_object_get(run, "state")), "pending");
    TEST_STRING(json_string_value(json_object_get(run, "blocked_by")), "overlap");
    json_decref(runs);
    TEST_INT(witness_count_alive(cluster.witness), 1);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 6);
    TEST_INT(berth_end(next), 6);
    TEST_INT(host_count(ant, "exited", "job=behind"), 2);
}

/* A reload removes the job of a queued run: the run is withdrawn. */
static void job_is_gone(void) {
    struct child *c = berth_start(ant, "start behind --wait"), *next;

    host_await(ant, "started", "job=behind");
    next = berth_start(ant, "start --wait behind");
    await_text(next, 1, "\n");
    host_set_config(ant, "pool \"slot\" { limit = 1 scope = \"host\" }\n");
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth_end(next), 75);
    CU_ASSERT(strstr(berth_err, "its job is no longer defined") != NULL);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 6);
}

static void ends_while_berthd_is_away(void) {
    struct child *c = start_running();

    host_kill(ant);
    test_gate_open(&cluster.gate);
    witness_await_alive(cluster.witness, 0);
    await_text(c, 2, "berthd is away; waiting for it and run ");
    host_start(ant);
    TEST_INT(berth_end(c), 7);
}

static void check_await(const char *job, int status, int exit_code, const char *result) {
    char id[ID_TEXT_SIZE];
    json_t *answer = NULL, *run;

    TEST_INT(berth(ant, "start --wait %s", job), status);
    snprintf(id, sizeof(id), "%s", berth_out);
    host_kill(ant);
    host_start(ant);
    client_set_socket(ant->socket);
    TEST_INT(client_call("io.berth.Await", json_pack("{s:s}", "run", id), &answer), 0);
    client_set_socket(NULL);
    run = json_object_get(answer, "run");
    TEST_STRING(json_string_value(json_object_get(run, "run")), id);
    TEST_STRING(json_string_value(json_object_get(run, "name")), job);
    TEST_STRING(json_string_value(json_object_get(run, "result")), result);
    TEST_INT(json_is_integer(json_object_get(run, "exit_code")) ? json_integer_value(json_object_get(run, "exit_code")) : -1, exit_code);
    TEST_INT(run_exit_status(run), status);
    json_decref(answer);
}

/* An earlier berthd recorded the end: the state of the job has it. */
static void was_over_before(void) {
    check_await("next", 5, 5, "failure");
    check_await("missing", 125, -1, "not-started");
}

/* The id of the run cannot be written. */
static void to_a_full_disk(void) {
    char shell[] = "sh", flag[] = "-c", command[512], *argv[] = {shell, flag, command, NULL};

    snprintf(command, sizeof(command), "exec %s/berth --socket %s start next > /dev/full", cluster.build, ant->socket);
    TEST_INT(berth_end(child_start(argv, NULL)), EXIT_INTERNAL);
}

/* --- the test is berthd --- */

static void start_in_child(_unused_ struct fake *f) {
    char start[] = "start", wait[] = "--wait", job[] = "nightly", *argv[] = {start, wait, job, NULL};
    int status = verb_start(3, argv);

    (void) fflush(stdout);
    _exit(status);
}

static void begin(struct fake *f) {
    fake_init(f);
    fake_in_child = start_in_child;
    fake_run(f, "", NULL);
    fake_accept(f);
    json_decref(fake_expect(f, "io.berth.Start"));
}

static void come_back(struct fake *f) {
    json_t *params;

    fake_accept(f);
    params = fake_expect(f, "io.berth.Await");
    TEST_STRING(json_string_value(json_object_get(params, "run")), FAKE_RUN);
    json_decref(params);
}

#define RUNS(more) "{'parameters': {'run': {'run': '" FAKE_RUN "', 'name': 'nightly', 'state': 'running'}" more "}, 'continues': true}"

static void end(struct fake *f, int status, const char *error) {
    TEST_INT(fake_await_exit(f), status);
    CU_ASSERT(strstr(fake_errors(f), error) != NULL);
    fake_done(f);
}

static void asks_again(void) {
    struct fake f;

    begin(&f);
    fake_reply(&f, RUNS(""));
    fake_await_output(&f, FAKE_RUN "\n");
    fake_stop(&f);
    fake_listen(&f);
    come_back(&f);
    fake_reply(&f, "{'error': 'io.berth.Away', 'parameters': {'text': 'not yet'}}");
    come_back(&f);
    fake_hang_up(&f);
    come_back(&f);
    fake_reply(&f, RUNS(""));
    fake_hang_up(&f);
    come_back(&f);
    fake_reply(&f, "{'parameters': {'run': {'run': '" FAKE_RUN "', 'name': 'nightly', 'state': 'done', 'result': 'failure', "
                 "'exit_code': 9}}}");
    end(&f, 9, "nightly: berthd is away; waiting for it and run " FAKE_RUN);
}

static void is_unknown(void) {
    struct fake f;

    begin(&f);
    fake_reply(&f, RUNS(""));
    fake_hang_up(&f);
    come_back(&f);
    fake_reply(&f, "{'error': 'io.berth.NoSuchRun', 'parameters': {'name': '" FAKE_RUN "'}}");
    end(&f, 69, "berth: nightly: run " FAKE_RUN " is not known to this berthd; its result may be in `berth history " FAKE_RUN "`\n");
}

/* Without an id of its run, the client cannot wait for it. */
static void has_no_id(void) {
    struct fake f;

    begin(&f);
    fake_hang_up(&f);
    end(&f, 69, "closed the connection");
    begin(&f);
    fake_reply(&f, "{'parameters': {}}");
    end(&f, 70, "does not speak Varlink");
}

static CU_TestInfo tests[] = {
    {"killed while it runs", killed_while_it_runs},
    {"killed while it is queued behind another", killed_while_it_is_behind},
    {"its job is gone before its turn", job_is_gone},
    {"it ends while berthd is away", ends_while_berthd_is_away},
    {"it was over before", was_over_before},
    {"to a full disk", to_a_full_disk},
    CU_TEST_INFO_NULL,
};
static CU_TestInfo fake_tests[] = {
    {"asks again", asks_again},
    {"berthd does not know the run", is_unknown},
    {"a run without an id", has_no_id},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "start-wait", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
            {.pName = "start-wait, fake berthd", .pTests = fake_tests});
