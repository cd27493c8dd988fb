/* SPDX-License-Identifier: MIT */

/* The reply to INFO: which servers are refused, with which message, and what berth warns of. */

#include <string.h>

#include "base/cleanup.h"
#include "store/redis/client/server-info.h"
#include "tests/harness/test.h"

#define ID "master_replid:0123456789abcdef0123456789abcdef01234567\r\n"
#define GOOD "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n" ID
#define BUT(policy) "redis_version:7.0.15\r\nrole:master\r\n" ID "maxmemory_policy:" policy "\r\n"
#define NO_ID                                                                                               \
    "Redis does not report its replication id: berth could not notice a failover (INFO replication has no "   \
    "master_replid)"
#define EVICTS(policy) "Redis evicts keys (maxmemory-policy is \"" policy "\"): set it to noeviction"

static const struct verdict {
    const char *name, *info;
    const char *why; /* NULL: usable */
    enum redis_error error;
} verdicts[] = {
    {"a plain one", GOOD, NULL, 0},
    {"volatile-lru", BUT("volatile-lru"), NULL, 0},
    {"volatile-lfu", BUT("volatile-lfu"), NULL, 0},
    {"volatile-random", BUT("volatile-random"), NULL, 0},
    {"volatile-ttl", BUT("volatile-ttl"), NULL, 0},
    {"allkeys-lru", BUT("allkeys-lru"), EVICTS("allkeys-lru"), REDIS_ERROR_FATAL},
    {"allkeys-lfu", BUT("allkeys-lfu"), EVICTS("allkeys-lfu"), REDIS_ERROR_FATAL},
    {"allkeys-random", BUT("allkeys-random"), EVICTS("allkeys-random"), REDIS_ERROR_FATAL},
    {"no policy", "redis_version:7.0.15\r\nrole:master\r\n" ID, NULL, 0},
    {"an old one", "redis_version:6.2.7\n" ID, "Redis 6.2.7 is too old: berth needs Redis 7.0 or Valkey 7.2",
     REDIS_ERROR_FATAL},
    {"an older one", "redis_version:5.0.14\r\n" ID,
     "Redis 5.0.14 is too old: berth needs Redis 7.0 or Valkey 7.2", REDIS_ERROR_FATAL},
    {"an unstable one", "redis_version:255.255.255\r\n" ID, NULL, 0},
    {"valkey, which claims to be redis", "redis_version:7.2.4\r\nvalkey_version:8.1.1\r\n" ID, NULL, 0},
    {"valkey, whatever it claims to be", "redis_version:6.0.0\r\nvalkey_version:8.1.1\r\n" ID, NULL, 0},
    {"no version", ID, NULL, 0},
    {"a version of letters", "redis_version:next\r\n" ID, NULL, 0},
    {"a replica", "redis_version:7.0.15\r\nrole:slave\r\n" ID, "this Redis is a replica (role:slave)",
     REDIS_ERROR_REDIRECT},
    {"a replica of a cluster", "redis_version:7.0.15\r\nrole:slave\r\ncluster_enabled:1\r\n" ID, NULL, 0},
    {"no replication id", "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n", NO_ID,
     REDIS_ERROR_FATAL},
    {"a sentinel", "redis_version:7.0.15\r\nredis_mode:sentinel\r\n",
     "this is a sentinel: name it in sentinels, and no host in url (redis:///0)", REDIS_ERROR_FATAL},
    {"a 64-bit one", GOOD "arch_bits:64\r\n", NULL, 0},
    {"a 32-bit one", GOOD "arch_bits:32\r\n", "this is a 32-bit build, whose Lua has no integers of 64 bits: use a 64-bit build of Redis",
     REDIS_ERROR_FATAL},
    {"a short id", "master_replid:0123456789abcdef0123456789abcdef0123456\r\n", NO_ID, REDIS_ERROR_FATAL},
    {"a long id", "master_replid:0123456789abcdef0123456789abcdef012345678\r\n", NO_ID, REDIS_ERROR_FATAL},
    {"an id that is none", "master_replid:0123456789abcdef0123456789abcdef0123456?\r\n", NO_ID,
     REDIS_ERROR_FATAL},
    {"the second id alone", "master_replid2:0123456789abcdef0123456789abcdef01234567\r\n", NO_ID,
     REDIS_ERROR_FATAL},
    {"nothing", "", NO_ID, REDIS_ERROR_FATAL},
};

static void test_verdicts(void) {
    for (size_t i = 0; i < ELEMENTSOF(verdicts); i++) {
        const struct verdict *v = &verdicts[i];
        enum redis_error error = REDIS_ERROR_RETRY;
        struct server_info server;
        char why[SERVER_WHY_SIZE] = "";
        bool is_usable;

        server_info_read(&server, v->info);
        is_usable = server_info_is_usable(&server, &error, why, sizeof(why));
        TEST_STRING(why, v->why ? v->why : "");
        if (is_usable != !v->why || (v->why && error != v->error))
            printf("%s\n", v->name);
        CU_ASSERT(is_usable == !v->why);
        CU_ASSERT(is_usable || error == v->error);
    }
}

