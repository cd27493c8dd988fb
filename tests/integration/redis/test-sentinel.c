/* SPDX-License-Identifier: MIT */

/* Redis behind three sentinels: berth finds the master, and follows it while runs live. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/harness/host/host.h"
#include "tests/harness/redis/sentinel-bed.h"
#include "tests/harness/test.h"
#include "tests/harness/redis/tls.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 2 }\n"

static struct sentinel_bed bed;
static const char *connect_timeout; /* line of the config */

static void stop_bed(void) {
    sentinel_bed_done(&bed);
}

static void up_with(int (*start)(struct sentinel_bed *)) {
    cluster_up_without_redis();
    cluster.on_stopped = stop_bed;
    cluster.lease = "30s"; /* a failover on a busy machine fits in it */
    cluster.heartbeat = "2s";
    connect_timeout = "";
    if (start(&bed) < 0)
        abort();
    cluster.master = &bed.nodes[0];
}

static void up(void) {
    up_with(sentinel_bed_start);
}

static void up_tls(void) {
    up_with(sentinel_bed_start_tls);
}

static void must(redisReply *reply) {
    CU_ASSERT(reply && reply->type != REDIS_REPLY_ERROR);
    if (reply)
        freeReplyObject(reply);
}

static struct host *add_host(const char *name, const char *options, const char *jobs) {
    struct host *h = host_add(name, " ");

    h->url = bed.is_tls ? "rediss:///0" : "redis:///0";
    h->redis_options = options;
    host_set_config(h, POOLS "%s", jobs);
    host_start(h);
    return h;
}

static const char *options(void) {
    static char text[256];

    (void) snprintf(text, sizeof(text), "%s    failover-margin = \"1s\"\n%s", bed.options, connect_timeout);
    return text;
}

static const char *address_of(int node) {
    static char text[40];

    (void) snprintf(text, sizeof(text), "127.0.0.1:%s", bed.ports[node]);
    return text;
}

/* --- the scene: a run of ant holds all of the pool, and a run of bee waits --- */

static struct host *ant, *bee;
static struct child *waiting;
static char jobs[700]; /* of ant */

static void set_scene(void) {
    (void) snprintf(jobs, sizeof(jobs), "job \"long\" { %s pools = {\"db:2\"} }\n", witness_at_gate("long", 0));
    ant = add_host("ant", options(), jobs);
    host_open(ant);
    bee = add_host("bee", options(), "");
    host_await(bee, "redis-connected", " ");
    TEST_INT(berth(ant, "start long"), 0);
    host_await(ant, "started", "job=long");
    waiting = berth_start(bee, "run -p db -- %s --id waiting", cluster.command);
    host_await(bee, "queued", "pools=db:1");
    host_mark(ant);
    host_mark(bee);
}

/* Returns the node that the host is connected to as master; 0: the first one, or none. */
static int master_of(struct host *h) {
    const char *state, *address;
    int master = 0;
    json_t *json;

    (void) berth(h, "redis --json"); /* 69: Redis is away */
    json = json_loads(berth_out, 0, NULL);
    state = json_string_value(json_object_get(json, "state"));
    address = json_string_value(json_object_get(json, "address"));
    for (int i = 1; i < SENTINEL_BED_NODES; i++)
        if (state && address && strcmp(state, "connected") == 0 && strcmp(address, address_of(i)) == 0)
            master = i;
    json_decref(json);
    return master;
}

/* The node that both hosts are connected to. Sentinels may promote a node, give it up and promote another.
 */
static int await_master(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    int master;

    while (((master = master_of(ant)) == 0 || master_of(bee) != master) && clock_boottime() < until)
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    return master;
}

/* Checks that both hosts find the new master, that the run lives, and that the other run gets its permit
 * next. */
