/* SPDX-License-Identifier: MIT */

/* With a full runtime directory, or a berthd without descriptors, a granted run that cannot begin has a
 * reason, exits with 125, and releases its permits at once. With a full state directory jobs run, and berthd
 * writes their records once there is room. */

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/host-reboot.h"
#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define OWN "pool \"own\" { limit = 1 scope = \"host\" }\n"
#define POOLS "pool \"db\" { limit = 1 }\npool \"net\" { limit = 1 }\n" OWN
#define JOBS "job \"one\" { command = {\"/bin/true\"} pools = {\"db\"} }\njob \"free\" { command = {\"/bin/true\"} }\n"

static struct host *ant;
static char mounted[64], folder[64];

static void up(void) {
    cluster_up_patient();
    mounted[0] = '\0';
}

static void down(void) {
    cluster_down();
    if (!mounted[0])
        return;
    TEST_INT(umount2(mounted, MNT_DETACH), 0); /* it was busy, so cluster_down() left the folder */
    place_remove(folder);
}

/* Hides later mounts from other processes. Returns whether it could. */
static bool unshare_mounts(void) {
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Makes a small file system, which down() removes. */
static void mount_small(const char *path, const char *options) {
    TEST_INT(mkdir(path, 0755), 0);
    TEST_FATAL(mount("tmpfs", path, "tmpfs", 0, options) == 0, "no small file system");
    snprintf(mounted, sizeof(mounted), "%s", path);
    snprintf(folder, sizeof(folder), "%s", cluster.folder);
}

/* A host whose runtime directory is small. */
static bool host_up_small(void) {
    if (!unshare_mounts())
        return false;
    ant = host_add("ant", POOLS JOBS);
    mount_small(ant->runtime, "size=512k,mode=0755");
    host_start(ant);
    host_open(ant);
    return true;
}

static const char *fill_path(void) {
    static char path[96];

    snprintf(path, sizeof(path), "%s/fill", mounted);
    return path;
}

/* Fills the small file system to the last byte. */
static void fill(void) {
    _cleanup_close_ int fd = open(fill_path(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static const char zeros[4096];

    for (size_t size = sizeof(zeros); size > 0; size /= 2)
        while (write(fd, zeros, size) > 0)
            ;
    TEST_FATAL(write(fd, zeros, 1) < 0 && errno == ENOSPC, "the file system is not full");
}

/* The event's reason names the hold's file and the error; so does the client. */
static void check_failed_hold(const char *job, const char *error) {
    char expected[256];
    const char *line = host_await(ant, "exited", "job=%s result=not-started", job);

    snprintf(expected, sizeof(expected), "%s/holds/%s: %s", ant->runtime, event_get(line, "run"), error);
    TEST_STRING(event_get(line, "reason"), expected);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, expected));
    CU_ASSERT_PTR_EQUAL(strstr(berth_err, "berth: granted, but the hold cannot be made ("), berth_err);
    host_await(ant, "released", "job=%s", job);
}

static void await_log(const char *text) {
    usec_t until = clock_monotonic() + HOST_PATIENCE;

    while (!strstr(host_log(ant), text) && clock_monotonic() < until)
        child_turn(until);
    CU_ASSERT_PTR_NOT_NULL(strstr(host_log(ant), text));
}

static long long count_heartbeats(void) {
    _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, "ZRANGE berth:{test}:heartbeats 0 0 WITHSCORES");

    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ? strtoll(reply->element[1]->str, NULL, 10) : 0;
}

static void await_heartbeat(void) {
    long long first = count_heartbeats();
    usec_t until = clock_monotonic() + HOST_PATIENCE;

    while (count_heartbeats() == first && clock_monotonic() < until)
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    CU_ASSERT(count_heartbeats() > first);
}

