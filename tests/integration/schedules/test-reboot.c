/* SPDX-License-Identifier: MIT */

/* Attempts and health of a job after its host crashed. */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file.h"
#include "base/record-text.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/host-reboot.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define REMEMBERED MARKER_WITH("max-silence = \"3000d\" ")
#define SH(text) "command = {\"/bin/sh\", \"-c\", '" text "'} output = \"null\" "
#define LONG SH("exec sleep 1000")

static struct host *ant;

#define HOST(...)                                                                \
    do {                                                                         \
        ant = host_add_alone("ant", HOST_LASTING REMEMBERED __VA_ARGS__);            \
        host_clock_give(ant);                                                    \
        host_start(ant);                                                         \
    } while (0)

/* Copies the record of the marker's health from the state directory; "": there is none. */
static void read_marker(char buffer[static 512]) {
    _cleanup_free_ char *text = NULL;
    struct record_reader reader;
    struct record_item item;
    char path[128];
    size_t size = 0;

    buffer[0] = '\0';
    snprintf(path, sizeof(path), "%s/lasting/jobs", cluster.folder);
    if (file_read(path, 1 << 20, &text, &size) < 0 || !record_reader_init(&reader, text, size))
        return;
    while (record_reader_next(&reader, &item))
        if (strcmp(item.key, "marker") == 0)
            snprintf(buffer, 512, "%.*s", (int) item.size, item.record);
}

/* Runs the marker, and awaits its record in the state directory, which is written in the order of the events:
 * all that berthd did before is on the disk, too. */
static void settle(void) {
    _cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    struct pollfd p = {.fd = watch, .events = POLLIN};
    char directory[128], before[512], now[512], events[4096];
    usec_t until = clock_monotonic() + HOST_PATIENCE;
    int status;

    snprintf(directory, sizeof(directory), "%s/lasting", cluster.folder);
    TEST_FATAL(watch >= 0 && inotify_add_watch(watch, directory, IN_MODIFY | IN_MOVED_TO) >= 0, directory);
    read_marker(before);
    while ((status = berth(ant, "start marker --wait")) == 75 && clock_monotonic() < until)
        ; /* the marker of a berthd that was killed at its end is not over yet */
    TEST_INT(status, 0);
    for (read_marker(now); strcmp(now, before) == 0; read_marker(now)) {
        TEST_FATAL(poll(&p, 1, HOST_PATIENCE / USEC_PER_MSEC) == 1, "the marker is not on the disk");
        (void) !read(watch, events, sizeof(events));
    }
}

static void reboot(void) {
    settle();
    host_reboot(ant);
    host_start(ant);
}

static void keep(char *id, size_t size, const char *line, const char *field) {
    snprintf(id, size, "%s", event_get(line, field));
}

/* --- the chain --- */

/* The delay counts wall clock time, also while the host is down. */
static void in_the_delay(void) {
    char first[64];
    usec_t delay;
    const char *line;

    HOST("job \"job\" { " SH("exit 1") "retry = 2 retry-delay = \"1h\" retry-delay-max = \"1h\" }\n", cluster.folder);
    TEST_INT(berth(ant, "start job"), 0);
    line = host_await(ant, "retry", "job=job attempt=2 attempts=3");
    keep(first, sizeof(first), line, "first_run");
    delay = event_get_u64(line, "delay_ms") * USEC_PER_MSEC;
    settle();
    host_reboot(ant);
    host_clock_step(ant, (int64_t) (delay - 600 * USEC_PER_SEC));
    host_start(ant);
    settle();
    TEST_INT(host_count(ant, "started", "job=job"), 0);
    host_clock_jump(ant, 600 * USEC_PER_SEC);
    host_await(ant, "started", "job=job trigger=retry attempt=2 first_run=%s", first);
    delay = event_get_u64(host_await(ant, "retry", "job=job attempt=3 attempts=3"), "delay_ms") * USEC_PER_MSEC;
    settle();
    host_reboot(ant);
    host_clock_step(ant, (int64_t) (3 * 3600 * USEC_PER_SEC)); /* it is long past */
    host_start(ant);
    host_await(ant, "started", "job=job attempt=3 first_run=%s", first);
    host_await(ant, "gave-up", "job=job attempt=3 reason=attempts first_run=%s", first);
}