static void end_scene(void) {
    int master;

    host_await(ant, "redis-moved", " ");
    host_await(bee, "redis-moved", " ");
    master = await_master();
    CU_ASSERT_FATAL(master > 0 && master_of(bee) == master);
    host_await(bee, "redis-moved", "redis=%s", address_of(master));
    CU_ASSERT_PTR_NOT_NULL(strstr(bee->event, "reason=\"the sentinels name another master\""));
    cluster.master = &bed.nodes[master];
    TEST_INT(host_count(bee, "granted", "pools=db:1"), 0);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=long result=success");
    host_end_grace(ant);
    TEST_INT(berth_end(waiting), 0);
}

/* Returns the id of a host's connection to a sentinel, or -1. */
static long find_connection(struct redis_server *sentinel) {
    _cleanup_reply_ redisReply *reply = redis_command(sentinel, "CLIENT LIST");
    char *rest = reply && reply->type == REDIS_REPLY_STRING ? reply->str : NULL, *line;
    long id;

    while ((line = strsep(&rest, "\n")))
        if (strstr(line, " name=berth-") && sscanf(line, "id=%ld", &id) == 1)
            return id;
    return -1;
}

static void test_found(void) {
    json_t *json;

    cluster.heartbeat = "10s"; /* and so a timeout of 5 s: no busy machine loses Redis */
    CU_ASSERT(sentinel_bed_tell(&bed, "SENTINEL SET " SENTINEL_BED_MASTER " down-after-milliseconds 9000")); /* nor its master */
    ant = add_host("ant", bed.options, "");
    host_open(ant);
    json = berth_json(ant, "redis");
    AT_STRING(json, "state", "connected");
    AT_STRING(json, "via", "sentinels");
    AT_STRING(json, "master_name", SENTINEL_BED_MASTER);
    AT_STRING(json, "address", address_of(0));
    AT_STRING(json, "role", "master");
    AT_INT(json, "margin_ms", 10000);
    json_decref(json);
    for (unsigned i = 0; i < SENTINEL_BED_NODES; i++)
        TEST_INT(find_connection(&bed.sentinels[i]), -1);
    TEST_INT(berth(ant, "run -p db -- true"), 0);
    TEST_INT(berth(ant, "redis"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, ", master " SENTINEL_BED_MASTER " of the sentinels"));
    CU_ASSERT(sentinel_bed_tell(&bed, "SENTINEL SET " SENTINEL_BED_MASTER " down-after-milliseconds 25000"));
    bee = add_host("bee", bed.options, "");
    host_await(bee, "redis-connected", " ");
    host_await_redis(bee); /* the event comes before the first heartbeat */
    TEST_INT(berth(bee, "redis"), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "the sentinels consider the master down after 25s"));
}

static void test_killed(void) {
    set_scene();
    redis_server_kill(&bed.nodes[0]);
    end_scene();
}

static void test_ordered(void) {
    set_scene();
    CU_ASSERT(sentinel_bed_fail_over(&bed, 0) > 0);
    end_scene();
}

/* The machine of the master and of a sentinel hangs. Both accept connections, but do not reply during the
 * test. The other sentinels name another master. Then the machine goes on, and the old master becomes a
 * replica. */
static void hang(const char *down_after) {
    cluster.lease = "60s";
    connect_timeout = "    connect-timeout = \"30s\"\n";
    set_scene();
    CU_ASSERT(sentinel_bed_tell(&bed, down_after));
    (void) kill(bed.nodes[0].pid, SIGSTOP);
    (void) kill(bed.sentinels[0].pid, SIGSTOP);
    end_scene();
    (void) kill(bed.sentinels[0].pid, SIGCONT);
    (void) kill(bed.nodes[0].pid, SIGCONT);
}

/* The hosts ask the sentinels when these have noticed that the master is down. */
static void test_frozen(void) {
    hang("SENTINEL SET " SENTINEL_BED_MASTER " down-after-milliseconds 1000");
}

/* The hosts ask earlier, and the sentinels name the master that hangs. */
static void test_late(void) {
    hang("SENTINEL SET " SENTINEL_BED_MASTER " down-after-milliseconds 6000");
}

