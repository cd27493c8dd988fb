/* SPDX-License-Identifier: MIT */

/* Schedules: when jobs begin, which due times are missed, and what berthd remembers. The test sets the
 * clock of the host. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/schedule/schedule.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define NIGHTLY "job \"nightly\" { " QUICK "schedule = {\"0 2 * * *\"} zone = \"Europe/Berlin\" }\n"
#define HOURLY "schedule = {\"0 * * * *\"} zone = \"UTC\" "

static struct host *ant;

#define START_MSEC 30000 /* from the start of berthd to the time, so a slow start does no harm */
#define HOST_AT(time, ...)                            \
    do {                                              \
        ant = host_add_alone("ant", __VA_ARGS__);     \
        host_clock_give(ant);                         \
        host_clock_set(ant, time, -START_MSEC);       \
        host_start(ant);                              \
        host_clock_set(ant, time, 0);                 \
    } while (0)


#define NIGHTS                                                                                              \
    "job \"j\" { " QUICK "schedule = {\"30 2 * * *\"} zone = \"Europe/Berlin\" }\n"                         \
    "job \"h\" { " QUICK "schedule = {\"0 * * * *\"} zone = \"Europe/Berlin\" }\n" MARKER

/* S1: a due time in the gap begins at the end of the gap. */
static void gap(void) {
    HOST_AT("2027-03-27T02:29:58+01:00", NIGHTS);
    host_await(ant, "started", "job=j due=2027-03-27T02:30:00+01:00 trigger=schedule");
    host_clock_set(ant, "2027-03-28T00:59:59Z", 0);
    host_await(ant, "started", "job=j due=2027-03-28T03:00:00+02:00");
    host_clock_set(ant, "2027-03-29T00:29:59Z", 0);
    host_await(ant, "exited", "job=j due=2027-03-29T02:30:00+02:00");
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=j"), 3);
}

#define LATE_MAX (50 * USEC_PER_MSEC) /* S1 */

/* Sets the clock to this time. Returns whether the hourly job started in time, if it is due then. */
static bool starts_in_time(const char *time) {
    usec_t due;

    host_clock_set(ant, time, -20);
    due = clock_boottime() + 20 * USEC_PER_MSEC;
    if (!strstr(time, ":00:00"))
        return true;
    host_await(ant, "started", "job=h due=%s", time);
    return clock_boottime() <= due + LATE_MAX;
}

/* S2: a due time in the fold begins once; an hourly job begins 25 times on that day. */
static void fold(void) {
    struct zone *berlin = NULL;
    unsigned n_hours = 0, n_of_day = 0, n_late = 0;
    int64_t begin = 0;
    char text[SCHEDULE_TEXT_SIZE];

    TEST_INT(zone_load(ZONE_DIRECTORY, "Europe/Berlin", &berlin), 0);
    TEST_INT(schedule_parse_time("2027-10-30T02:00:00+02:00", &begin), 0);
    HOST_AT("2027-10-30T02:01:00+02:00", NIGHTS);
    host_await_marker(ant);
    for (int64_t at = begin + 1800; at <= begin + 99 * 1800; at += 1800) { /* to 1 November, 02:30 */
        schedule_format(berlin, at, text);
        n_late += !starts_in_time(text);
        if (strstr(text, "T02:30") && strcmp(text, "2027-10-31T02:30:00+01:00") != 0)
            host_await(ant, "exited", "job=j due=%s", text);
        if (!strstr(text, ":00:00"))
            continue;
        host_await(ant, "exited", "job=h due=%s", text);
        n_of_day += strncmp(text, "2027-10-31", 10) == 0;
        TEST_INT(host_count(ant, "started", "job=h"), ++n_hours);
    }
    host_await_marker(ant);
    TEST_INT(n_of_day, 25);
    TEST_INT(host_count(ant, "started", "job=j"), 3);
    TEST_INT(host_count(ant, "missed", " "), 0);
    printf("%u of %u runs started more than 50 ms late\n", n_late, n_hours);
    CU_ASSERT(n_late <= n_hours * 9 / 10); /* a busy machine delays most; a late scheduler, all */
    zone_free(berlin);
}

