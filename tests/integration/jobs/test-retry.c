/* SPDX-License-Identifier: MIT */

/* Attempts as users see them: retries and their end, restarts, and both over a crash of berthd. */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static struct host *ant;

static void up(void) {
    cluster_up_without_redis();
    ant = host_add_alone(
        "ant",
        "%spool \"slot\" { limit = 1 scope = \"host\" }\n"
        "job \"bad\" { command = {\"/bin/sh\", \"-c\", \"exit 3\"} pools = {\"slot\"} retry = 3 retry-delay "
        "= \"40ms\" retry-delay-max = \"1s\" }\n"
        "job \"slow\" { command = {\"/bin/sh\", \"-c\", \"exit 4\"} retry = 5 retry-delay = \"1h\" "
        "retry-delay-max = \"1h\" }\n"
        "job \"soon\" { command = {\"/bin/sh\", \"-c\", \"exit 5\"} retry = 1 retry-delay = \"1h\" "
        "retry-delay-max = \"1h\" }\n"
        "job \"brief\" { command = {\"/bin/sh\", \"-c\", \"exit 6\"} retry = 9 retry-within = \"1s\" "
        "retry-delay = \"1h\" retry-delay-max = \"1h\" }\n"
        "job \"other\" { command = {\"/bin/sh\", \"-c\", \"exit 7\"} retry = 9 retry-on = {\"failure\", "
        "\"!exit:7\"} retry-delay = \"10ms\" }\n"
        "job \"fine\" { command = {\"/bin/sh\", \"-c\", \"exit 24\"} retry = 9 success-on = {\"0\", \"24\"} "
        "}\n"
        "job \"none\" { command = {\"/bin/true\"} success-on = {\"1\"} }\n"
        "job \"third\" { command = {\"/bin/sh\", \"-c\", 'test $BERTH_ATTEMPT = 3'} retry = 9 retry-delay = "
        "\"10ms\" }\n"
        "job \"long\" { command = {\"/bin/sleep\", \"1000\"} retry = 2 retry-delay = \"10ms\" }\n"
        "job \"daemon\" { command = {\"/bin/sh\", \"-c\", \"exec sleep 1000\"} }\n",
        "");
    host_clock_give(ant);
    host_start(ant);
}

/* Makes runs due that wait for their next attempt. */
static void pass_delay(void) {
    host_clock_jump(ant, 3600 * USEC_PER_SEC);
}

static size_t count_runs(void) {
    json_t *runs = berth_json(ant, "runs");
    size_t n = json_array_size(berth_at(runs, "runs"));

    json_decref(runs);
    return n;
}

/* Waits until the job has the state. */
static void await_state(const char *job, const char *state) {
    usec_t until = clock_monotonic() + HOST_PATIENCE;
    bool is_there = false;
    char path[64];

    snprintf(path, sizeof(path), "jobs.name=%s.state", job);
    while (!is_there && clock_monotonic() < until) {
        json_t *jobs = berth_json(ant, "jobs");

        is_there = strcmp(json_string_value(berth_at(jobs, path)), state) == 0;
        json_decref(jobs);
    }
    CU_ASSERT(is_there);
}

/* ---- retries ---- */

static void note_delay(const char *line, void *userdata) {
    usec_t *delays = userdata;
    uint64_t attempt = event_get_u64(line, "attempt");

    if (attempt >= 2 && attempt <= 4)
        delays[attempt - 2] = event_get_u64(line, "delay_ms");
}

/* A job that always fails has 1 + retry runs, each with its own claim, and delays that grow. */
static void fails_always(void) {
    usec_t delays[3] = {};

    TEST_INT(berth(ant, "start bad --wait"), 3);
    host_await(ant, "gave-up", "job=bad attempt=4 reason=attempts");
    TEST_INT(host_count(ant, "started", "job=bad"), 4);
    TEST_INT(host_count(ant, "granted", "job=bad"), 4);
    host_await_count(ant, 4, "released", "job=bad");
    TEST_INT(host_count(ant, "retry", "job=bad attempts=4 result=failure"), 3);
    TEST_INT(host_count(ant, "gave-up", "job=bad"), 1);
    host_each(ant, "retry", note_delay, delays);
    CU_ASSERT(delays[0] >= 20 && delays[0] <= 40);
    CU_ASSERT(delays[1] >= 40 && delays[1] <= 80);
    CU_ASSERT(delays[2] >= 80 && delays[2] <= 160);
}

