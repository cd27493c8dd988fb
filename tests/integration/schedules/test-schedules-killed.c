/* SPDX-License-Identifier: MIT */

/* berthd is killed around a due time: the due time gets one run. tests/faults/test-due-deaths.c kills berthd
 * before each effect. */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define HOURLY "schedule = {\"0 * * * *\"} zone = \"UTC\" "

/* Some more than the effects of an attempt's end. */
#define END_EFFECTS 20

static struct host *ant;

static void start_host(const char *time, const char *jobs) {
    ant = host_add_alone("ant", "%s" MARKER, jobs);
    host_clock_give(ant);
    host_clock_set(ant, time, -30000); /* berthd has started before the first due time, however slowly */
    host_start(ant);
    host_clock_set(ant, time, 0);
}

static const char *hourly(const char *command, const char *more) {
    static char text[768];

    snprintf(text, sizeof(text), "job \"h\" { %s " HOURLY "%s}\n", command, more);
    return text;
}

static size_t count_starts(const char *id) {
    struct witness w = {};
    size_t n;

    witness_read(&w, cluster.witness);
    n = witness_count(&w, id);
    witness_done(&w);
    return n;
}

static void await_starts(size_t n) {
    usec_t end = clock_monotonic() + HOST_PATIENCE;

    while (count_starts("h") < n && clock_monotonic() < end)
        child_turn(clock_boottime() + USEC_PER_MSEC);
    TEST_INT(count_starts("h"), n);
}

/* S5: a due time gets one run, at whatever instant around it berthd is killed. */
static void killed_at_any_instant(void) {
    char time[64];

    /* A command may still be ending when the next time is due. */
    start_host("2027-05-01T00:30:00Z", hourly(witness_command("--id h"), "overlap = \"allow\" "));
    for (int hour = 1; hour <= 20; hour++) {
        snprintf(time, sizeof(time), "2027-05-01T%02d:00:00Z", hour);
        host_clock_set(ant, time, -5);
        (void) usleep((useconds_t) (hour * 1000));
        host_kill(ant);
        host_start(ant);
        await_starts((size_t) hour);
        host_await_marker(ant);
        TEST_INT(count_starts("h"), hour);
        TEST_INT(host_count(ant, "missed", " "), 0);
    }
}

/* berthd has noted a due time, but not on the disk yet, when it records the end of an earlier run. */
static void killed_before_the_note_is_written(void) {
    start_host("2027-05-01T11:59:59Z", hourly(witness_at_gate("h", 0), "overlap = \"queue\" "));
    host_await(ant, "started", "job=h due=2027-05-01T12:00:00+00:00");
    host_clock_stall_disk(ant, true);
    host_clock_set(ant, "2027-05-01T13:00:00Z", 0);
    host_await_marker(ant); /* berthd has seen the new time */
    test_gate_open(&cluster.gate);
    host_await(ant, "released", "job=h due=2027-05-01T12:00:00+00:00");
    host_await_marker(ant); /* the end is recorded */
    host_kill(ant);
    host_clock_stall_disk(ant, false);
    host_start(ant);
    await_starts(2);
    host_await_marker(ant);
    TEST_INT(count_starts("h"), 2);
    TEST_INT(host_count(ant, "missed", " "), 0);
}

/* Without a state directory, only the record of its run shows that a due time has begun. */
static void killed_without_a_state_directory(void) {
    char jobs[1024];

    snprintf(jobs, sizeof(jobs), "state-directory = \"/proc/none/at/all\"\n%s",
             hourly(witness_at_gate("h", 0), "overlap = \"allow\" "));
    start_host("2027-05-01T12:00:00Z", jobs);
    host_await(ant, "started", "job=h due=2027-05-01T12:00:00+00:00");
    host_kill(ant);
    host_start(ant); /* recovers the running command */
    host_await_marker(ant);
    host_kill(ant);
    test_gate_open(&cluster.gate);
    await_starts(1);
    host_start(ant); /* finds the report of the guard */
    host_await_marker(ant);
    TEST_INT(host_count(ant, "exited", "job=h"), 1);
    host_kill(ant);
    host_start(ant); /* the record of the job has the end */
    host_await_marker(ant);
    TEST_INT(count_starts("h"), 1);
    TEST_INT(host_count(ant, "missed", " "), 0);
}

/* The command ends, and berthd is killed before its n-th effect from then on. */
static void end_and_kill(unsigned n) {
    json_t *runs = berth_json(ant, "runs");
    struct pollfd p = {.fd = pidfd_open((pid_t) berth_number_at(runs, "runs.0.pid"), 0), .events = POLLIN};
    char byte;

    json_decref(runs);
    CU_ASSERT_FATAL(p.fd >= 0);
    host_clock_end_berthd(ant, n);
    test_gate_open(&cluster.gate);
    TEST_INT(poll(&p, 1, (int) (HOST_PATIENCE / USEC_PER_MSEC)), 1);
    close_fd(p.fd);
    TEST_INT(read(cluster.gate.fd, &byte, 1), 1); /* closes the gate */
    while (!ant->berthd->ended)
        (void) berth_count_runs(ant); /* its reply is an effect, too */
    host_clock_end_berthd(ant, 0);
}

/* berthd is killed before each effect of an attempt's end in turn, so the report of the end comes again. The attempt has one
 * next attempt. */
static void killed_as_an_attempt_fails(void) {
    start_host("2027-05-01T12:30:00Z",
               hourly(witness_at_gate("h", 3), "retry = 1 retry-delay = \"1h\" retry-delay-max = \"1h\" "));
    for (unsigned n = 1; n <= END_EFFECTS; n++) {
        TEST_INT(berth(ant, "start h"), 0);
        host_await(ant, "started", "job=h");
        end_and_kill(n);
        host_mark(ant);
        host_start(ant);
        host_await_marker(ant);
        TEST_INT(berth_count_runs(ant), 1);
        TEST_INT(berth(ant, "stop h"), 0);
        host_await(ant, "gave-up", "job=h reason=stopped");
    }
}

static CU_TestInfo tests[] = {
    {"killed-at-any-instant", killed_at_any_instant},
    {"killed-before-the-note-is-written", killed_before_the_note_is_written},
    {"killed-without-a-state-directory", killed_without_a_state_directory},
    {"killed-as-an-attempt-fails", killed_as_an_attempt_fails},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "schedules-killed", .pSetUpFunc = cluster_up_without_redis,
             .pTearDownFunc = cluster_down, .pTests = tests});
