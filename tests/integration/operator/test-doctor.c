/* SPDX-License-Identifier: MIT */

/* `berth doctor` on a healthy cluster, and with berthd, its config or Redis broken: each finding, ended by
 * the remedy that it names. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/remedy.h"
#include "tests/harness/redis/proxy.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\npool \"net\" { limit = 2 scope = \"host\" }\n"
#define JOBS POOLS "job \"good\" { command = {\"/bin/true\"} pools = {\"db\"} }\n"

/* Runs these checks alone. */
static int doctor(struct host *h, const char *checks) {
    return berth(h, "doctor -c %s --only %s", h->config, checks);
}

/* The output has this text, wherever its lines are broken. */
static void expect(const char *text) {
    _cleanup_free_ char *said = strdup(berth_out);
    char *to = said;

    for (const char *from = berth_out; *from; from++)
        if (!strchr(" \n", *from) || (to > said && to[-1] != ' '))
            *to++ = (char) (*from == '\n' ? ' ' : *from);
    *to = '\0';
    if (!strstr(said, text))
        TEST_STRING(said, text);
}

static void is_fine(struct host *h, const char *check) {
    TEST_INT(doctor(h, check), 0);
    TEST_STRING(berth_out, "1 check fine\n");
    TEST_STRING(berth_err, "");
}

/* Runs the check until it has this status. */
static void await_status(struct host *h, const char *check, int status) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    int got;

    while ((got = doctor(h, check)) != status && clock_boottime() < until)
        ;
    TEST_INT(got, status);
}

/* Runs the check until its finding is a warning or critical. */
static void await_finding(struct host *h, const char *check) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    int got;

    while ((got = doctor(h, check)) != 1 && got != 2 && clock_boottime() < until)
        ;
}

/* Checks that depend on this machine or on processes of other users are skipped. */
static void test_healthy(void) {
    struct host *ant = host_up("ant", "%s", JOBS), *bee = host_up("bee", "%s", JOBS);
    json_t *json;

    for (int i = 0; i < 2; i++) {
        struct host *h = i == 0 ? ant : bee;

        TEST_INT(berth(h, "run -p db -- true"), 0);
        json = berth_json(h, "doctor -c %s --skip journal,journal-age,journal-rate,unit,stray-process,redis-version,redis-acl",
                          h->config);
        AT_INT(json, "schema", 1);
        AT_STRING(json, "host", h->name);
        AT_STRING(json, "status", "ok");
        TEST_INT(json_array_size(berth_at(json, "findings")), 0);
        TEST_INT(json_array_size(berth_at(json, "fine")), 32);
        AT_STRING(json, "fine.0", "daemon");
        json_decref(json);
    }
    TEST_INT(berth(ant, "doctor -c %s --nagios --only config,heartbeat", ant->config), 0);
    expect("BERTH OK - 2 checks fine | checks=2 crit=0 warn=0 redis_rtt=0.");
    expect("s heartbeat_age=");
    expect("s;9.5;17 ");
}

static void test_words(void) {
    struct host *ant = host_add("ant", "%s", JOBS);

    TEST_INT(berth(ant, "doctor --list"), 0);
    expect("redis-policy Redis evicts keys ");
    TEST_INT(berth(ant, "doctor --only redis-polcy"), 64);
    TEST_STRING(berth_err,
                "berth: no check \"redis-polcy\" (did you mean \"redis-policy\"? --list has all)\n");
    TEST_INT(berth(ant, "doctor --skip daemon,quux"), 64);
    TEST_STRING(berth_err, "berth: no check \"quux\" (--list has all)\n");
    TEST_INT(berth(ant, "doctor --json --nagios"), 64);
    TEST_INT(berth(ant, "doctor now"), 64);
}

/* Without berthd, its absence is the finding, and the other checks report what they lack. */
static void test_daemon(void) {
    struct host *ant = host_add("ant", "%s", JOBS);
    usec_t began;

    TEST_INT(berth(ant, "doctor -c %s --only daemon,config,grace,paused", ant->config), 2);
    expect("CRIT daemon berthd cannot be reached: ");
    expect(" does not exist ");
    expect(" 1 check fine, 2 not possible (grace, paused: needs berthd) ");
    TEST_INT(doctor(ant, "grace"), 3);
    TEST_STRING(berth_out, "0 checks fine, 1 not possible (grace: needs berthd)\n");
    host_start(ant);
    host_open(ant);
    is_fine(ant, "daemon");
    host_signal(ant, SIGSTOP);
    began = clock_boottime();
    TEST_INT(berth(ant, "doctor -c %s", ant->config), 2);
    CU_ASSERT(clock_boottime() - began < 10 * USEC_PER_SEC);
    expect(" does not answer: it hangs or is overloaded ");
    host_signal(ant, SIGCONT);
    is_fine(ant, "daemon");
    host_kill(ant);
    TEST_INT(doctor(ant, "daemon"), 2);
    expect("no process listens on ");
    host_start(ant);
    host_await(ant, "redis-connected", " ");
}