/* A job holds nothing during the delay: another run gets the permit. */
static void holds_nothing(void) {
    json_t *runs;

    TEST_INT(berth(ant, "start slow"), 0);
    host_await(ant, "retry", "job=slow attempt=2");
    runs = berth_json(ant, "runs");
    AT_STRING(runs, "runs.name=slow.state", "retrying");
    AT_STRING(runs, "runs.name=slow.trigger", "retry");
    AT_INT(runs, "runs.name=slow.attempt", 2);
    AT_INT(runs, "runs.name=slow.attempts", 6);
    AT_NULL(runs, "runs.name=slow.token");
    CU_ASSERT(strncmp(json_string_value(berth_at(runs, "runs.name=slow.blocked_by")), "retry in ", 9) == 0);
    json_decref(runs);
    TEST_INT(berth(ant, "runs"), 0);
    CU_ASSERT(strstr(berth_out, "retry") != NULL);
    CU_ASSERT(strstr(berth_out, "2/6") != NULL);
    runs = berth_json(ant, "jobs");
    AT_STRING(runs, "jobs.name=slow.state", "retrying");
    json_decref(runs);
    TEST_INT(berth(ant, "run -p slot -- true"), 0);
    TEST_INT(berth(ant, "stop slow"), 0);
    host_await(ant, "gave-up", "job=slow attempt=1 reason=stopped");
    TEST_INT(host_count(ant, "withdrawn", "job=slow"), 0);
}

static pid_t pid_of(const char *job) {
    json_t *runs = berth_json(ant, "runs");
    char path[64];
    pid_t pid;

    snprintf(path, sizeof(path), "runs.name=%s.pid", job);
    pid = (pid_t) json_integer_value(berth_at(runs, path));
    json_decref(runs);
    CU_ASSERT_FATAL(pid > 0);
    return pid;
}