/* An instance that the template does not list is known again because of its run, and no longer than that. */
static void of_an_open_instance(void) {
    HOST("job \"open@\" { open-instances = true " SH("exit 1") "retry = 1 retry-delay = \"15m\" }\n",
         cluster.folder);
    TEST_INT(berth(ant, "start open@x"), 0);
    host_await(ant, "retry", "job=open@x attempt=2 attempts=2");
    reboot();
    TEST_INT(berth(ant, "jobs open@x"), 0);
    TEST_INT(berth(ant, "stop open@x"), 0);
    host_await(ant, "gave-up", "job=open@x reason=stopped");
    reboot();
    TEST_INT(berth(ant, "jobs open@x"), 65);
}

/* A clock that is wrong after the reboot makes the delay no longer than delays are. */
static void clock_set_back(void) {
    json_t *next;

    HOST("job \"job\" { " SH("exit 1") "retry = 2 retry-delay = \"1h\" retry-delay-max = \"1h\" }\n", cluster.folder);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "retry", "job=job attempt=2");
    settle();
    host_reboot(ant);
    host_clock_step(ant, -(int64_t) (100 * 24 * 3600 * USEC_PER_SEC));
    host_start(ant);
    next = berth_json(ant, "next");
    CU_ASSERT(berth_number_at(next, "next.job=job.in_ms") > 3000 * 1000);
    CU_ASSERT(berth_number_at(next, "next.job=job.in_ms") <= 3600 * 1000);
    json_decref(next);
    TEST_INT(berth(ant, "stop job"), 0);
    host_await(ant, "gave-up", "job=job attempt=1 reason=stopped");
}

static void in_the_run(void) {
    char first[64];

    HOST("job \"job\" { " LONG "retry = 2 retry-delay = \"10ms\" }\n", cluster.folder);
    TEST_INT(berth(ant, "start job"), 0);
    keep(first, sizeof(first), host_await(ant, "started", "job=job"), "run");
    reboot();
    host_await(ant, "exited", "job=job run=%s result=host-lost", first);
    host_await(ant, "retry", "job=job attempt=2 attempts=3 result=host-lost first_run=%s", first);
    host_await(ant, "started", "job=job attempt=2 trigger=retry first_run=%s", first);
    settle();
    host_kill(ant); /* the next berthd of this boot finds the run alive */
    host_start(ant);
    settle();
    TEST_INT(host_count(ant, "exited", "job=job"), 0);
    host_reboot(ant);
    host_start(ant);
    host_await(ant, "exited", "job=job result=host-lost attempt=2");
    host_await(ant, "started", "job=job attempt=3 first_run=%s", first);
    TEST_INT(host_count(ant, "exited", "job=job"), 1);
    TEST_INT(berth(ant, "stop job"), 0);
    host_await(ant, "gave-up", "job=job attempt=3 reason=stopped");
    reboot();
    settle();
    TEST_INT(host_count(ant, "exited", "job=job"), 0); /* it is over */
    TEST_INT(host_count(ant, "started", "job=job"), 0);
}

/* A run that waited for its permits was lost as well. */
static void in_the_queue(void) {
    HOST("job \"holder\" { " LONG "pools = {\"local\"} max-silence = \"1d\" }\n"
         "job \"job\" { " QUICK "pools = {\"local\"} retry = 1 retry-delay = \"10ms\" }\n",
         cluster.folder);
    TEST_INT(berth(ant, "start holder"), 0);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "queued", "job=job");
    reboot();
    host_await(ant, "exited", "job=job result=host-lost");
    host_await(ant, "exited", "job=job result=success attempt=2");
}

/* retry-on decides of it as of any end, and hooks are started. */
static void not_retried(void) {
    HOST("job \"hook\" { " SH("test $BERTH_OF_RESULT = host-lost") "}\n"
         "job \"job\" { " LONG "retry = 2 retry-delay = \"10ms\" retry-on = {\"failure\"} on-failure = {\"hook\"} }\n",
         cluster.folder);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "started", "job=job");
    reboot();
    host_await(ant, "gave-up", "job=job attempt=1 reason=not-retried");
    host_await(ant, "exited", "job=hook of_job=job result=success");
    settle();
    host_kill(ant);
    host_start(ant);
    settle();
    TEST_INT(host_count(ant, "started", "job=hook"), 0);
}

