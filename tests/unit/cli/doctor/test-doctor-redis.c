/* SPDX-License-Identifier: MIT */

/* The checks of `berth doctor` of Redis and of clocks: facts that cause each finding, and facts that just
 * do not. */

#include "tests/harness/host/doctor-check.h"
#include "tests/harness/test.h"

#define LEASE "'lease_ms': 30000, 'heartbeat_ms': 5000, 'outage_ms': 19500"

static const char *remedy(void) {
    return json_string_value(json_array_get(doctor_findings.items[0].remedies, 0));
}

static void test_away(void) {
    check_set(&doctor_facts.redis, "{'state': 'connected', " LEASE "}");
    check_finds_nothing(doctor_redis_away);
    check_set(&doctor_facts.redis, "{'state': 'away', 'reason': 'refused', 'address': 'r:6379', 'since': "
                            "'2025-11-20T11:59:55.000000Z', " LEASE "}");
    check_finds(doctor_redis_away, SEVERITY_WARN, "Redis at r:6379 has been away for 5.0s: refused");
    check_set(&doctor_facts.redis, "{'state': 'connecting', 'reason': null, 'address': null, 'since': "
                            "'2025-11-20T11:59:44.000000Z', " LEASE "}");
    check_finds(doctor_redis_away, SEVERITY_CRIT, "Redis has been away for 16s");
    TEST_INT((int) doctor_findings.items[0].value, 16);
    TEST_INT((int) doctor_findings.items[0].bound, 15);
    TEST_STRING(remedy(), "runs are stopped in 3.5s if it does not come back");
    check_set(&doctor_facts.redis, "{'state': 'away', 'reason': 'refused', 'since': '2025-11-20T11:59:40.000000Z', " LEASE "}");
    check_finds(doctor_redis_away, SEVERITY_CRIT, "Redis has been away for 20s: refused");
    TEST_STRING(remedy(), "runs that hold its permits were stopped, except those with on-lease-lost = \"continue\"");
}

static void test_policy(void) {
    check_set(&doctor_facts.redis, "{'state': 'connected', 'policy': 'noeviction'}");
    check_finds_nothing(doctor_redis_policy);
    check_set(&doctor_facts.redis, "{'state': 'connected', 'policy': 'volatile-lru'}");
    check_finds_nothing(doctor_redis_policy);
    check_set(&doctor_facts.redis, "{'state': 'connected', 'policy': 'allkeys-lru'}");
    check_finds(doctor_redis_policy, SEVERITY_CRIT, "Redis evicts keys: maxmemory-policy is allkeys-lru");
    check_set(&doctor_facts.redis, "{'state': 'away', 'policy': null, 'reason': 'connection refused'}");
    check_finds_nothing(doctor_redis_policy);
}

static void test_replicas(void) {
    check_set(&doctor_facts.redis, "{'replicas': 0, 'good_replicas': null}");
    check_finds_nothing(doctor_redis_replicas);
    check_set(&doctor_facts.redis, "{'replicas': 2, 'good_replicas': 1}");
    check_finds_nothing(doctor_redis_replicas);
    check_set(&doctor_facts.redis, "{'replicas': 2, 'good_replicas': null}");
    check_finds(doctor_redis_replicas, SEVERITY_WARN, "Redis has 2 replicas and min-replicas-to-write is 0");
}

static void test_version(void) {
    check_set(&doctor_facts.redis, "{'server': 'redis', 'version': '7.0.15'}");
    check_finds_nothing(doctor_redis_version);
    check_set(&doctor_facts.redis, "{'server': 'valkey', 'version': '8.1.0'}");
    check_finds_nothing(doctor_redis_version);
    check_set(&doctor_facts.redis, "{'server': 'redis', 'version': '17.0.1'}");
    check_finds(doctor_redis_version, SEVERITY_NOTE, "berth is not tested with redis 17.0.1");
    check_set(&doctor_facts.redis,
              "{'version': null, 'reason': 'Redis 6.2.1 is too old: berth needs Redis 7.0 or Valkey 7.2'}");
    check_finds(doctor_redis_version, SEVERITY_CRIT, "Redis 6.2.1 is too old");
}