static void on_time(void) {
    HOST_AT("2027-05-01T11:59:59Z", "job \"h\" { " QUICK HOURLY "pools = {local} }\n" MARKER);
    host_await(ant, "granted", "job=h due=2027-05-01T12:00:00+00:00");
    host_await(ant, "exited", "job=h result=success");
}

/* S6 */
static void berthd_was_away(void) {
    HOST_AT("2027-05-01T01:59:50+02:00", NIGHTLY MARKER);
    host_await_marker(ant);
    host_kill(ant);
    host_clock_set(ant, "2027-05-01T02:00:03+02:00", 0);
    host_start(ant);
    host_await(ant, "exited", "job=nightly due=2027-05-01T02:00:00+02:00");
    host_kill(ant);
    host_clock_set(ant, "2027-05-02T02:09:50+02:00", 0);
    host_start(ant);
    host_await(ant, "exited", "job=nightly due=2027-05-02T02:00:00+02:00");
    host_kill(ant);
    host_clock_set(ant, "2027-05-03T02:10:03+02:00", 0);
    host_start(ant);
    host_await(ant, "missed", "job=nightly due=2027-05-03T02:00:00+02:00 reason=late count=1");
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=nightly"), 0);
}

/* After a reboot the runtime directory is empty, and the state directory is as before. */
static void reboot(void) {
    char path[128];

    HOST_AT("2027-05-01T01:59:50+02:00", "state-directory = \"%s/state\"\n" NIGHTLY MARKER, cluster.folder);
    host_await_marker(ant);
    host_stop(ant);
    snprintf(path, sizeof(path), "%s/jobs/nightly", ant->runtime);
    TEST_INT(unlink(path), 0);
    host_clock_set(ant, "2027-05-01T02:05:00+02:00", 0);
    host_start(ant);
    host_await(ant, "exited", "job=nightly due=2027-05-01T02:00:00+02:00");
    host_stop(ant);
    (void) unlink(path);
    host_start(ant);
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=nightly"), 0);
}

/* S7: ten runs one after another, oldest first. */
static void backlog(void) {
    uint64_t ended = 0;

    HOST_AT("2027-05-01T00:30:00Z", "job \"h\" { %s " HOURLY "catch-up = \"1d\" backlog = 24 }\n" MARKER,
            witness_command("--id h --for 20"));
    host_await_marker(ant);
    host_kill(ant);
    host_clock_set(ant, "2027-05-01T10:30:00Z", 0);
    host_start(ant);
    for (int hour = 1; hour <= 10; hour++) {
        char due[64];

        snprintf(due, sizeof(due), "job=h due=2027-05-01T%02d:00:00+00:00 trigger=backlog", hour);
        CU_ASSERT(event_get_u64(host_await(ant, "started", "%s", due), "seq") > ended);
        ended = event_get_u64(host_await(ant, "exited", "%s", due), "seq");
    }
    TEST_INT(host_count(ant, "started", "job=h"), 10);
    TEST_INT(host_count(ant, "missed", "job=h"), 0);
}

/* During a run, as many due times wait as `backlog` allows, the newest ones. */
static void backlog_behind_a_run(void) {
    HOST_AT("2027-05-01T00:59:59Z",
            "job \"h\" { %s " HOURLY "catch-up = \"1d\" backlog = 2 }\n" MARKER,
            witness_at_gate("h", 0));
    host_await(ant, "started", "job=h due=2027-05-01T01:00:00+00:00");
    host_kill(ant);
    host_clock_set(ant, "2027-05-01T04:30:00Z", 0);
    host_start(ant);
    host_await(ant, "missed", "job=h due=2027-05-01T02:00:00+00:00 reason=backlog count=1");
    host_await_marker(ant);
    test_gate_open(&cluster.gate);
    host_await(ant, "started", "job=h due=2027-05-01T03:00:00+00:00 trigger=backlog");
    host_await(ant, "exited", "job=h due=2027-05-01T04:00:00+00:00");
    TEST_INT(host_count(ant, "missed", "job=h"), 1);
    TEST_INT(host_count(ant, "withdrawn", "job=h"), 0);
}