/* The first berthd of a boot may be killed at any time: the attempts go on once. */
static void killed_after_the_reboot(void) {
    for (int i = 0; i < 12; i++) {
        if (i == 0)
            HOST("job \"job\" { %s retry = 1 retry-delay = \"1ms\" }\n", cluster.folder, witness_at_gate("w", 0));
        TEST_INT(berth(ant, "start job"), 0);
        host_await(ant, "started", "job=job");
        settle();
        host_reboot(ant);
        host_launch(ant);
        (void) usleep((useconds_t) (i * 3000));
        host_kill(ant);
        host_start(ant);
        settle();
        TEST_INT(host_count(ant, "granted", "job=job attempt=2") <= 1, 1);
        TEST_INT(berth(ant, "stop job"), 0);
        host_await(ant, "gave-up", "job=job reason=stopped"); /* else the reboot ends the run */
        settle();
        host_reboot(ant);
        host_start(ant);
        settle();
        TEST_INT(host_count(ant, "exited", "job=job"), 0);
    }
    test_gate_open(&cluster.gate);
}

/* The start of the service begins it, also if it was stopped. */
static void restarted(void) {
    HOST("job \"job\" { " LONG "restart = \"always\" }\n", cluster.folder);
    host_await(ant, "started", "job=job trigger=restart");
    reboot();
    host_await(ant, "exited", "job=job result=host-lost");
    host_await(ant, "started", "job=job trigger=restart");
    TEST_INT(berth(ant, "stop job"), 0);
    host_await(ant, "exited", "job=job result=stopped");
    reboot();
    host_await(ant, "started", "job=job trigger=restart");
    settle();
    TEST_INT(host_count(ant, "started", "job=job"), 1);
}

static void health(void) {
    json_t *jobs;

    HOST("job \"hook\" { " QUICK "}\njob \"job\" { command = {\"/bin/sh\", \"-c\", 'test -e %s/good'} "
         "on-broken = {\"hook\"} on-recovered = {\"hook\"} }\n",
         cluster.folder, cluster.folder);
    TEST_INT(berth(ant, "start job --wait"), 1);
    host_await(ant, "broken", "job=job");
    reboot();
    jobs = berth_json(ant, "jobs");
    CU_ASSERT(json_is_true(berth_at(jobs, "jobs.name=job.broken")));
    AT_INT(jobs, "jobs.name=job.bad", 1);
    json_decref(jobs);
    TEST_INT(berth(ant, "start job --wait"), 1);
    settle();
    TEST_INT(host_count(ant, "broken", "job=job"), 0);
    host_reboot(ant);
    host_start(ant);
    jobs = berth_json(ant, "jobs");
    AT_INT(jobs, "jobs.name=job.bad", 2);
    json_decref(jobs);
}

/* --- due times --- */