/* All sentinels get other addresses, one after the other, and reloads bring these to the hosts. Then there
 * is a failover. The run goes on. */
static void test_readdressed(void) {
    set_scene();
    for (unsigned i = 0; i < SENTINEL_BED_NODES; i++) {
        CU_ASSERT_FATAL(sentinel_bed_move_sentinel(&bed, i) == 0);
        (void) options();
        host_set_config(ant, POOLS "%s", jobs);
        host_set_config(bee, POOLS);
        TEST_INT(berth(ant, "reload"), 0);
        TEST_INT(berth(bee, "reload"), 0);
        CU_ASSERT_FATAL(sentinel_bed_await_settled(&bed, 0) == 0);
    }
    TEST_INT(host_count(ant, "redis-lost", " ") + host_count(bee, "redis-lost", " "), 0);
    TEST_INT(host_count(ant, "redis-connected", " "), 0); /* the connection has stayed */
    CU_ASSERT(sentinel_bed_fail_over(&bed, 0) > 0);
    end_scene();
}

static long long count_connections(struct redis_server *server) {
    static const char key[] = "total_connections_received:";
    _cleanup_reply_ redisReply *reply = redis_command(server, "INFO stats");
    const char *at = reply && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, key) : NULL;

    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* Waits until a host has asked this sentinel three times. Closes its connection each time. */
static void await_questions(struct redis_server *sentinel) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    for (int n = 0; n < 3; n++) {
        long id;

        while ((id = find_connection(sentinel)) < 0 && clock_boottime() < until)
            child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
        CU_ASSERT_FATAL(id >= 0);
        must(redis_command(sentinel, "CLIENT KILL ID %ld", id));
    }
}

/* berthd waits for a slow master on one connection, whatever the sentinels reply meanwhile. */
static void test_slow(void) {
    long long at_master;

    cluster.lease = "60s";
    connect_timeout = "    connect-timeout = \"30s\"\n";
    CU_ASSERT(sentinel_bed_tell(&bed, "SENTINEL SET " SENTINEL_BED_MASTER " down-after-milliseconds 90000"));
    must(redis_command(
        &bed.nodes[0],
        "CONFIG SET min-replicas-max-lag 90")); /* the master receives nothing of its replicas while it is stopped */
    at_master = count_connections(&bed.nodes[0]);
    (void) kill(bed.nodes[0].pid, SIGSTOP);
    ant = add_host("ant", options(), "");
    await_questions(&bed.sentinels[2]);
    redis_server_kill(&bed.sentinels[0]);
    redis_server_kill(&bed.sentinels[1]);
    await_questions(&bed.sentinels[2]);
    (void) kill(bed.nodes[0].pid, SIGCONT);
    host_open(ant);
    TEST_INT(host_count(ant, "redis-lost", " "), 0);
    TEST_INT(count_connections(&bed.nodes[0]) - at_master, 2); /* for commands and for pushes */
}

/* One sentinel of three is not enough to move a host; a host that starts waits for a majority. */
static void test_minority(void) {
    ant = add_host("ant", bed.options, "");
    host_open(ant);
    redis_server_kill(&bed.sentinels[0]);
    redis_server_kill(&bed.sentinels[1]);
    bee = add_host("bee", bed.options, "");
    host_await(bee, "redis-lost", " ");
    CU_ASSERT_PTR_NOT_NULL(strstr(bee->event, "sentinels: 1 of 3 know the master"));
    TEST_INT(berth(ant, "run -p db -- true"), 0); /* a connected host needs no sentinel */
    CU_ASSERT(redis_server_resume(&bed.sentinels[0]) == 0);
    host_await(bee, "redis-connected", "redis=%s", address_of(0));
}