static const struct risk {
    const char *info;
    enum server_warning warning;
    const char *text; /* NULL: none */
} risks[] = {
    {GOOD, SERVER_WARNING_POLICY, NULL},
    {BUT("volatile-ttl"), SERVER_WARNING_POLICY, NULL},
    {ID, SERVER_WARNING_POLICY,
     "Redis does not report its maxmemory-policy: make sure that it evicts no keys without TTL"},
    {BUT("coldest"), SERVER_WARNING_POLICY,
     "berth does not know the maxmemory-policy \"coldest\" of Redis: make sure that it evicts no keys without TTL"},
    {"connected_slaves:0\r\n", SERVER_WARNING_REPLICAS, NULL},
    {"connected_slaves:2\r\n", SERVER_WARNING_REPLICAS,
     "Redis has 2 replicas and min-replicas-to-write is 0: a partitioned old master would go on granting"},
    {"connected_slaves:1\r\n", SERVER_WARNING_REPLICAS,
     "Redis has 1 replica and min-replicas-to-write is 0: a partitioned old master would go on granting"},
    {"connected_slaves:2\r\nmin_slaves_good_slaves:1\r\n", SERVER_WARNING_REPLICAS, NULL},
    {"rdb_last_bgsave_status:ok\r\n", SERVER_WARNING_SNAPSHOT, NULL},
    {"rdb_last_bgsave_status:err\r\n", SERVER_WARNING_SNAPSHOT,
     "the last snapshot of Redis failed: with stop-writes-on-bgsave-error yes (its default) it refuses "
     "heartbeats, and all jobs are stopped; free its disk or set that to no"},
    {"connected_clients:80\r\nmaxclients:100\r\n", SERVER_WARNING_CLIENTS, NULL},
    {"connected_clients:81\r\nmaxclients:100\r\n", SERVER_WARNING_CLIENTS,
     "Redis has 81 of 100 clients: each host takes 2"},
    {"connected_clients:8100\r\n", SERVER_WARNING_CLIENTS, NULL},
    {"connected_clients:4000000000\r\nmaxclients:4294967295\r\n", SERVER_WARNING_CLIENTS,
     "Redis has 4000000000 of 4294967295 clients: each host takes 2"},
};

static void test_warnings(void) {
    for (size_t i = 0; i < ELEMENTSOF(risks); i++) {
        struct server_info server;
        char text[SERVER_WHY_SIZE] = "";
        bool is_there;

        server_info_read(&server, risks[i].info);
        is_there = server_info_warns(&server, risks[i].warning, text, sizeof(text));
        TEST_STRING(text, risks[i].text ? risks[i].text : "");
        CU_ASSERT(is_there == (risks[i].text != NULL));
    }
}

static void test_facts(void) {
    static const char info[] =
        "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n\r\n# Clients\r\n"
        "connected_clients:12\r\ncluster_connections:0\r\nmaxclients:10000\r\n# Replication\r\nrole:master\r\n"
        "connected_slaves:2\r\nmin_slaves_good_slaves:1\r\n" ID "role:slave\r\n";
    struct server_info server;

    server_info_read(&server, info);
    TEST_STRING(server.name, "valkey");
    TEST_STRING(server.version, "8.1.1");
    TEST_STRING(server.role, "master"); /* the first line counts */
    TEST_STRING(server.policy, "");
    CU_ASSERT(server.has_replication_id && !server.snapshot_failed);
    CU_ASSERT(!server.is_cluster && !server.is_standalone); /* it does not say */
    CU_ASSERT(server.has_replicas && server.replicas == 2);
    CU_ASSERT(server.has_good_replicas && server.good_replicas == 1);
    CU_ASSERT(server.clients == 12 && server.clients_max == 10000);
    server_info_read(&server, "cluster_enabled:0\r\n");
    CU_ASSERT(!server.is_cluster && server.is_standalone);
    server_info_read(&server, "cluster_enabled:1\r\n");
    CU_ASSERT(server.is_cluster && !server.is_standalone);
}

static void test_data(void) {
    static const char info[] =
        "# Server\r\nserver_time_usec:1763640000123456\r\n# Memory\r\nused_memory:900\r\nused_memory_human:1K\r\nmaxmemory:1000\r\n"
        "# Persistence\r\nrdb_changes_since_last_save:7\r\nrdb_last_save_time:1763630000\r\nrdb_last_bgsave_status:err\r\n"
        "aof_enabled:1\r\naof_last_bgrewrite_status:ok\r\naof_last_write_status:err\r\n# Stats\r\nevicted_keys:3\r\n";
    struct server_info server;

    server_info_read(&server, info);
    CU_ASSERT(server.memory_used == 900 && server.memory_max == 1000 && server.evicted == 3);
    CU_ASSERT(server.snapshot_failed && server.append_failed && server.appends);
    CU_ASSERT(server.unsaved == 7 && server.saved_sec == 1763630000 && server.time_usec == 1763640000123456);
    server_info_read(&server, "aof_enabled:0\r\naof_last_write_status:ok\r\naof_last_bgrewrite_status:err\r\nused_memory:-1\r\n");
    CU_ASSERT(!server.appends && server.append_failed && server.memory_used == 0 && server.time_usec == 0);
}

/* Texts of a server must be printable: they are shown on terminals and in the journal. */
static void test_odd_texts(void) {
    struct server_info server;

    server_info_read(&server, "redis_version:7.\033[31m\xff" "9\r\nmaxmemory_policy:a policy that is much longer than any "
                               "that there is\r\nconnected_clients:-1\r\nmaxclients:99999999999\r\nconnected_slaves:x\r\nrole");
    TEST_STRING(server.version, "7.?[31m?9");
    TEST_INT(strlen(server.policy), sizeof(server.policy) - 1);
    CU_ASSERT(server.clients == 0 && server.clients_max == 0 && !server.has_replicas);
    TEST_STRING(server.role, "");
}

static CU_TestInfo tests[] = {
    {"verdicts", test_verdicts},
    {"warnings", test_warnings},
    {"facts", test_facts},
    {"data", test_data},
    {"odd texts", test_odd_texts},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "server-info", .pTests = tests});
