/* SPDX-License-Identifier: MIT */

/* Zones whose rules change, and missing zones. The test sets the clock and the zones of the host. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"

#define HOUR 3600
#define IN_ISLE "zone = \"Test-Isle\" "

static struct host *ant;

static void make_host(const char *time, const char *config) {
    ant = host_add_alone("ant", "%s" MARKER, config);
    host_clock_give(ant);
    host_clock_set(ant, time, 0);
}

#define DAILY "job \"daily\" { " QUICK "schedule = {\"30 2 * * *\"} " IN_ISLE "}\n"
#define HOURLY "job \"hourly\" { " QUICK "schedule = {\"30 * * * *\"} " IN_ISLE "}\n"

static void run_at_half_past_two(void) {
    host_clock_write_zone(ant, "Test-Isle", HOUR);
    host_start(ant);
    host_await_marker(ant);
    host_clock_set(ant, "2027-05-01T01:29:59Z", 950);
    host_await(ant, "exited", "job=daily due=2027-05-01T02:30:00+01:00");
    host_await(ant, "exited", "job=hourly due=2027-05-01T02:30:00+01:00"); /* or else the next run is skipped */
    host_clock_write_zone(ant, "Test-Isle", 0); /* the clock shows 01:30 again */
}

/* Checks that the daily job does not run again when half past two comes again, and runs on 2 May. */
static void expect_once_a_date(void) {
    host_clock_set(ant, "2027-05-01T02:29:59Z", 950);
    host_await(ant, "exited", "job=hourly due=2027-05-01T02:30:00+00:00");
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=daily due=2027-05-01T02:30:00+00:00"), 0);
    host_clock_set(ant, "2027-05-02T02:29:59Z", 950);
    host_await(ant, "exited", "job=daily due=2027-05-02T02:30:00+00:00");
    TEST_INT(host_count(ant, "missed", "job=daily"), 0);
}

/* S11 */
static void set_back_reload(void) {
    make_host("2027-05-01T01:10:00Z", DAILY HOURLY);
    run_at_half_past_two();
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "zone-changed", "reason=Test-Isle");
    expect_once_a_date();
}

/* S11: berthd notices the change within an hour. */
static void set_back_hourly(void) {
    make_host("2027-05-01T01:10:00Z", DAILY HOURLY);
    run_at_half_past_two();
    host_clock_jump(ant, HOUR * USEC_PER_SEC);
    host_await(ant, "zone-changed", "reason=Test-Isle");
    expect_once_a_date();
}

/* The rules change while berthd is away, and while the machine is off. */
static void set_back_away(void) {
    char path[160];

    make_host("2027-05-01T01:10:00Z", "state-directory = \"/tmp/none\"\n" DAILY HOURLY);
    host_set_config(ant, "state-directory = \"%s/state\"\n" DAILY HOURLY MARKER, cluster.folder);
    run_at_half_past_two();
    host_kill(ant);
    host_start(ant);
    expect_once_a_date();
    host_clock_set(ant, "2027-05-03T02:29:59Z", 950);
    host_await(ant, "exited", "job=daily due=2027-05-03T02:30:00+00:00");
    host_stop(ant);
    (void) snprintf(path, sizeof(path), "%s/jobs/daily", ant->runtime);
    TEST_INT(unlink(path), 0);
    host_clock_write_zone(ant, "Test-Isle", -HOUR);
    host_start(ant);
    host_clock_set(ant, "2027-05-03T03:29:59Z", 950);
    host_await(ant, "exited", "job=hourly due=2027-05-03T02:30:00-01:00");
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=daily"), 0);
}

/* The new rules make nothing due in the past. */
static void set_forward(void) {
    make_host("2027-05-01T02:00:00Z", DAILY HOURLY);
    host_clock_write_zone(ant, "Test-Isle", 0);
    host_start(ant);
    host_await_marker(ant);
    host_clock_write_zone(ant, "Test-Isle", HOUR); /* the clock shows 03:00: there is no half past two */
    TEST_INT(berth(ant, "reload"), 0);
    host_clock_set(ant, "2027-05-01T02:29:59Z", 950);
    host_await(ant, "exited", "job=hourly due=2027-05-01T03:30:00+01:00");
    host_clock_set(ant, "2027-05-02T01:29:59Z", 950);
    host_await(ant, "exited", "job=daily due=2027-05-02T02:30:00+01:00");
    TEST_INT(host_count(ant, "started", "job=daily"), 1);
}

