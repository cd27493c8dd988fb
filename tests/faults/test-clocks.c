/* SPDX-License-Identifier: MIT */

/* Clocks of hosts jump. A suspend may end leases, and steps of the wall clock do not
 * (swarthy/redis-semaphore#24, mperham/sidekiq#4090, sidekiq-1.7.2; systemd/systemd#5595,
 * systemd/systemd#8647, cronnext#218, hashicorp/nomad#5410: runs that are skipped, missing, or started by
 * the thousand when clocks change). */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/faults/fault.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 1 }\npool \"net\" { limit = 1 }\n"
#define HOUR (3600 * USEC_PER_SEC)

static struct bed bed;
static struct injection injection;
static struct host *ant, *bee;
static struct witness w;

static void up(void) {
    cluster_up();
    bed = (struct bed) {0};
    injection = (struct injection) {0};
}

static void down(void) {
    unpin(&injection);
    witness_done(&w);
    cluster_down();
}

static void two_hosts(const char *jobs) {
    bee = host_up("bee", POOLS);
    ant = host_add("ant", POOLS "%s", jobs);
    host_clock_give(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    bed.load.hosts[0].host = ant;
}

static const char *job(const char *name, const char *options) {
    static char text[1024];

    snprintf(text, sizeof(text),
             "job \"%s\" { command = {\"%s/tests/tools/witness\", \"%s\", \"--id\", \"%s\"} output = \"null\" %s }\n",
             name, cluster.build, cluster.witness, name, options);
    return text;
}

/* Starts a job and a `berth run` that end when they are stopped. */
static struct child *begin_long(void) {
    struct child *run;

    host_set_config(ant, POOLS "job \"old\" { command = {\"%s/tests/tools/witness\", \"%s\", \"--id\", \"old\", \"--for\", \"60000\", "
                    "\"--ignore-term\"} pools = {\"db\"} output = \"null\" stop-timeout = \"100ms\" }\n", cluster.build, cluster.witness);
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(ant, "start old"), 0);
    run = berth_start(ant, "run -p net --name older --stop-timeout 100ms -- %s --id older --for 60000", cluster.command);
    host_await(ant, "started", "job=old");
    host_await(ant, "started", "job=older");
    witness_await_alive(cluster.witness, 2);
    return run;
}

/* Stops the host until bee has sent a heartbeat, and lets `jump` pass for it. */
static void suspend(usec_t jump, bool guards_late) {
    /* berthd last: without its heartbeats, the others would fence before a busy machine has stopped them. */
    static const enum kind kinds[] = {KIND_COMMAND, KIND_GUARD, KIND_RUN, KIND_RUNNER, KIND_BERTHD};
    struct injection late = {0};

    for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
        bool is_late = guards_late && (kinds[i] == KIND_GUARD || kinds[i] == KIND_RUN);

        (void) hit(&bed, is_late ? &late : &injection, kinds[i], SIGSTOP, 10, true);
    }
    child_turn(0);
    child_pass(clock_boottime() + 800 * USEC_PER_MSEC);
    host_mark(ant);
    host_clock_jump(ant, jump);
    unpin(&injection);
    if (guards_late)
        child_pass(clock_boottime() + 100 * USEC_PER_MSEC);
    unpin(&late);
}

static void suspended_for_less(void) {
    struct child *run;

    two_hosts("");
    run = begin_long();
    suspend(700 * USEC_PER_MSEC, false);
    host_await(bee, "ready", " ");
    child_pass(clock_boottime() + CLUSTER_LEASE_USEC);
    TEST_INT(host_count(ant, "session-lost", " "), 0);
    TEST_INT(host_count(ant, "fenced", " "), 0);
    TEST_INT(host_count(bee, "host-expired", " "), 0);
    witness_await_alive(cluster.witness, 2);
    child_kill(run, SIGTERM);
    TEST_INT(berth(ant, "stop old"), 0);
    TEST_INT(berth_end(run), 143);
    host_await(ant, "exited", "job=old");
}

/* Runs that wait on the other host start when those of this host have ended. */
static void suspended_for_more(usec_t jump, bool guards_late) {
    const char *late = jump > HOUR ? " was gone 6d23h59m" : " after the end of its lease";
    struct child *run, *others[2];
    usec_t woken;

    two_hosts("");
    run = begin_long();
    others[0] = berth_start(bee, "run -p db --name new -- %s --id new --for 300", cluster.command);
    others[1] = berth_start(bee, "run -p net --name newer -- %s --id newer --for 300", cluster.command);
    host_await(bee, "queued", "job=new");
    host_await(bee, "queued", "job=newer");
    suspend(jump, guards_late);
    woken = clock_boottime();
    host_await(ant, "session-lost", " ");
    CU_ASSERT(strstr(host_await(ant, "fenced", "job=old"), late) != NULL); /* the event has its lateness */
    CU_ASSERT(strstr(host_await(ant, "fenced", "job=older"), late) != NULL);
    host_await(ant, "exited", "job=old result=lease-lost"); /* both are recorded */
    host_await(ant, "exited", "job=older");
    TEST_INT(berth_end(run), 76);
    CU_ASSERT(clock_boottime() - woken < USEC_PER_SEC);
    TEST_INT(berth_end(others[0]), 0);
    TEST_INT(berth_end(others[1]), 0);
    witness_read(&w, cluster.witness);
    TEST_INT(witness_max(&w, "db"), 1);
    TEST_INT(witness_max(&w, "net"), 1);
    TEST_INT(berth(ant, "run --wait 10s -p db -p net -- true"), 0); /* in its new session */
}