static void test_latency(void) {
    check_set(&doctor_facts.redis, "{'rtt_ms': null, " LEASE "}");
    check_finds_nothing(doctor_redis_latency);
    check_set(&doctor_facts.redis, "{'rtt_ms': 500.0, " LEASE "}");
    check_finds_nothing(doctor_redis_latency);
    check_set(&doctor_facts.redis, "{'rtt_ms': 500.1, " LEASE "}");
    check_finds(doctor_redis_latency, SEVERITY_WARN,
                "Redis answers a heartbeat in 500ms (median of the last 20), one is sent every 5s");
    check_set(&doctor_facts.redis, "{'rtt_ms': 2500.1, " LEASE "}");
    check_finds(doctor_redis_latency, SEVERITY_CRIT, "Redis answers a heartbeat in 2500ms");
}

static void test_memory(void) {
    check_set(&doctor_facts.redis, "{'memory': {'used': 800, 'max': 1000, 'evicted': 0}}");
    check_finds_nothing(doctor_redis_memory);
    check_set(&doctor_facts.redis, "{'memory': {'used': 801, 'max': 1000, 'evicted': 0}}");
    check_finds(doctor_redis_memory, SEVERITY_WARN, "Redis uses 80 % of its maxmemory");
    check_set(&doctor_facts.redis, "{'memory': {'used': 951, 'max': 1000, 'evicted': 0}}");
    check_finds(doctor_redis_memory, SEVERITY_CRIT, "Redis uses 95 % of its maxmemory");
    check_set(&doctor_facts.redis, "{'memory': {'used': 800, 'max': null, 'evicted': 2}}");
    check_finds(doctor_redis_memory, SEVERITY_WARN, "Redis has evicted 2 keys since it started");
    check_set(&doctor_facts.redis, "{'memory': null}");
    check_finds_nothing(doctor_redis_memory);
    check_set(&doctor_facts.runs, "{'runs': [{'run': 'a', 'blocked_by': null}, {'run': 'b', 'blocked_by': 'pool full: db'}]}");
    check_finds_nothing(doctor_redis_memory);
    check_set(&doctor_facts.runs, "{'runs': [{'run': 'a', 'blocked_by': 'no-memory: the memory of Redis at r:6379 is full'}]}");
    check_finds(doctor_redis_memory, SEVERITY_CRIT, "Redis has no memory for the claim of a run of this host");
}

#define PERSISTENCE(failed, append, appends, unsaved, saved)                                                \
    "{'persistence': {'snapshot_failed': " failed ", 'append_failed': " append ", 'appends': " appends      \
    ", 'unsaved': " unsaved ", 'saved_ms': " saved "}}"

static void test_persistence(void) {
    check_set(&doctor_facts.redis, PERSISTENCE("false", "false", "false", "5", "7200000"));
    check_finds_nothing(doctor_redis_persistence);
    check_set(&doctor_facts.redis, PERSISTENCE("false", "false", "false", "5", "7200001"));
    check_finds(doctor_redis_persistence, SEVERITY_NOTE,
                "Redis has not saved its data for 2h0m, and has no append-only file");
    check_set(&doctor_facts.redis, PERSISTENCE("false", "false", "false", "0", "7200001"));
    check_finds_nothing(doctor_redis_persistence);
    check_set(&doctor_facts.redis, PERSISTENCE("false", "false", "true", "5", "7200001"));
    check_finds_nothing(doctor_redis_persistence);
    check_set(&doctor_facts.redis, PERSISTENCE("true", "false", "false", "5", "7200001"));
    check_finds(doctor_redis_persistence, SEVERITY_WARN, "the last snapshot of Redis failed");
    check_set(&doctor_facts.redis, PERSISTENCE("false", "true", "true", "5", "7200001"));
    check_finds(doctor_redis_persistence, SEVERITY_WARN, "Redis cannot write its append-only file");
    check_set(&doctor_facts.redis, PERSISTENCE("false", "true", "false", "5", "1"));
    check_finds_nothing(doctor_redis_persistence); /* it is off now */
    check_set(&doctor_facts.redis, "{'persistence': null}");
    check_finds_nothing(doctor_redis_persistence);
}