/* berthd starts without the zone of a job. Other jobs run, and the job runs once its zone is there. */
static void not_there(void) {
    json_t *jobs;

    make_host("2027-05-01T02:00:00Z",
              DAILY "job \"utc\" { " QUICK "schedule = {\"5 2 * * *\"} zone = \"UTC\" }\n");
    host_clock_write_zone(ant, "Other", 0);
    host_start(ant);
    host_await(ant, "zone-missing", "job=daily reason=Test-Isle");
    TEST_INT(host_count(ant, "zone-missing", " "), 1);
    host_clock_set(ant, "2027-05-01T02:04:59Z", 950);
    host_await(ant, "exited", "job=utc due=2027-05-01T02:05:00+00:00");
    jobs = berth_json(ant, "jobs");
    AT_STRING(jobs, "jobs.name=daily.zone", "Test-Isle");
    AT_STRING(jobs, "jobs.name=daily.zone_error",
              "is not in /usr/share/zoneinfo; install tzdata, or correct the name");
    AT_NULL(jobs, "jobs.name=daily.next");
    AT_NULL(jobs, "jobs.name=utc.zone_error");
    AT_STRING(jobs, "jobs.name=daily.schedule.0", "30 2 * * *");
    json_decref(jobs);
    TEST_INT(berth(ant, "start daily --wait"), 0);
    TEST_INT(berth(ant, "reload"), 78); /* a reload refuses the zone: an operator reads the error */
    host_clock_write_zone(ant, "Test-Isle", 0);
    host_clock_jump(ant, HOUR * USEC_PER_SEC);
    host_await(ant, "zone-changed", "reason=Test-Isle");
    host_clock_set(ant, "2027-05-01T02:29:59Z", 950);
    host_await(ant, "exited", "job=daily due=2027-05-01T02:30:00+00:00");
    host_clock_remove_zone(ant, "Test-Isle"); /* berthd keeps the rules that it has read */
    host_clock_jump(ant, HOUR * USEC_PER_SEC);
    host_clock_set(ant, "2027-05-02T02:29:59Z", 950);
    host_await(ant, "exited", "job=daily due=2027-05-02T02:30:00+00:00");
}

/* S4 with the real programs: the due times that `berth next` shows begin, and no others. */
static void begin_as_shown(const char *time) {
    json_t *shown, *item;
    size_t i;

    make_host(time, "job \"j\" { " QUICK "splay = \"9m\" zone = \"Europe/Berlin\""
                    " schedule = {\"*/10 * * * *\", \"35 2 * * *\"} }\n");
    host_start(ant);
    host_await_marker(ant);
    shown = berth_json(ant, "next --count 20");
    json_array_foreach (json_object_get(shown, "next"), i, item) {
        host_clock_set(ant, json_string_value(json_object_get(item, "begin")), 0); /* ms are left out */
        host_await(ant, "exited", "job=j due=%s", json_string_value(json_object_get(item, "due")));
        TEST_INT(host_count(ant, "started", "job=j"), i + 1);
    }
    TEST_INT(i, 20);
    TEST_INT(host_count(ant, "missed", "job=j"), 0);
    json_decref(shown);
}

static void shown_gap(void) {
    begin_as_shown("2027-03-28T00:01:00+01:00");
}

static void shown_fold(void) {
    begin_as_shown("2027-10-30T23:01:00+02:00");
}

static CU_TestInfo tests[] = {
    {"set-back-reload", set_back_reload},
    {"set-back-hourly", set_back_hourly},
    {"set-back-away", set_back_away},
    {"set-forward", set_forward},
    {"not-there", not_there},
    {"shown-gap", shown_gap},
    {"shown-fold", shown_fold},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "zones", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});