static void suspended_for_a_lease(void) {
    suspended_for_more(CLUSTER_LEASE_USEC, false);
}

static void suspended_for_a_week(void) {
    suspended_for_more(7 * 24 * HOUR, false);
}

static void guards_wake_up_later(void) {
    suspended_for_more(CLUSTER_LEASE_USEC, true);
}

/* --- wall clocks --- */

static unsigned count_often(void) {
    unsigned n;

    witness_read(&w, cluster.witness);
    n = (unsigned) witness_count(&w, "often");
    witness_done(&w);
    return n;
}

/* `every` counts real time, whatever the wall clock shows. No run is skipped or doubled. After an hour of
 * suspend there is one run, not thousands. */
static void every_and_clocks(void) {
    static const int64_t steps[] = {3600000000, -3600000000, 7200000000, -86400000000, 0};
    unsigned before, begin;
    usec_t since;

    two_hosts("");
    host_set_config(ant, POOLS "%s", job("often", "every = \"500ms\""));
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "exited", "job=often");
    begin = count_often();
    since = clock_boottime();
    for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
        before = count_often();
        host_clock_step(ant, steps[i]);
        child_pass(clock_boottime() + 1200 * USEC_PER_MSEC);
        CU_ASSERT(count_often() > before);
    }
    CU_ASSERT(count_often() - begin <= (clock_boottime() - since) / (500 * USEC_PER_MSEC) + 1);
    before = count_often();
    suspend(HOUR, false);
    since = clock_boottime();
    child_pass(clock_boottime() + 1200 * USEC_PER_MSEC);
    CU_ASSERT(count_often() > before);
    CU_ASSERT(count_often() - before <= (clock_boottime() - since) / (500 * USEC_PER_MSEC) + 2);
}

/* berthd remembers the time of the last run by the wall clock. After a restart with another wall clock
 * there is one run. */
static void every_and_restarts(void) {
    static const int64_t steps[] = {3600000000, -3600000000};
    char run[ID_TEXT_SIZE];
    unsigned before = 0;

    two_hosts("");
    host_set_config(ant, POOLS "%s", job("often", "every = \"10m\""));
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "exited", "job=often");
    TEST_INT(count_often(), 1);
    for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
        before = count_often();
        host_stop(ant);
        host_clock_step(ant, steps[i]);
        host_start(ant);
        snprintf(run, sizeof(run), "%s", event_get(host_await(ant, "started", "job=often"), "run"));
        host_await(ant, "exited", "run=%s", run);
        child_pass(clock_boottime() + 300 * USEC_PER_MSEC);
        TEST_INT(count_often(), before + 1);
    }
    host_stop(ant);
    host_start(ant);
    child_pass(clock_boottime() + 500 * USEC_PER_MSEC);
    TEST_INT(count_often(), before + 1);
}

/* No grant is lost, no claim waits longer, and no lease moves. */
static void wall_clock(void) {
    static const int64_t steps[] = {1000000, -1000000, 1500000, -1500000, 3600000000, -3600000000, 0};
    struct child *run, *other;

    two_hosts("");
    run = begin_long();
    other = berth_start(bee, "run -p db --name new -- %s --id new", cluster.command);
    host_await(bee, "queued", "job=new");
    host_mark(ant);
    for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
        host_clock_step(ant, steps[i]);
        child_pass(clock_boottime() + 700 * USEC_PER_MSEC);
    }
    TEST_INT(host_count(ant, "session-lost", " ") + host_count(ant, "lease-late", " ") + host_count(ant, "fenced", " "), 0);
    host_clock_step(ant, -(int64_t) HOUR); /* no duration is negative */
    TEST_INT(berth(ant, "stop old"), 0);
    TEST_INT(berth_end(other), 0);
    CU_ASSERT(event_get_u64(host_await(ant, "exited", "job=old"), "run_ms") < 60000);
    child_kill(run, SIGTERM);
    TEST_INT(berth_end(run), 143);
    witness_read(&w, cluster.witness);
    TEST_INT(witness_max(&w, "db"), 1);
}

static CU_TestInfo tests[] = {
    {"suspended for less than a lease", suspended_for_less},
    {"suspended for a lease", suspended_for_a_lease},
    {"suspended for a week", suspended_for_a_week},
    {"guards wake up later than berthd", guards_wake_up_later},
    {"every, and clocks that change", every_and_clocks},
    {"every, and restarts", every_and_restarts},
    {"a wall clock that is set", wall_clock},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "clocks", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
