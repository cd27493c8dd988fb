/* SPDX-License-Identifier: MIT */

/* `berth redis`: facts about Redis, with a warning, while Redis is away, and without Redis. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\n"
#define JOBS                                                                                   \
    POOLS "job \"slow\" { command = {\"/bin/true\"} pools = {\"db\"} stop-timeout = \"800ms\" }\n" \
          "job \"fast\" { command = {\"/bin/true\"} stop-timeout = \"100ms\" }\n"

static bool has_line(const char *line) {
    char whole[200];

    (void) snprintf(whole, sizeof(whole), "%s\n", line);
    return strstr(berth_out, whole) != NULL;
}

static bool is_by_text(void) {
    const char *rights = getenv("BERTH_TEST_ACL");

    return rights && strcmp(rights, "text") == 0;
}

#define SHOWS(line) TEST_STRING(has_line(line) ? (line) : berth_out, line)

static void test_connected(void) {
    struct host *ant = host_up("ant", "%s", JOBS);
    char address[160];
    json_t *json;

    json = berth_json(ant, "redis");
    AT_INT(json, "schema", 1);
    AT_STRING(json, "state", "connected");
    AT_NULL(json, "reason");
    AT_NULL(json, "since");
    if (cluster.redis.tls_port > 0) {
        AT_STRING(json, "tls.version", "TLSv1.3");
        (void) snprintf(address, sizeof(address), "127.0.0.1:%u", cluster.redis.tls_port);
    } else {
        AT_NULL(json, "tls");
        (void) snprintf(address, sizeof(address), "%s", cluster.redis.socket);
    }
    AT_STRING(json, "address", address);
    CU_ASSERT(json_is_string(berth_at(json, "server")) && json_is_string(berth_at(json, "version")));
    AT_STRING(json, "via", "url");
    AT_STRING(json, "role", "master");
    AT_INT(json, "replicas", 0);
    AT_STRING(json, "policy", "noeviction");
    CU_ASSERT(berth_number_at(json, "clients") >= 2);
    CU_ASSERT(berth_number_at(json, "clients_max") > 100);
    AT_NULL(json, "slot");
    CU_ASSERT(berth_number_at(json, "scripts") > 10 || is_by_text());
    CU_ASSERT(json_is_real(berth_at(json, "rtt_ms")));
    CU_ASSERT(json_real_value(berth_at(json, "rtt_ms")) > 0 && json_real_value(berth_at(json, "rtt_ms")) < 3000);
    AT_INT(json, "grace_ms", 0);
    AT_INT(json, "lease_ms", 3000);
    AT_INT(json, "heartbeat_ms", 500);
    AT_INT(json, "stop_timeout_ms", 800);
    AT_INT(json, "outage_ms", 3000 - 500 - 500 - 800);
    TEST_INT(json_array_size(berth_at(json, "warnings")), 0);
    json_decref(json);
    TEST_INT(berth(ant, "redis"), 0);
    TEST_STRING(berth_err, "");
    CU_ASSERT(strncmp(berth_out, "server     ", 11) == 0 && strstr(berth_out, address));
    SHOWS("role       master, 0 replicas");
    SHOWS("memory     noeviction");
    SHOWS("grace      none");
    SHOWS("outage     jobs go on for 1.2s without Redis (lease 3s, heartbeat 0.5s,\n           stop-timeout 0.8s)");
    CU_ASSERT(strstr(berth_out, "\nround trip ") && strstr(berth_out, " (of heartbeats: median of the last 20)\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, is_by_text() ? "\nscripts    sent by their text: Redis refuses SCRIPT\n" : " loaded\n"));
    CU_ASSERT(!strstr(berth_out, "warning"));
    TEST_INT(berth(ant, "redis now"), 64);
}

/* The warnings come from the INFO of the last lease. */
static void test_warnings(void) {
    static const char *const extra[] = {"--maxmemory-policy", "volatile-ttl", "--maxclients", "3", NULL};
    struct host *ant;
    json_t *json;

    redis_server_kill(&cluster.redis);
    cluster.redis_extra = extra;
    TEST_INT(redis_server_start(&cluster.redis, extra), 0);
    ant = host_up("ant", POOLS);
    for (usec_t until = clock_boottime() + HOST_PATIENCE; berth(ant, "redis") == 0 && clock_boottime() < until;)
        ;
    TEST_INT(berth(ant, "redis"), 1);
    SHOWS("memory     volatile-ttl");
    SHOWS("clients    3 of 3");
    SHOWS("warning    Redis has 3 of 3 clients: each host takes 2");
    SHOWS("outage     jobs go on for 1.5s without Redis (lease 3s, heartbeat 0.5s,\n           stop-timeout 0.5s)");
    TEST_INT(berth(ant, "redis --json"), 1);
    json = json_loads(berth_out, 0, NULL);
    AT_STRING(json, "warnings.0", "Redis has 3 of 3 clients: each host takes 2");
    json_decref(json);
    cluster.redis_extra = NULL;
}

