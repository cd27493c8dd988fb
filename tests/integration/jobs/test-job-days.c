/* SPDX-License-Identifier: MIT */

/* Hours and days in the life of a job, on clocks that the test moves: restarts, alerts, and silence. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json/format.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/host-reboot.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define SECOND ((int64_t) USEC_PER_SEC)
#define HOUR (3600 * SECOND)

static struct host *ant;
static int64_t offset; /* of the wall clock */

#define HOST(...)                                                                \
    do {                                                                         \
        ant = host_add_alone("ant", HOST_LASTING MARKER __VA_ARGS__);            \
        host_clock_give(ant);                                                    \
        host_clock_step(ant, offset = 0);                                        \
        host_start(ant);                                                         \
    } while (0)

static void set_forward(int64_t usec) {
    host_clock_step(ant, offset += usec);
}

/* --- restart --- */

/* S23: a command that exits at once is begun 12 times in an hour at most, because the delays grow. */
static void restarts_in_an_hour(void) {
    HOST("job \"job\" { " QUICK "restart = \"always\" }\n", cluster.folder);
    host_await(ant, "exited", "job=job");
    for (int second = 0; second < 3600; second += 15) {
        host_clock_jump(ant, 15 * USEC_PER_SEC);
        host_await_marker(ant);
    }
    CU_ASSERT(host_count(ant, "started", "job=job") <= 12);
    CU_ASSERT(host_count(ant, "started", "job=job") >= 7);
    TEST_INT(berth(ant, "stop job"), 0);
}

/* S23: after a run of 20 minutes the delay is the first one again. */
static void restarts_after_a_good_stretch(void) {
    HOST("job \"job\" { %s restart = \"always\" }\n", cluster.folder, witness_at_gate("w", 0));
    host_await(ant, "started", "job=job");
    host_clock_jump(ant, 20 * 60 * USEC_PER_SEC);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=job");
    host_clock_jump(ant, 14 * USEC_PER_SEC); /* half of it is always waited for */
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=job"), 1);
    host_clock_jump(ant, 16 * USEC_PER_SEC);
    host_await_count(ant, 2, "started", "job=job");
    TEST_INT(berth(ant, "stop job"), 0);
}

/* --- alerts --- */

/* S25: bad many times in a row, evenly over three days, then good. */
static void many_bad_runs(void) {
    const char *text = getenv("BERTH_TEST_BAD_RUNS");
    unsigned a_day = text ? (unsigned) strtoul(text, NULL, 10) / 3 : 12, n = 3 * a_day + 1;
    char path[128];
    FILE *good;

    HOST("job \"alert\" { " QUICK "}\njob \"clear\" { " QUICK "}\njob \"each\" { " QUICK "}\n"
         "job \"day\" { " QUICK "}\n"
         "job \"plain\" { command = {\"/bin/sh\", \"-c\", 'test -e %s/good'} on-broken = {\"alert\"} "
         "on-recovered = {\"clear\"} on-failure = {\"each\"} }\n"
         "job \"reminded\" { command = {\"/bin/sh\", \"-c\", 'test -e %s/good'} on-broken = {\"day\"} "
         "remind-after = \"1d\" }\n",
         cluster.folder, cluster.folder, cluster.folder);
    for (unsigned i = 0; i < n; i++) {
        TEST_INT(berth(ant, "start plain reminded --wait"), 1);
        if (i + 1 < n)
            set_forward(24 * HOUR / a_day);
    }
    snprintf(path, sizeof(path), "%s/good", cluster.folder);
    good = fopen(path, "w");
    TEST_FATAL(good != NULL, "a file of the test");
    if (good)
        (void) fclose(good);
    TEST_INT(berth(ant, "start plain reminded --wait"), 0);
    host_await_count(ant, n, "exited", "job=each of_job=plain");
    host_await(ant, "exited", "job=clear of_job=plain");
    host_await_count(ant, 4, "started", "job=day");
    TEST_INT(host_count(ant, "started", "job=each"), n);
    TEST_INT(host_count(ant, "started", "job=alert"), 1);
    TEST_INT(host_count(ant, "started", "job=clear"), 1);
    TEST_INT(host_count(ant, "started", "job=day"), 4);
    TEST_INT(host_count(ant, "recovered", "job=reminded"), 1);
    TEST_INT(unlink(path), 0);
}

/* --- max-silence --- */

#define SILENT                                                                                               \
    "job \"hook\" { command = {\"/bin/sh\", \"-c\", 'test $BERTH_OF_EVENT = overdue'} output = \"null\" }\n" \
    "job \"silent\" { " QUICK "max-silence = \"26h\" on-broken = {\"hook\"} %s }\n"