/* Kills a process and waits until it is a zombie. */
static void end_and_await(pid_t pid) {
    struct pollfd fd = {.fd = (int) syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    CU_ASSERT_FATAL(fd.fd >= 0);
    TEST_INT(kill(pid, SIGKILL), 0);
    TEST_INT(poll(&fd, 1, (int) (HOST_PATIENCE / USEC_PER_MSEC)), 1);
    (void) close(fd.fd);
}

/* Ends the command of a run while its guard is stopped, and calls `berth stop`. The guard receives the stop
 * after the command has ended. */
static void stop_as_it_ends(const char *job) {
    pid_t pid, guard;

    host_await(ant, "started", "job=%s", job);
    pid = pid_of(job);
    guard = child_parent(pid);
    TEST_INT(kill(guard, SIGSTOP), 0);
    end_and_await(pid);
    TEST_INT(berth(ant, "stop %s", job), 0);
    TEST_INT(kill(guard, SIGCONT), 0);
    host_await(ant, "exited", "job=%s result=failure signal=9", job);
}

static void stopped_as_it_fails(void) {
    TEST_INT(berth(ant, "start long"), 0);
    stop_as_it_ends("long");
    host_await(ant, "gave-up", "job=long attempt=1 reason=stopped");
    TEST_INT(host_count(ant, "retry", "job=long"), 0);
}

static void trigger_supersedes(void) {
    struct child *c = berth_start(ant, "start slow --wait");

    host_await(ant, "retry", "job=slow attempt=2");
    TEST_INT(berth(ant, "start slow"), 0);
    host_await(ant, "gave-up", "job=slow attempt=1 reason=superseded");
    TEST_INT(berth_end(c), 4); /* the status of its last attempt */
    host_await_count(ant, 2, "retry", "job=slow attempt=2");
    TEST_INT(host_count(ant, "started", "job=slow"), 2);
    TEST_INT(berth(ant, "stop slow"), 0);
}

static void reasons(void) {
    TEST_INT(berth(ant, "start brief --wait"), 6);
    host_await(ant, "gave-up", "job=brief attempt=1 reason=within");
    TEST_INT(berth(ant, "start other --wait"), 7);
    host_await(ant, "gave-up", "job=other attempt=1 reason=not-retried");
    TEST_INT(berth(ant, "start third --wait"), 0);
    TEST_INT(host_count(ant, "started", "job=third"), 3);
    TEST_INT(host_count(ant, "gave-up", "job=third"), 0);
}

static void success_on(void) {
    TEST_INT(berth(ant, "start fine --wait"), 24);
    host_await(ant, "exited", "job=fine result=success exit_code=24");
    TEST_INT(host_count(ant, "retry", "job=fine"), 0);
    TEST_INT(berth(ant, "start none --wait"), 125);
    host_await(ant, "exited", "job=none result=failure exit_code=0");
}

/* A drain leaves a job that is retrying alone, and starts no attempt. */
static void drained(void) {
    TEST_INT(berth(ant, "start soon"), 0);
    host_await(ant, "retry", "job=soon attempt=2");
    TEST_INT(berth(ant, "drain --wait"), 0);
    pass_delay();
    await_state("soon", "retrying");
    TEST_INT(berth(ant, "explain soon"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, ", retrying: drained\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\n  next     berth undrain: until then this host begins nothing\n"));
    TEST_INT(berth(ant, "undrain"), 0);
    host_await(ant, "gave-up", "job=soon attempt=2 reason=attempts");
}

/* The next attempt keeps its number when berthd was killed before it. */
static void killed_while_it_retries(void) {
    char run[64];

    TEST_INT(berth(ant, "start soon"), 0);
    snprintf(run, sizeof(run), "%s", event_get(host_await(ant, "retry", "job=soon attempt=2"), "first_run"));
    host_kill(ant);
    host_start(ant);
    pass_delay();
    host_await(ant, "started", "job=soon trigger=retry attempt=2 first_run=%s", run);
    host_await(ant, "gave-up", "job=soon attempt=2 reason=attempts first_run=%s", run);
    TEST_INT(host_count(ant, "started", "job=soon"), 1); /* of this berthd */
}

/* Without a state directory, the runtime directory has what berthd needs within a boot. */
static void killed_without_a_state_directory(void) {
    host_stop(ant);
    host_set_config(ant, "state-directory = \"/proc/none/at/all\"\n"
                         "job \"soon\" { command = {\"/bin/false\"} retry = 1 retry-delay = \"1h\" retry-delay-max = \"1h\" }\n"
                         "job \"patient\" { command = {\"/bin/false\"} broken-after = 2 on-broken = {\"hook\"} }\n"
                         "job \"hook\" { command = {\"/bin/true\"} }\n");
    host_start(ant);
    TEST_INT(berth(ant, "start soon"), 0);
    host_await(ant, "retry", "job=soon attempt=2");
    TEST_INT(berth(ant, "start patient --wait"), 1);
    host_kill(ant);
    host_start(ant);
    TEST_INT(berth(ant, "start patient --wait"), 1);
    host_await(ant, "broken", "job=patient");
    host_await(ant, "exited", "job=hook");
    pass_delay();
    host_await(ant, "gave-up", "job=soon attempt=2 reason=attempts");
}

static void stopped_and_started_while_it_retries(void) {
    TEST_INT(berth(ant, "start slow"), 0);
    host_await(ant, "retry", "job=slow attempt=2");
    host_stop(ant);
    host_start(ant);
    TEST_INT(host_count(ant, "started", "job=slow"), 0);
    TEST_INT(berth(ant, "stop slow"), 0);
    host_await(ant, "gave-up", "job=slow attempt=1 reason=stopped");
}

/* An attempt that never got its permits does not count. */
static void withdrawn_while_it_waits(void) {
    struct child *c;

    host_set_config(ant, "pool \"slot\" { limit = 1 scope = \"host\" }\n"
                         "job \"job\" { command = {\"/bin/false\"} pools = {\"slot\"} retry = 1 retry-delay = \"1h\" retry-delay-max = \"1h\" }\n");
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "retry", "job=job attempt=2");
    c = berth_at_gate(ant, "-p slot", "holder", "started");
    pass_delay();
    host_await(ant, "queued", "job=job attempt=2");
    TEST_INT(berth(ant, "stop job"), 0);
    host_await(ant, "gave-up", "job=job attempt=1 attempts=2 reason=stopped");
    TEST_INT(berth(ant, "start job"), 0);
    TEST_INT(berth(ant, "stop job"), 0);
    host_await_count(ant, 2, "gave-up", "job=job attempts=2 reason=stopped");
    TEST_INT(host_count(ant, "gave-up", "job=job attempt=1"), 1);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
}