/* A berthd without berth-runner starts no job. */
static void test_runner(void) {
    struct host *ant = host_up("ant", "%s", JOBS), *bee = host_add("bee", "%s", JOBS);
    char program[512];
    char *argv[] = {program, (char *) "-c", bee->config, NULL};
    usec_t until = clock_boottime() + HOST_PATIENCE;
    struct child *waiter;

    is_fine(ant, "daemon");
    (void) snprintf(program, sizeof(program), "%s/berthd", cluster.build);
    bee->berthd = host_spawn(bee, argv, NULL);
    CU_ASSERT_FATAL(bee->berthd != NULL);
    while (berth(bee, "version") == 0 && !strstr(berth_out, "berthd ") && clock_boottime() < until)
        ;
    TEST_INT(doctor(bee, "daemon"), 2);
    expect("CRIT daemon berth-runner does not run: no process listens on ");
    TEST_INT(berth(bee, "run -n -p db -- true"), 75);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "no permit: berthd is still recovering, and cannot reach berth-runner\n"));
    waiter = berth_start(bee, "run -v -p db --name waiter -- true");
    while (!strstr(child_text(waiter, 2), "waiting: no berth-runner") && clock_boottime() < until)
        child_turn(until);
    CU_ASSERT_PTR_NOT_NULL(strstr(child_text(waiter, 2), "waiting: no berth-runner"));
    TEST_INT(berth(bee, "explain waiter"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " on bee, pending: no berth-runner\n  next     berth doctor says why; "));
    child_kill(waiter, SIGTERM);
    TEST_INT(berth_end(waiter), 143);
}