/* Awaits the event and checks how long it took. */
static void expect_overdue(usec_t begin, unsigned n, usec_t from, usec_t to) {
    usec_t took;

    host_await_count(ant, n, "overdue", "job=silent");
    took = clock_monotonic() - begin;
    if (took < from || took > to)
        printf("overdue after %llu ms\n", (unsigned long long) (took / USEC_PER_MSEC));
    CU_ASSERT(took >= from && took <= to + 5 * USEC_PER_SEC); /* a busy machine */
}

/* S27: the schedule was removed by mistake. Logged at 26 hours, and again after each further 26. */
static void silence(void) {
    usec_t begin;

    HOST(SILENT, cluster.folder, "schedule = {\"@daily\"}");
    TEST_INT(berth(ant, "start silent --wait"), 0);
    begin = clock_monotonic();
    host_set_config(ant, HOST_LASTING MARKER SILENT, cluster.folder, "");
    TEST_INT(berth(ant, "reload"), 0);
    set_forward(26 * HOUR - 3 * SECOND);
    host_await_marker(ant);
    if (clock_monotonic() - begin < 2 * USEC_PER_SEC)
        TEST_INT(host_count(ant, "overdue", "job=silent"), 0);
    expect_overdue(begin, 1, 2 * USEC_PER_SEC, 4 * USEC_PER_SEC);
    host_await(ant, "broken", "job=silent");
    host_await(ant, "exited", "job=hook of_job=silent result=success");
    begin = clock_monotonic();
    set_forward(26 * HOUR - 2 * SECOND);
    expect_overdue(begin, 2, USEC_PER_SEC, 3 * USEC_PER_SEC);
    TEST_INT(host_count(ant, "broken", "job=silent"), 1);
    set_forward(27 * HOUR); /* a clock that is set forward is noticed at once */
    host_await_count(ant, 3, "overdue", "job=silent");
    set_forward(-1000 * HOUR); /* set back, it makes nothing happen and nothing wait longer */
    host_await_marker(ant);
    TEST_INT(host_count(ant, "overdue", "job=silent"), 3);
    set_forward(26 * HOUR + SECOND);
    host_await_count(ant, 4, "overdue", "job=silent");
}

/* Shuts the machine down in order, so that berthd has time to write its records. */
static void reboot_in_order(void) {
    host_stop(ant);
    place_remove(ant->runtime);
    CU_ASSERT(mkdir(ant->runtime, 0755) == 0);
}

/* Silence counts over restarts and reboots, also for a job that never ran. */
static void silence_over_a_reboot(void) {
    HOST(SILENT, cluster.folder, "");
    set_forward(10 * HOUR);
    host_stop(ant); /* its records are on the disk then */
    host_start(ant);
    set_forward(10 * HOUR);
    host_await_marker(ant);
    TEST_INT(host_count(ant, "overdue", "job=silent"), 0);
    reboot_in_order();
    host_start(ant);
    host_await_marker(ant);
    TEST_INT(host_count(ant, "overdue", "job=silent"), 0);
    set_forward(6 * HOUR);
    host_await(ant, "overdue", "job=silent");
    host_await(ant, "exited", "job=hook of_job=silent result=success");
    reboot_in_order();
    set_forward(25 * HOUR);
    host_start(ant);
    host_await_marker(ant);
    TEST_INT(host_count(ant, "overdue", "job=silent"), 0);
    set_forward(HOUR);
    host_await(ant, "overdue", "job=silent");
    TEST_INT(host_count(ant, "broken", "job=silent"), 0); /* it is broken since before */
}

/* --- every --- */

static void check_next_in(long long msec) {
    CU_ASSERT(msec > 119 * 60 * 1000 && msec <= 120 * 60 * 1000);
}

static void check_next(void) {
    json_t *next = berth_json(ant, "next job --count 1"), *jobs = berth_json(ant, "jobs");
    long long now = ((long long) clock_realtime() + offset) / 1000;

    check_next_in(berth_number_at(next, "next.0.in_ms"));
    check_next_in(format_get_time(berth_at(jobs, "jobs.name=job"), "next") - now);
    json_decref(next);
    json_decref(jobs);
}

/* A clock that is set moves neither the next begin nor what `berth next` shows. */
static void next_after_a_set_clock(void) {
    HOST("job \"job\" { " QUICK "every = \"2h\" }\n", cluster.folder);
    host_await(ant, "exited", "job=job");
    check_next();
    set_forward(HOUR);
    check_next();
    set_forward(24 * HOUR);
    check_next();
    set_forward(-1000 * HOUR);
    check_next();
    host_clock_jump(ant, 7200 * USEC_PER_SEC);
    host_await_count(ant, 2, "exited", "job=job");
    check_next();
}

static CU_TestInfo tests[] = {
    {"next after a set clock", next_after_a_set_clock},
    {"restarts in an hour", restarts_in_an_hour},
    {"restarts after a good stretch", restarts_after_a_good_stretch},
    {"many bad runs", many_bad_runs},
    {"silence", silence},
    {"silence over a reboot", silence_over_a_reboot},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "job-days", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});