static void test_acl(void) {
    check_set(&doctor_facts.redis, "{'state': 'connected', 'reason': null, 'scripts': 14}");
    check_finds_nothing(doctor_redis_acl);
    check_set(&doctor_facts.redis, "{'state': 'connected', 'reason': null, 'scripts': 0}");
    check_finds(doctor_redis_acl, SEVERITY_NOTE, "Redis refuses SCRIPT to berth's user");
    check_set(&doctor_facts.redis, "{'state': 'away', 'scripts': null, 'reason': 'Redis\\u0027s user may not run "
                            "all that berth needs (see redis.acl); "
                            "it lacks sscan'}");
    check_finds(doctor_redis_acl, SEVERITY_CRIT,
                "Redis's user may not run all that berth needs (see redis.acl); it lacks sscan");
    check_set(
        &doctor_facts.redis,
        "{'state': 'away', 'scripts': null, 'reason': 'NOPERM no permissions to run the info command'}");
    check_finds(doctor_redis_acl, SEVERITY_CRIT, "NOPERM ");
    check_set(&doctor_facts.redis, "{'state': 'away', 'scripts': null, 'reason': 'connection refused'}");
    check_finds_nothing(doctor_redis_acl);
}

static void test_shared(void) {
    check_set(&doctor_facts.hosts, "{'hosts': [{'host': 'ant'}, {'host': 'bee'}]}");
    check_set(&doctor_facts.redis, "{'clients': 104}");
    check_finds_nothing(doctor_redis_shared);
    check_set(&doctor_facts.redis, "{'clients': 105}");
    check_finds(doctor_redis_shared, SEVERITY_NOTE,
                "Redis has 101 other clients than the hosts of this namespace");
    check_set(&doctor_facts.redis, "{'clients': null}");
    check_finds_nothing(doctor_redis_shared);
}

#define CLOCK(offset, error, rate)                                                                          \
    "{'clock': {'offset_ms': " offset ", 'error_ms': " error ", 'rate_ppm': " rate "}}"

static void test_clock(void) {
    check_set(&doctor_facts.redis, CLOCK("2500.0", "500.0", "null"));
    check_finds_nothing(doctor_clock_offset);
    check_finds_nothing(doctor_clock_rate); /* the rate is unknown in the first ten minutes */
    check_set(&doctor_facts.redis, CLOCK("2500.1", "500.0", "3000.0"));
    check_finds(doctor_clock_offset, SEVERITY_WARN, "the clock of this host is 2.5s behind that of Redis");
    check_finds_nothing(doctor_clock_rate);
    check_set(&doctor_facts.redis, CLOCK("-60001.0", "0.5", "-3000.1"));
    check_finds(doctor_clock_offset, SEVERITY_CRIT, "the clock of this host is 1m0s ahead of that of Redis");
    check_finds(doctor_clock_rate, SEVERITY_WARN,
                "the clock of this host runs 0.3 % faster than that of Redis");
    check_set(&doctor_facts.redis, CLOCK("0.0", "0.5", "8000.1"));
    check_finds_nothing(doctor_clock_offset);
    check_finds(doctor_clock_rate, SEVERITY_CRIT,
                "the clock of this host runs 0.8 % slower than that of Redis");
    check_set(&doctor_facts.redis, "{'clock': null}");
    check_finds_nothing(doctor_clock_offset);
    check_finds_nothing(doctor_clock_rate);
}