/* S8 */
static void newest_alone(void) {
    HOST_AT("2027-05-01T00:30:00Z", "job \"h\" { " QUICK HOURLY "catch-up = \"1d\" }\n" MARKER);
    host_await_marker(ant);
    host_kill(ant);
    host_clock_set(ant, "2027-05-01T10:30:00Z", 0);
    host_start(ant);
    host_await(ant, "missed", "job=h due=2027-05-01T01:00:00+00:00 until=2027-05-01T09:00:00+00:00 reason=backlog count=9");
    host_await(ant, "exited", "job=h due=2027-05-01T10:00:00+00:00");
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=h"), 1);
}

/* S9 */
static void clock_is_set(void) {
    HOST_AT("2027-05-01T11:59:59Z", "job \"h\" { " QUICK HOURLY "}\n" MARKER);
    host_await(ant, "exited", "job=h due=2027-05-01T12:00:00+00:00");
    host_clock_set(ant, "2027-05-01T11:01:00Z", 0);
    host_set_config(ant, "job \"h\" { " QUICK HOURLY "}\njob \"new\" { " QUICK HOURLY "}\n" MARKER);
    TEST_INT(berth(ant, "reload"), 0);
    host_clock_set(ant, "2027-05-01T11:59:59Z", 900);
    host_await(ant, "exited", "job=new due=2027-05-01T12:00:00+00:00"); /* the time at which h would begin again */
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=h"), 1);
    host_clock_set(ant, "2027-05-01T07:59:58Z", 0);
    host_await(ant, "clock-set", " ");
    host_await(ant, "exited", "job=h due=2027-05-01T08:00:00+00:00");
    host_clock_set(ant, "2027-05-01T09:05:00Z", 0);
    host_await(ant, "exited", "job=h due=2027-05-01T09:00:00+00:00");
    host_clock_set(ant, "2037-05-01T09:30:00Z", 0);
    host_await(ant, "missed", "job=h reason=clock-set count=10000");
    host_await_marker(ant);
    TEST_INT(host_count(ant, "missed", "job=h"), 1);
    TEST_INT(host_count(ant, "started", "job=h"), 3);
}

/* S10 */
static void edited(void) {
    HOST_AT("2027-05-01T12:10:00Z", "job \"h\" { " QUICK HOURLY "}\n" MARKER);
    host_set_config(ant, "job \"h\" { " QUICK "schedule = {\"5 * * * *\"} zone = \"UTC\" }\njob \"new\" { " QUICK "schedule = {\"5 * * * *\"} }\n" MARKER);
    TEST_INT(berth(ant, "reload"), 0);
    host_await_marker(ant);
    host_kill(ant);
    host_start(ant);
    host_await_marker(ant);
    host_set_config(ant, MARKER);
    TEST_INT(berth(ant, "reload"), 0);
    host_set_config(ant, "job \"h\" { " QUICK HOURLY "catch-up = \"1d\" }\n" MARKER);
    TEST_INT(berth(ant, "reload"), 0);
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=h"), 0);
    TEST_INT(host_count(ant, "started", "job=new"), 0);
    TEST_INT(host_count(ant, "missed", " "), 0);
}

/* The schedule is edited while berthd is down: 12:05 is no due time of the old one. */
static void edited_while_down(void) {
    HOST_AT("2027-05-01T12:01:00Z", "job \"h\" { " QUICK HOURLY "}\n" MARKER);
    host_kill(ant);
    host_clock_set(ant, "2027-05-01T12:10:00Z", 0);
    host_set_config(ant, "job \"h\" { " QUICK "schedule = {\"5 * * * *\"} zone = \"UTC\" }\n" MARKER);
    host_start(ant);
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=h"), 0);
    TEST_INT(host_count(ant, "missed", "job=h"), 0);
}

static void drained(void) {
    HOST_AT("2027-05-01T11:59:50Z", "job \"h\" { " QUICK HOURLY "}\n" MARKER);
    TEST_INT(berth(ant, "drain"), 0);
    host_clock_set(ant, "2027-05-01T12:05:00Z", 0);
    TEST_INT(berth(ant, "undrain"), 0);
    host_await(ant, "exited", "job=h due=2027-05-01T12:00:00+00:00");
    TEST_INT(berth(ant, "drain"), 0);
    host_clock_set(ant, "2027-05-01T13:30:00Z", 0);
    TEST_INT(berth(ant, "undrain"), 0);
    host_await(ant, "missed", "job=h due=2027-05-01T13:00:00+00:00 reason=drained count=1");
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=h"), 1);
}