/* The heartbeat after each grant writes the file. The log has the first failure and the end of the failures. */
static void no_room_for_the_session(void) {
    static const char failed[] = "/state/session: cannot write (No space left on device)";
    struct child *holder;
    const char *log;

    TEST_NEEDS_ROOT();
    if (!host_up_small())
        TEST_SKIP("no mount namespace here");
    holder = berth_at_gate(ant, "-p net", "holder", "started"); /* an idle host has few heartbeats */
    fill();
    for (int i = 0; i < 3; i++) {
        TEST_INT(berth(ant, "run -p db -- true"), 125);
        await_heartbeat();
    }
    log = strstr(host_log(ant), failed);
    CU_ASSERT(log && !strstr(log + 1, failed));
    TEST_INT(unlink(fill_path()), 0);
    TEST_INT(berth(ant, "run -p db -- true"), 0);
    await_log("/state/session: writable again");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

static void no_room_for_a_hold(void) {
    TEST_NEEDS_ROOT();
    if (!host_up_small())
        TEST_SKIP("no mount namespace here");
    fill();
    TEST_INT(berth(ant, "run -p db --name one -- true"), 125);
    check_failed_hold("one", "No space left on device");
    TEST_INT(berth(ant, "run -p own --name two -- true"), 125); /* permits of this host are released at once */
    check_failed_hold("two", "No space left on device");
    TEST_INT(berth(ant, "run -n -E 9 -p db -- true"), 125); /* it was granted: -E is not for that */
    TEST_INT(host_pool(ant, "db", "used"), 0);
    TEST_INT(host_pool(ant, "own", "used"), 0);
    TEST_INT(unlink(fill_path()), 0);
    TEST_INT(berth(ant, "run -n -p db -p own -- true"), 0);
}

static void no_room_for_a_job(void) {
    char reason[192];

    TEST_NEEDS_ROOT();
    if (!host_up_small())
        TEST_SKIP("no mount namespace here");
    fill();
    TEST_INT(berth(ant, "start one --wait"), 125);
    snprintf(reason, sizeof(reason), "resources: cannot write below %s/runner/runs: No space left on device", ant->runtime);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, reason));
    TEST_STRING(event_get(host_await(ant, "exited", "job=one result=not-started"), "reason"), reason);
    TEST_INT(berth(ant, "start free --wait"), 125); /* no permits: never 75 */
    host_await_pool(ant, "db", "used", 0);
    TEST_INT(unlink(fill_path()), 0);
    TEST_INT(berth(ant, "start one --wait"), 0);
}

/* Another host's release grants a claim while this berthd cannot open any file. */
static void no_descriptors(void) {
    struct child *holder, *waiter;
    struct rlimit none, before;
    struct host *bee;

    ant = host_up("ant", POOLS);
    bee = host_up("bee", POOLS);
    holder = berth_at_gate(bee, "-p db", "holder", "started");
    waiter = berth_start(ant, "run -p db --name late -- true");
    host_await(ant, "queued", "job=late");
    TEST_INT(prlimit(ant->berthd->pid, RLIMIT_NOFILE, NULL, &before), 0);
    none = (struct rlimit) {3, before.rlim_max};
    TEST_INT(prlimit(ant->berthd->pid, RLIMIT_NOFILE, &none, NULL), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    TEST_INT(berth_end(waiter), 125);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, ": Too many open files); the permits are released\n"));
    host_await(ant, "released", "job=late");
    TEST_INT(prlimit(ant->berthd->pid, RLIMIT_NOFILE, &before, NULL), 0);
    TEST_INT(berth(ant, "run --wait 10s -p db -- true"), 0);
}

#define EFFECTS 1000000 /* of berthd, more than it has in a test */

/* berthd does not repeat a failed write at once: while a command runs, berthd has the effects of that run
 * alone. */
static void check_no_loop(void) {
    host_clock_end_berthd(ant, EFFECTS);
    TEST_INT(berth(ant, "run -p own -- sleep 0.3"), 0);
    CU_ASSERT(EFFECTS - host_clock_effects(ant) < 100);
    host_clock_end_berthd(ant, 0);
}

/* Once there is room, the record is written within a minute, although nothing is begun. */
static void no_room_for_a_record(void) {
    char state[80], path[96];
    struct stat status;

    TEST_NEEDS_ROOT();
    if (!unshare_mounts())
        TEST_SKIP("no mount namespace here");
    snprintf(state, sizeof(state), "%s/lasting", cluster.folder);
    ant = host_add_alone("ant", HOST_LASTING OWN "job \"a\" { command = {\"/bin/true\"} max-silence = \"1d\" }\n",
                         cluster.folder);
    mount_small(state, "size=16k,mode=0700");
    host_clock_give(ant);
    fill();
    host_start(ant);
    TEST_INT(berth(ant, "start a --wait"), 0);
    await_log("cannot write: No space left on device");
    check_no_loop();
    TEST_INT(unlink(fill_path()), 0);
    host_clock_jump(ant, 61 * USEC_PER_SEC);
    await_log("writable again");
    snprintf(path, sizeof(path), "%s/jobs", state);
    CU_ASSERT(stat(path, &status) == 0 && status.st_size > 0);
}

static CU_TestInfo tests[] = {
    {"no room for a hold", no_room_for_a_hold},
    {"no room for the session", no_room_for_the_session},
    {"no room for a job", no_room_for_a_job},
    {"no descriptors", no_descriptors},
    {"no room for a record", no_room_for_a_record},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "full", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