/* The sentinels have another password than the master. A reload brings it to berthd. */
static void test_password(void) {
    char options[400], path[64];

    for (unsigned i = 0; i < SENTINEL_BED_NODES; i++)
        must(redis_command(&bed.sentinels[i], "ACL SETUSER looker on >secret -@all +sentinel|master +client|setname"));
    for (unsigned i = 0; i < SENTINEL_BED_NODES; i++)
        must(redis_command(&bed.sentinels[i], "ACL SETUSER default resetpass"));
    ant = add_host("ant", bed.options, "");
    host_await(ant, "redis-lost", " ");
    CU_ASSERT_PTR_NOT_NULL(strstr(ant->event, "sentinels: 0 of 3 know the master"));

    (void) snprintf(path, sizeof(path), "%s/password", cluster.folder);
    CU_ASSERT_FATAL(file_write_atomic(path, "secret\n", 7, 0600) == 0);
    (void) snprintf(options, sizeof(options), "%s    sentinel-username = looker\n    sentinel-password-file = \"%s\"\n", bed.options, path);
    ant->redis_options = options;
    host_set_config(ant, POOLS);
    TEST_INT(berth(ant, "reload"), 0);
    host_open(ant);
    (void) unlink(path);
}

static void test_unknown_master(void) {
    char options[200];

    (void) snprintf(options, sizeof(options), "%.*s\n    master = flet\n", (int) (strchr(bed.options, '\n') - bed.options), bed.options);
    ant = add_host("ant", options, "");
    host_await(ant, "redis-lost", " ");
    CU_ASSERT_PTR_NOT_NULL(strstr(ant->event, "sentinels do not know a master \"flet\"; correct the option master"));
}

/* The sentinels are asked by TLS, and their certificates are verified. */
static void test_tls(void) {
    char trusting[400], distrusting[400];
    struct tls_place other = {};

    CU_ASSERT_FATAL(tls_place_init(&other) == 0);
    (void) snprintf(distrusting, sizeof(distrusting), "%s    tls-ca = \"%s\"\n", bed.options, tls_place_path(&other, "ca.crt"));
    bee = add_host("bee", distrusting, "");
    host_await(bee, "redis-lost", " ");
    CU_ASSERT_PTR_NOT_NULL(strstr(bee->event, "sentinels: 0 of 3 know the master"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bee->event, "the certificate's issuer is not trusted"));

    (void) snprintf(trusting, sizeof(trusting), "%s    tls-ca = \"%s\"\n", bed.options,
                    tls_place_path(tls_shared_place(), "ca.crt"));
    ant = add_host("ant", trusting, "");
    host_open(ant);
    TEST_INT(berth(ant, "run -p db -- true"), 0);
    host_mark(ant);
    CU_ASSERT(sentinel_bed_fail_over(&bed, 0) > 0);
    host_await(ant, "redis-moved", " ");
    host_await(ant, "redis-connected", " ");
    cluster.master = &bed.nodes[master_of(ant)];
    TEST_INT(host_count(bee, "redis-connected", " "), 0);
    bee->redis_options = trusting;
    host_set_config(bee, POOLS);
    TEST_INT(berth(bee, "reload"), 0);
    host_await(bee, "redis-connected", " ");
    host_end_grace(ant);
    TEST_INT(berth(bee, "run -p db -- true"), 0);
    tls_place_done(&other);
}

static CU_TestInfo tests[] = {{"found", test_found},
                              {"killed", test_killed},
                              {"ordered", test_ordered},
                              {"frozen", test_frozen},
                              {"readdressed", test_readdressed},
                              {"late", test_late},
                              {"slow", test_slow},
                              {"minority", test_minority},
                              {"password", test_password},
                              {"unknown master", test_unknown_master},
                              CU_TEST_INFO_NULL};

static CU_TestInfo by_tls[] = {{"tls", test_tls}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "sentinel", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
            {.pName = "sentinel by TLS", .pSetUpFunc = up_tls, .pTearDownFunc = cluster_down,
             .pTests = by_tls});