static void overlap(void) {
    HOST_AT("2027-05-01T11:59:59Z", "job \"skip\" { %s " HOURLY "}\n"
                                    "job \"replace\" { command = {\"/bin/sleep\", \"600\"} output = \"null\" " HOURLY "overlap = \"replace\" }\n",
            witness_at_gate("skip", 0));
    host_await(ant, "started", "job=skip due=2027-05-01T12:00:00+00:00");
    host_await(ant, "started", "job=replace due=2027-05-01T12:00:00+00:00");
    host_clock_set(ant, "2027-05-01T12:59:59Z", 0);
    host_await(ant, "skipped", "job=skip due=2027-05-01T13:00:00+00:00 trigger=schedule reason=overlap");
    host_await(ant, "exited", "job=replace due=2027-05-01T12:00:00+00:00 result=stopped reason=replaced");
    host_await(ant, "started", "job=replace due=2027-05-01T13:00:00+00:00");
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=skip");
    TEST_INT(berth(ant, "stop replace"), 0);
    host_await(ant, "exited", "job=replace due=2027-05-01T13:00:00+00:00 result=stopped");
}

/* A job with a schedule runs without a state directory. */
static void no_state_directory(void) {
    json_t *jobs;

    HOST_AT("2027-05-01T11:59:59Z", "state-directory = \"/proc/none/at/all\"\njob \"h\" { " QUICK HOURLY "}\n" MARKER);
    host_await(ant, "exited", "job=h due=2027-05-01T12:00:00+00:00");
    CU_ASSERT(strstr(host_log(ant), "after a reboot berthd does not know what it began") != NULL);
    jobs = berth_json(ant, "jobs");
    AT_STRING(jobs, "state_error", "No such file or directory");
    json_decref(jobs);
    host_kill(ant);
    host_start(ant);
    host_await_marker(ant);
    TEST_INT(host_count(ant, "started", "job=h"), 0);
}

/* `berth next` and `berth jobs` show the next due times. */
static void shown(void) {
    json_t *jobs, *next;

    HOST_AT("2027-03-27T12:00:00Z", "job \"j\" { " QUICK "schedule = {\"30 2 * * *\"} zone = \"Europe/Berlin\" }\n" MARKER);
    host_await_marker(ant);
    jobs = berth_json(ant, "jobs");
    AT_STRING(jobs, "jobs.name=j.next_due", "2027-03-28T03:00:00+02:00");
    AT_STRING(jobs, "jobs.name=j.zone", "Europe/Berlin");
    AT_STRING(jobs, "jobs.name=j.schedule.0", "30 2 * * *");
    AT_NULL(jobs, "jobs.name=marker.zone");
    AT_NULL(jobs, "state_error");
    AT_INT(jobs, "jobs.name=j.missed.count", 0);
    json_decref(jobs);
    next = berth_json(ant, "next --count 2");
    AT_STRING(next, "next.0.due", "2027-03-28T03:00:00+02:00");
    AT_STRING(next, "next.0.wanted", "2027-03-28T02:30:00");
    AT_STRING(next, "next.1.due", "2027-03-29T02:30:00+02:00");
    json_decref(next);
    next = berth_json(ant, "next j --count 1 --from 2030-01-01T00:00:00Z");
    AT_STRING(next, "next.0.due", "2030-01-01T02:30:00+01:00");
    json_decref(next);
}

static CU_TestInfo tests[] = {
    {"gap", gap},
    {"fold", fold},
    {"on-time", on_time},
    {"berthd-was-away", berthd_was_away},
    {"reboot", reboot},
    {"backlog", backlog},
    {"backlog-behind-a-run", backlog_behind_a_run},
    {"newest-alone", newest_alone},
    {"clock-is-set", clock_is_set},
    {"edited", edited},
    {"edited while down", edited_while_down},
    {"drained", drained},
    {"overlap", overlap},
    {"no-state-directory", no_state_directory},
    {"shown", shown},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "schedules", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});