static void set_changed(const char *path, long ahead_sec) {
    time_t at = (time_t) (clock_realtime() / USEC_PER_SEC) + ahead_sec;
    struct timespec times[2] = {{.tv_sec = at}, {.tv_sec = at}};

    TEST_INT(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_config(void) {
    struct host *ant = host_up("ant", "%s", JOBS), *bee = host_add("bee", "%s", JOBS);

    is_fine(ant, "config");
    set_changed(ant->config, 60);
    TEST_INT(doctor(ant, "config"), 1);
    expect(" was changed after berthd read it ");
    remedy_run(ant, ant, "config"); /* the file's time has not come */
    set_changed(ant->config, -60);
    is_fine(ant, "config");
    host_set_config(ant, "pool \"db\" { limit = many }\n");
    TEST_INT(doctor(ant, "config"), 2);
    expect("CRIT config ");
    expect("ant.conf:9: pool \"db\": limit \"many\" must be ");
    TEST_INT(berth(ant, "reload"), 78);
    host_set_config(ant, "%s", JOBS);
    set_changed(ant->config, -60);
    TEST_INT(doctor(ant, "config"), 1);
    expect("berthd refused the changed config");
    remedy_run(ant, ant, "config");
    is_fine(ant, "config");
    host_set_config(ant, POOLS "job \"bad\" { command = {\"/no/such/program\"} }\n");
    set_changed(ant->config, -60);
    TEST_INT(doctor(ant, "config"), 1);
    expect("/no/such/program");
    TEST_INT(berth(ant, "doctor -c %s --only config,files", bee->config), 3);
    expect("0 checks fine, 2 not possible (config: ");
    expect("files: needs the config of this berthd: -c)");
    TEST_INT(berth(ant, "doctor -c /nonexistent/berth.conf --only config"), 2);
}

static void test_away(void) {
    struct host *ant = host_up("ant", "%s", JOBS);

    is_fine(ant, "redis-away");
    is_fine(ant, "grace");
    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    TEST_INT(doctor(ant, "redis-away,limits-differ"), 1);
    expect("WARN redis-away Redis at ");
    expect(" 0 checks fine, 1 not possible (limits-differ: needs Redis) ");
    host_mark(ant);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    await_status(ant, "redis-away", 0);
    TEST_INT(doctor(ant, "grace"), 0);
    expect("NOTE grace grace period: nothing is granted for up to ");
    host_end_grace(ant);
    is_fine(ant, "grace");
}

static void test_policy(void) {
    struct host *ant;

    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET maxmemory-policy allkeys-lru"));
    ant = host_add("ant", "%s", JOBS);
    host_start(ant);
    await_status(ant, "redis-policy", 2);
    expect("CRIT redis-policy Redis evicts keys (maxmemory-policy is");
    expect("redis-cli -s /");
    expect("SET maxmemory-policy noeviction ");
    remedy_run(ant, ant, "redis-policy");
    host_open(ant);
    is_fine(ant, "redis-policy");
}

/* Under BERTH_TEST_ACL=text there is a note that Redis refuses SCRIPT. */
static void test_rights(void) {
    struct host *ant;

    freeReplyObject(redis_command(&cluster.redis, "ACL SETUSER default -sscan"));
    ant = host_add("ant", "%s", JOBS);
    host_start(ant);
    await_status(ant, "redis-acl", 2);
    expect("CRIT redis-acl Redis's user may not run all that berth needs (see redis.acl); it lacks SSCAN ");
    freeReplyObject(redis_command(&cluster.redis, "ACL SETUSER default +sscan")); /* as it says */
    host_open(ant);
    await_status(ant, "redis-acl", 0);
}

static void test_latency(void) {
    struct proxy proxy = {};
    struct host *ant;
    char path[96];

    (void) snprintf(path, sizeof(path), "%s/proxy", cluster.folder);
    TEST_INT(proxy_start(&proxy, path, cluster.redis.socket), 0);
    cluster.lease = "6s";
    cluster.heartbeat = "500ms"; /* its timeout, too */
    ant = host_add("ant", "%s", JOBS);
    ant->redis = path;
    host_set_config(ant, "%s", JOBS);
    host_start(ant);
    host_open(ant);
    proxy_set(&proxy, PROXY_DELAY, 60 * USEC_PER_MSEC, false);
    await_finding(ant, "redis-latency");
    expect(" redis-latency Redis answers a heartbeat in ");
    proxy_set(&proxy, PROXY_PASS, 0, false);
    await_status(ant, "redis-latency", 0);
    proxy_set(&proxy, PROXY_HOLD, 0, false);
    await_finding(ant, "heartbeat");
    expect(" heartbeat Redis has answered no heartbeat for ");
    proxy_set(&proxy, PROXY_PASS, 0, false);
    await_status(ant, "heartbeat,redis-away", 0);
    host_stop(ant);
    proxy_done(&proxy);
}

/* berthd knows the number of clients from its last INFO, which it asks for once a lease. */
static void test_warnings(void) {
    struct host *ant;

    cluster.lease = "3s";
    cluster.heartbeat = "500ms";
    ant = host_up("ant", "%s", JOBS);
    await_status(ant, "redis-warnings", 0);
    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET maxclients 3"));
    await_status(ant, "redis-warnings", 1);
    expect("WARN redis-warnings Redis has 3 of 3 clients");
    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET maxclients 1000"));
    await_status(ant, "redis-warnings", 0);
}

/* The snapshot after the repair succeeds. */
static void test_persistence(void) {
    struct host *ant;
    char dump[96];

    cluster.lease = "3s";
    cluster.heartbeat = "500ms";
    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET stop-writes-on-bgsave-error no"));
    ant = host_up("ant", "%s", JOBS);
    is_fine(ant, "redis-persistence");
    TEST_INT(redis_server_break_snapshots(&cluster.redis, true), 0);
    await_status(ant, "redis-persistence", 1);
    (void) snprintf(dump, sizeof(dump), "%s/dump.rdb", cluster.redis.directory);
    TEST_INT(rmdir(dump), 0);
    remedy_run(ant, ant, "redis-persistence");
    await_status(ant, "redis-persistence", 0);
}

/* Keys of others with a time to live are evicted, as volatile-lru does; the count begins again. */
static void test_evicted(void) {
    struct host *ant;

    cluster.lease = "3s";
    cluster.heartbeat = "500ms";
    ant = host_up("ant", "%s", JOBS);
    is_fine(ant, "redis-memory");
    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET maxmemory-policy volatile-lru"));
    freeReplyObject(redis_command(&cluster.redis, "SET others value EX 1000"));
    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET maxmemory 1"));
    freeReplyObject(redis_command(&cluster.redis, "SET more value EX 1000"));
    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET maxmemory 0"));
    await_status(ant, "redis-memory", 1);
    expect("WARN redis-memory Redis has evicted 1 key since it started ");
    remedy_run(ant, ant, "redis-memory");
    await_status(ant, "redis-memory", 0);
}

static void test_files(void) {
    struct host *ant = host_up("ant", "%s", JOBS);
    char path[96];

    is_fine(ant, "files");
    (void) snprintf(path, sizeof(path), "%s/holds", ant->runtime);
    TEST_INT(chmod(path, 0750), 0);
    TEST_INT(doctor(ant, "files"), 1);
    remedy_run(ant, ant, "files");
    is_fine(ant, "files");
    TEST_INT(chmod(path, 0702), 0);
    TEST_INT(doctor(ant, "files"), 2);
    expect(": others may write there ");
    expect("chmod 0700 ");
    remedy_run(ant, ant, "files");
    is_fine(ant, "files");
    if (geteuid() != 0)
        return;
    TEST_INT(chown(path, 1, (gid_t) -1), 0);
    TEST_INT(doctor(ant, "files"), 2);
    remedy_run(ant, ant, "files");
    is_fine(ant, "files");
}

static CU_TestInfo tests[] = {
    {"a healthy cluster has no finding", test_healthy},
    {"words", test_words},
    {"berthd is away or hangs", test_daemon},
    {"berth-runner does not run", test_runner},
    {"the config is wrong or not in force", test_config},
    {"Redis goes and comes", test_away},
    {"Redis evicts keys", test_policy},
    {"the user of Redis lacks rights", test_rights},
    {"Redis is slow, or silent", test_latency},
    {"Redis has many clients", test_warnings},
    {"Redis cannot write a snapshot", test_persistence},
    {"Redis has evicted keys", test_evicted},
    {"others may write below the runtime directory", test_files},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