/* The state is "connecting" until the first heartbeat is answered. */
static void await_heartbeat(struct host *h) {
    for (usec_t until = clock_boottime() + HOST_PATIENCE; berth(h, "redis") == 69 && clock_boottime() < until;)
        ;
}

static void test_away(void) {
    struct host *ant = host_up("ant", POOLS);
    json_t *json;

    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    TEST_INT(berth(ant, "redis"), 69);
    CU_ASSERT(strncmp(berth_out, "state      away (lost ", 22) == 0 || strncmp(berth_out, "state      connecting (lost ", 28) == 0);
    CU_ASSERT(strstr(berth_out, "\nserver     ") && !strstr(berth_out, "\nrole") && strstr(berth_out, "\noutage     "));
    TEST_INT(berth(ant, "redis --json"), 69);
    json = json_loads(berth_out, 0, NULL);
    CU_ASSERT(json_is_string(berth_at(json, "reason")) && json_is_string(berth_at(json, "since")));
    CU_ASSERT(json_is_string(berth_at(json, "address")));
    AT_NULL(json, "version");
    AT_NULL(json, "rtt_ms");
    AT_NULL(json, "grace_ms");
    AT_INT(json, "outage_ms", 1500);
    json_decref(json);
    host_mark(ant);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    await_heartbeat(ant);
    json = berth_json(ant, "redis");
    CU_ASSERT(berth_number_at(json, "grace_ms") > 0 && berth_number_at(json, "grace_ms") <= 3000); /* Redis lost its data */
    json_decref(json);
    TEST_INT(berth(ant, "redis"), 0);
    CU_ASSERT(strstr(berth_out, "\ngrace      nothing is granted for up to ") != NULL);
    host_end_grace(ant);
}

/* Redis was never reached: both lines name the address that was tried. */
static void test_never_there(void) {
    struct host *ant = host_add_alone("ant", "redis { url = \"redis://127.0.0.1:1\" }\n" POOLS);
    json_t *json;

    host_start(ant);
    host_await(ant, "redis-lost", " ");
    TEST_INT(berth(ant, "redis"), 69);
    CU_ASSERT(strstr(berth_out, "): 127.0.0.1:1: Connection refused\n") != NULL);
    SHOWS("server     127.0.0.1:1");
    TEST_INT(berth(ant, "redis --json"), 69);
    json = json_loads(berth_out, 0, NULL);
    AT_STRING(json, "address", "127.0.0.1:1");
    AT_STRING(json, "reason", "127.0.0.1:1: Connection refused");
    json_decref(json);
}