static void test_suspend(void) {
    check_set(&doctor_facts.redis, "{'standstill': null, " LEASE "}");
    check_finds_nothing(doctor_suspend);
    check_set(&doctor_facts.redis, "{'standstill': {'ago_ms': 86400001, 'lasted_ms': 40000}, " LEASE "}");
    check_finds_nothing(doctor_suspend);
    check_set(&doctor_facts.redis, "{'standstill': {'ago_ms': 3600000, 'lasted_ms': 6000}, " LEASE "}");
    check_finds(doctor_suspend, SEVERITY_NOTE, "berthd or this machine stood still for 6.0s, 1h0m ago");
    check_set(&doctor_facts.redis, "{'standstill': {'ago_ms': 3600000, 'lasted_ms': 30001}, " LEASE "}");
    check_finds(doctor_suspend, SEVERITY_WARN,
                "berthd or this machine stood still for 30s, 1h0m ago: longer than the lease");
}

static void test_warnings(void) {
    check_set(&doctor_facts.redis, "{'warnings': []}");
    check_finds_nothing(doctor_redis_warnings);
    check_set(&doctor_facts.redis,
              "{'warnings': ['Redis has 1 replica and min-replicas-to-write is 0: a partitioned old "
              "master would go on granting']}");
    check_finds_nothing(doctor_redis_warnings); /* redis-replicas reports that */
    check_set(&doctor_facts.redis, "{'warnings': ['the last snapshot of Redis failed: with stop-writes']}");
    check_finds_nothing(doctor_redis_warnings); /* redis-persistence reports that */
    check_set(&doctor_facts.redis, "{'warnings': ['Redis has 3 of 3 clients: each host takes 2']}");
    check_finds(doctor_redis_warnings, SEVERITY_WARN, "Redis has 3 of 3 clients");
}

#define AGE(seconds) "{'metrics': {'berth_heartbeat_age_seconds': [{'labels': {}, 'value': " seconds "}]}}"

static void test_heartbeat(void) {
    check_set(&doctor_facts.redis, "{'state': 'connected', " LEASE "}");
    check_set(&doctor_facts.metrics, AGE("12.5"));
    check_finds_nothing(doctor_heartbeat);
    check_set(&doctor_facts.metrics, AGE("12.6"));
    check_finds(doctor_heartbeat, SEVERITY_WARN, "Redis has answered no heartbeat for 12.6s");
    check_set(&doctor_facts.metrics, AGE("20.1"));
    check_finds(doctor_heartbeat, SEVERITY_CRIT, "Redis has answered no heartbeat for 20.1s");
    check_set(&doctor_facts.redis, "{'state': 'away', " LEASE "}");
    check_finds(doctor_heartbeat, SEVERITY_CRIT, "Redis has answered no heartbeat for 20.1s");
    check_set(&doctor_facts.metrics, "{'metrics': {}}");
    check_finds_nothing(doctor_heartbeat);
}

static void test_grace(void) {
    check_set(&doctor_facts.redis, "{'grace_ms': 0}");
    check_finds_nothing(doctor_grace);
    check_set(&doctor_facts.redis, "{'grace_ms': 2000}");
    check_finds(doctor_grace, SEVERITY_NOTE, "grace period: nothing is granted for up to 2.0s");
}

static CU_TestInfo tests[] = {
    {"redis-away", test_away},
    {"redis-policy", test_policy},
    {"redis-replicas", test_replicas},
    {"redis-version", test_version},
    {"redis-latency", test_latency},
    {"redis-memory", test_memory},
    {"redis-persistence", test_persistence},
    {"redis-acl", test_acl},
    {"redis-shared", test_shared},
    {"clock-offset, clock-rate", test_clock},
    {"suspend", test_suspend},
    {"redis-warnings", test_warnings},
    {"heartbeat", test_heartbeat},
    {"grace", test_grace},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor-redis", .pSetUpFunc = check_begin, .pTearDownFunc = check_done,
             .pTests = tests});