static void undefined_while_it_retries(void) {
    TEST_INT(berth(ant, "start slow"), 0);
    host_await(ant, "retry", "job=slow attempt=2");
    host_set_config(ant, "pool \"slot\" { limit = 1 scope = \"host\" }\n");
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "gave-up", "job=slow attempt=1 reason=stopped");
}

/* ---- restart ---- */

static void set_restart(const char *restart, const char *command) {
    host_set_config(
        ant,
        "pool \"slot\" { limit = 1 scope = \"host\" }\njob \"daemon\" { command = {\"/bin/sh\", \"-c\", "
        "\"%s\"} restart = \"%s\" retry-delay = \"20ms\" retry-delay-max = \"100ms\" }\n",
        command, restart);
}

static void restarts_always(void) {
    set_restart("always", "exit 0");
    TEST_INT(berth(ant, "reload"), 0);
    host_await_count(ant, 4, "exited", "job=daemon result=success");
    TEST_INT(berth(ant, "stop daemon"), 0);
    await_state("daemon", "stopped");
    TEST_INT(count_runs(), 0); /* no run is retrying either */
    host_kill(ant);
    host_start(ant);
    await_state("daemon", "stopped");
    TEST_INT(count_runs(), 0);
    host_stop(ant);
    host_start(ant);
    host_await(ant, "started", "job=daemon trigger=restart"); /* the service started */
}

static void stopped_as_it_ends(void) {
    set_restart("always", "exec sleep 1000");
    TEST_INT(berth(ant, "reload"), 0);
    stop_as_it_ends("daemon");
    await_state("daemon", "stopped");
    TEST_INT(count_runs(), 0);
}

static void restarts_on_failure(void) {
    set_restart("on-failure", "exit 0");
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "released", "job=daemon");
    await_state("daemon", "idle");
    TEST_INT(count_runs(), 0);
    set_restart("on-failure", "exit 1");
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(ant, "start daemon"), 0);
    host_await_count(ant, 3, "exited", "job=daemon result=failure");
}

/* The death of berthd starts no second run. */
static void restart_survives_berthd(void) {
    set_restart("always", "exec sleep 1000");
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "started", "job=daemon");
    host_kill(ant);
    host_start(ant);
    await_state("daemon", "running");
    TEST_INT(count_runs(), 1);
    TEST_INT(host_count(ant, "granted", "job=daemon"), 0);
    TEST_INT(berth(ant, "stop daemon"), 0);
    host_await(ant, "exited", "job=daemon result=stopped");
}

static CU_TestInfo retries[] = {
    {"fails always", fails_always},
    {"holds nothing", holds_nothing},
    {"stopped as it fails", stopped_as_it_fails},
    {"a trigger supersedes", trigger_supersedes},
    {"reasons", reasons},
    {"success-on", success_on},
    {"drained", drained},
    {"killed while it retries", killed_while_it_retries},
    {"killed without a state directory", killed_without_a_state_directory},
    {"stopped and started while it retries", stopped_and_started_while_it_retries},
    {"withdrawn while it waits", withdrawn_while_it_waits},
    {"undefined while it retries", undefined_while_it_retries},
    CU_TEST_INFO_NULL,
};
static CU_TestInfo restarts[] = {
    {"always", restarts_always},
    {"stopped as it ends", stopped_as_it_ends},
    {"on-failure", restarts_on_failure},
    {"survives berthd", restart_survives_berthd},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "retry", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = retries},
            {.pName = "restart", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = restarts});