/* Another Redis that has a namespace of the same name. */
static void test_accept(void) {
    struct host *ant = host_up("ant", POOLS);

    TEST_INT(berth(ant, "redis --accept"), 64);
    TEST_STRING(berth_err, "berth: nothing to accept: Redis has no other namespace than the one of this host\n");
    host_mark(ant);
    freeReplyObject(redis_command(&cluster.redis, "FLUSHALL"));
    freeReplyObject(redis_command(&cluster.redis, "HSET berth:{test}:meta schema 1 id 0123456789abcdef0123456789abcdef"));
    host_await(ant, "namespace-differs", " ");
    TEST_INT(berth(ant, "redis"), 69);
    CU_ASSERT(strstr(berth_out, ": this Redis has another namespace") != NULL);
    TEST_INT(berth(ant, "limit db 1"), 69);
    CU_ASSERT(strstr(berth_err, "this Redis has another namespace \"test\", not the one that this host was in: wrong url?") != NULL);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    TEST_INT(berth(ant, "redis --accept"), 0);
    host_await(ant, "redis-connected", " ");
    host_end_grace(ant);
    TEST_INT(berth(ant, "run -p db -- true"), 0);
}

static void write_password(const char *path, const char *password) {
    FILE *f = fopen(path, "we");

    CU_ASSERT_FATAL(f != NULL);
    fputs(password, f);
    TEST_INT(fclose(f), 0);
}

static void expect_reload(struct host *h, const char *warning) {
    TEST_INT(berth(h, "reload"), 0);
    if (*warning == '\0' || !strstr(berth_err, warning))
        TEST_STRING(berth_err, warning);
}

/* The config is in force, but its password for Redis is wrong: the old connections go on. */
static void test_reload(void) {
    static const char kept[] = "berth: the config is in force, but the old connections to Redis stay, "
                               "new ones fail: Redis refuses the user or the password (WRONGPASS)\n";
    struct host *ant;
    char path[96];

    cluster.lease = "1m"; /* no busy machine loses Redis */
    cluster.heartbeat = "10s";
    (void) snprintf(path, sizeof(path), "%s/password", cluster.folder);
    write_password(path, "first");
    freeReplyObject(redis_command(&cluster.redis, "ACL SETUSER one on >first >second ~* &* +@all"));
    ant = host_add_alone("ant", "redis { url = \"unix://%s\" username = \"one\" password-file = \"%s\" }\n" POOLS,
                         cluster.redis.socket, path);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    expect_reload(ant, "");
    write_password(path, "wrong");
    expect_reload(ant, kept);
    expect_reload(ant, kept); /* each reload tries the password */
    TEST_INT(berth(ant, "redis"), 1);
    CU_ASSERT(strstr(berth_out, "\nwarning    the old connections to Redis stay, new ones fail") != NULL);
    TEST_INT(host_count(ant, "redis-lost", " "), 0);
    write_password(path, "second");
    expect_reload(ant, "");
    TEST_INT(berth(ant, "redis"), 0);
    host_mark(ant);
    freeReplyObject(redis_command(&cluster.redis, "ACL DELUSER one"));
    host_await(ant, "redis-lost", " ");
    write_password(path, "third");
    for (int i = 0; i < 2; i++) /* also if berthd has tried that password */
        expect_reload(ant, "berth: the config is in force, but Redis cannot be used: Redis refuses the user or the password");
    freeReplyObject(redis_command(&cluster.redis, "ACL SETUSER one on >third ~* &* +@all"));
    host_await(ant, "redis-connected", " ");
    host_end_grace(ant);
}

static void test_none(void) {
    struct host *ant = host_add_alone("ant", "pool \"here\" { limit = 1 scope = \"host\" }\n");

    host_start(ant);
    TEST_INT(berth(ant, "redis"), 64);
    TEST_STRING(berth_err, "berth: there is no Redis: the config has no redis section\n");
}

static CU_TestInfo tests[] = {
    {"connected", test_connected},
    {"warnings", test_warnings},
    {"away", test_away}, {"never there", test_never_there},
    {"accept", test_accept},
    {"reload", test_reload},
    {"none", test_none},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis-verb", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