/* The run of 12:00 waits at the gate, and that of 13:00 for its turn, of which no event tells. */
static void one_waits(void) {
    usec_t until = clock_monotonic() + 2 * HOST_PATIENCE;

    ant = host_add_alone("ant", HOST_LASTING REMEMBERED "job \"h\" { %s schedule = {\"0 * * * *\"} zone = \"UTC\" "
                         "overlap = \"queue\" catch-up = \"1d\" on-broken = {\"marker\"} }\n",
                         cluster.folder, witness_at_gate("w", 0));
    host_clock_give(ant);
    host_clock_set(ant, "2027-05-01T11:59:59Z", 0);
    host_start(ant);
    host_await(ant, "started", "job=h due=2027-05-01T12:00:00+00:00");
    host_clock_set(ant, "2027-05-01T12:59:59Z", 900);
    while (berth_count_runs(ant) != 2 && clock_monotonic() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    TEST_INT(berth_count_runs(ant), 2);
    settle();
}

/* A due time that waits for its turn is remembered over a reboot, also if berthd was restarted before. */
static void waits_for_its_turn(void) {
    one_waits();
    host_kill(ant);
    host_start(ant);
    settle();
    TEST_INT(host_count(ant, "started", "job=h"), 0);
    host_reboot(ant);
    test_gate_open(&cluster.gate);
    host_start(ant);
    host_await(ant, "exited", "job=h due=2027-05-01T12:00:00+00:00 result=host-lost");
    host_await(ant, "exited", "job=h due=2027-05-01T13:00:00+00:00 result=success");
}

/* --- what is forgotten --- */

/* A job that a berthd did not know is new: nothing is due for the past, and nothing goes on. */
static void not_defined_meanwhile(void) {
    char path[128];

    HOST("job \"job\" { " SH("exit 1") "retry = 2 retry-delay = \"1s\" }\n"
         "job \"due\" { " QUICK "schedule = {\"* * * * *\"} catch-up = \"1d\" backlog = 100 }\n", cluster.folder);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "retry", "job=job attempt=2");
    settle();
    snprintf(path, sizeof(path), "%s/jobs/due", ant->runtime);
    TEST_INT(access(path, F_OK), 0);
    host_kill(ant);
    host_set_config(ant, HOST_LASTING REMEMBERED, cluster.folder);
    host_start(ant);
    settle();
    TEST_INT(access(path, F_OK), -1);
    host_stop(ant);
    host_clock_step(ant, (int64_t) (3600 * USEC_PER_SEC));
    host_set_config(ant, HOST_LASTING REMEMBERED "job \"job\" { " QUICK "retry = 2 }\n"
                         "job \"due\" { " QUICK "schedule = {\"* * * * *\"} catch-up = \"1d\" backlog = 100 }\n",
                    cluster.folder);
    host_start(ant);
    settle();
    TEST_INT(host_count(ant, "started", "job=job"), 0);
    TEST_INT(host_count(ant, "started", "job=due") <= 1, 1); /* a minute may begin now */
}

/* Copies the record file of the state directory to a file beside it; and back. */
static void copy_lasting(bool back) {
    _cleanup_free_ char *text = NULL;
    char jobs[128], saved[128];
    size_t size = 0;

    snprintf(jobs, sizeof(jobs), "%s/lasting/jobs", cluster.folder);
    snprintf(saved, sizeof(saved), "%s/saved", cluster.folder);
    TEST_INT(file_read(back ? saved : jobs, 1 << 20, &text, &size), 0);
    TEST_INT(file_write_atomic(back ? jobs : saved, text, size, 0600), 0);
}

/* Within a boot the runtime directory knows better: a record of a run that is over may not be removed yet. */
static void stale_record(void) {
    HOST("job \"job\" { " LONG "retry = 2 retry-delay = \"10ms\" }\n", cluster.folder);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "started", "job=job");
    settle();
    host_kill(ant); /* what it wrote is all that there is */
    copy_lasting(false);
    host_start(ant);
    TEST_INT(berth(ant, "stop job"), 0);
    host_await(ant, "exited", "job=job result=stopped");
    host_mark(ant);
    TEST_INT(berth(ant, "start job"), 0);
    host_await(ant, "started", "job=job");
    TEST_INT(berth(ant, "stop job"), 0);
    host_await(ant, "exited", "job=job result=stopped"); /* else the next berthd recovers the run and logs its end */
    settle();
    host_kill(ant);
    copy_lasting(true);
    host_start(ant);
    settle();
    TEST_INT(host_count(ant, "exited", "job=job"), 0);
    TEST_INT(host_count(ant, "started", "job=job"), 0);
}

/* As above, for a due time that waited for its turn, and was begun since. */
static void stale_due_time(void) {
    one_waits();
    copy_lasting(false);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=h due=2027-05-01T13:00:00+00:00 result=success");
    settle();
    host_kill(ant);
    copy_lasting(true);
    host_start(ant);
    settle();
    TEST_INT(host_count(ant, "started", "job=h"), 0);
}

static CU_TestInfo tests[] = {
    {"in the delay", in_the_delay}, {"of an open instance", of_an_open_instance},
    {"clock set back", clock_set_back},
    {"in the run", in_the_run},
    {"in the queue", in_the_queue},
    {"not retried", not_retried},
    {"killed after the reboot", killed_after_the_reboot},
    {"restarted", restarted},
    {"health", health},
    {"waits for its turn", waits_for_its_turn},
    {"not defined meanwhile", not_defined_meanwhile},
    {"stale record", stale_record},
    {"stale-due time", stale_due_time},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "reboot", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});
