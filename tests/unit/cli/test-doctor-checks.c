/* SPDX-License-Identifier: MIT */

/* Each check of `berth doctor` that reads berthd's answers alone: what brings its finding about, and what
 * just does not. */

#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "tests/harness/test.h"

#define LEASE "'lease_ms': 30000, 'heartbeat_ms': 5000, 'outage_ms': 19500"
#define NOW ((usec_t) 1763640000 * USEC_PER_SEC) /* 2025-11-20T12:00:00Z */

static struct facts facts;
static struct report report;

static void begin(void) {
    facts = (struct facts){.root = "/nonexistent", .now = NOW};
}

static void end(void) {
    report_done(&report);
    facts_done(&facts);
}

/* Replaces a reply. json: with ' for ". */
static void set(json_t **reply, const char *json) {
    _cleanup_free_ char *text = strdup(json);

    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_decref(*reply);
    *reply = json_loads(text, 0, NULL);
    if (!*reply)
        printf("no JSON: %s\n", text);
    CU_ASSERT_FATAL(*reply != NULL);
}

static void run(void (*check)(const struct facts *f, struct report *r)) {
    report_done(&report);
    report.check = "it";
    check(&facts, &report);
}

/* The only finding begins so. */
static void finds(void (*check)(const struct facts *f, struct report *r), enum severity severity,
                  const char *text) {
    run(check);
    CU_ASSERT_FATAL(report.n == 1);
    TEST_INT(report.items[0].severity, severity);
    if (strncmp(report.items[0].text, text, strlen(text)) != 0)
        TEST_STRING(report.items[0].text, text);
}

static void finds_nothing(void (*check)(const struct facts *f, struct report *r)) {
    run(check);
    if (report.n > 0)
        TEST_STRING(report.items[0].text, "");
}

static void test_away(void) {
    set(&facts.redis, "{'state': 'connected', " LEASE "}");
    finds_nothing(doctor_redis_away);
    set(&facts.redis, "{'state': 'away', 'reason': 'refused', 'address': 'r:6379', 'since': "
                      "'2025-11-20T11:59:55.000000Z', " LEASE "}");
    finds(doctor_redis_away, SEVERITY_WARN, "Redis at r:6379 has been away for 5.0s: refused");
    set(&facts.redis, "{'state': 'connecting', 'reason': null, 'address': null, 'since': "
                      "'2025-11-20T11:59:44.000000Z', " LEASE "}");
    finds(doctor_redis_away, SEVERITY_CRIT, "Redis has been away for 16s");
    TEST_INT((int) report.items[0].value, 16);
    TEST_INT((int) report.items[0].bound, 15);
}

static void test_policy(void) {
    set(&facts.redis, "{'state': 'connected', 'policy': 'noeviction'}");
    finds_nothing(doctor_redis_policy);
    set(&facts.redis, "{'state': 'connected', 'policy': 'volatile-lru'}");
    finds_nothing(doctor_redis_policy);
    set(&facts.redis, "{'state': 'connected', 'policy': 'allkeys-lru'}");
    finds(doctor_redis_policy, SEVERITY_CRIT, "Redis evicts keys: maxmemory-policy is allkeys-lru");
    set(&facts.redis, "{'state': 'away', 'policy': null, 'reason': 'connection refused'}");
    finds_nothing(doctor_redis_policy);
}

static void test_replicas(void) {
    set(&facts.redis, "{'replicas': 0, 'good_replicas': null}");
    finds_nothing(doctor_redis_replicas);
    set(&facts.redis, "{'replicas': 2, 'good_replicas': 1}");
    finds_nothing(doctor_redis_replicas);
    set(&facts.redis, "{'replicas': 2, 'good_replicas': null}");
    finds(doctor_redis_replicas, SEVERITY_WARN, "Redis has 2 replicas and min-replicas-to-write is 0");
}

static void test_version(void) {
    set(&facts.redis, "{'server': 'redis', 'version': '7.0.15'}");
    finds_nothing(doctor_redis_version);
    set(&facts.redis, "{'server': 'valkey', 'version': '8.1.0'}");
    finds_nothing(doctor_redis_version);
    set(&facts.redis, "{'server': 'redis', 'version': '17.0.1'}");
    finds(doctor_redis_version, SEVERITY_NOTE, "berth is not tested with redis 17.0.1");
    set(&facts.redis,
        "{'version': null, 'reason': 'Redis 6.2.1 is too old: berth needs Redis 7.0 or Valkey 7.2'}");
    finds(doctor_redis_version, SEVERITY_CRIT, "Redis 6.2.1 is too old");
}

static void test_latency(void) {
    set(&facts.redis, "{'rtt_ms': null, " LEASE "}");
    finds_nothing(doctor_redis_latency);
    set(&facts.redis, "{'rtt_ms': 500.0, " LEASE "}");
    finds_nothing(doctor_redis_latency);
    set(&facts.redis, "{'rtt_ms': 500.1, " LEASE "}");
    finds(doctor_redis_latency, SEVERITY_WARN,
          "Redis answers a heartbeat in 500ms (median of the last 20), one is sent every 5s");
    set(&facts.redis, "{'rtt_ms': 2500.1, " LEASE "}");
    finds(doctor_redis_latency, SEVERITY_CRIT, "Redis answers a heartbeat in 2500ms");
}

static void test_memory(void) {
    set(&facts.redis, "{'memory': {'used': 800, 'max': 1000, 'evicted': 0}}");
    finds_nothing(doctor_redis_memory);
    set(&facts.redis, "{'memory': {'used': 801, 'max': 1000, 'evicted': 0}}");
    finds(doctor_redis_memory, SEVERITY_WARN, "Redis uses 80 % of its maxmemory");
    set(&facts.redis, "{'memory': {'used': 951, 'max': 1000, 'evicted': 0}}");
    finds(doctor_redis_memory, SEVERITY_CRIT, "Redis uses 95 % of its maxmemory");
    set(&facts.redis, "{'memory': {'used': 800, 'max': null, 'evicted': 2}}");
    finds(doctor_redis_memory, SEVERITY_WARN, "Redis has evicted 2 keys since it started");
    set(&facts.redis, "{'memory': null}");
    finds_nothing(doctor_redis_memory);
}

#define PERSISTENCE(failed, append, appends, unsaved, saved)                                                \
    "{'persistence': {'snapshot_failed': " failed ", 'append_failed': " append ", 'appends': " appends      \
    ", 'unsaved': " unsaved ", 'saved_ms': " saved "}}"

static void test_persistence(void) {
    set(&facts.redis, PERSISTENCE("false", "false", "false", "5", "7200000"));
    finds_nothing(doctor_redis_persistence);
    set(&facts.redis, PERSISTENCE("false", "false", "false", "5", "7200001"));
    finds(doctor_redis_persistence, SEVERITY_NOTE, "Redis has not saved its data for 2h0m, and has no append-only file");
    set(&facts.redis, PERSISTENCE("false", "false", "false", "0", "7200001"));
    finds_nothing(doctor_redis_persistence);
    set(&facts.redis, PERSISTENCE("false", "false", "true", "5", "7200001"));
    finds_nothing(doctor_redis_persistence);
    set(&facts.redis, PERSISTENCE("true", "false", "false", "5", "7200001"));
    finds(doctor_redis_persistence, SEVERITY_WARN, "the last snapshot of Redis failed");
    set(&facts.redis, PERSISTENCE("false", "true", "true", "5", "7200001"));
    finds(doctor_redis_persistence, SEVERITY_WARN, "Redis cannot write its append-only file");
    set(&facts.redis, PERSISTENCE("false", "true", "false", "5", "1"));
    finds_nothing(doctor_redis_persistence); /* it is off now */
    set(&facts.redis, "{'persistence': null}");
    finds_nothing(doctor_redis_persistence);
}

static void test_acl(void) {
    set(&facts.redis, "{'state': 'connected', 'reason': null, 'scripts': 14}");
    finds_nothing(doctor_redis_acl);
    set(&facts.redis, "{'state': 'connected', 'reason': null, 'scripts': 0}");
    finds(doctor_redis_acl, SEVERITY_NOTE, "Redis refuses SCRIPT to berth's user");
    set(&facts.redis, "{'state': 'away', 'scripts': null, 'reason': 'Redis\\u0027s user may not run all that berth needs (see redis.acl); "
                      "it lacks sscan'}");
    finds(doctor_redis_acl, SEVERITY_CRIT, "Redis's user may not run all that berth needs (see redis.acl); it lacks sscan");
    set(&facts.redis, "{'state': 'away', 'scripts': null, 'reason': 'NOPERM no permissions to run the info command'}");
    finds(doctor_redis_acl, SEVERITY_CRIT, "NOPERM ");
    set(&facts.redis, "{'state': 'away', 'scripts': null, 'reason': 'connection refused'}");
    finds_nothing(doctor_redis_acl);
}

static void test_shared(void) {
    set(&facts.hosts, "{'hosts': [{'host': 'ant'}, {'host': 'bee'}]}");
    set(&facts.redis, "{'clients': 104}");
    finds_nothing(doctor_redis_shared);
    set(&facts.redis, "{'clients': 105}");
    finds(doctor_redis_shared, SEVERITY_NOTE, "Redis has 101 other clients than the hosts of this namespace");
    set(&facts.redis, "{'clients': null}");
    finds_nothing(doctor_redis_shared);
}

#define CLOCK(offset, error, rate)                                                                          \
    "{'clock': {'offset_ms': " offset ", 'error_ms': " error ", 'rate_ppm': " rate "}}"

static void test_clock(void) {
    set(&facts.redis, CLOCK("2500.0", "500.0", "null"));
    finds_nothing(doctor_clock_offset);
    finds_nothing(doctor_clock_rate); /* of the first ten minutes nothing is known */
    set(&facts.redis, CLOCK("2500.1", "500.0", "3000.0"));
    finds(doctor_clock_offset, SEVERITY_WARN, "the clock of this host is 2.5s behind that of Redis");
    finds_nothing(doctor_clock_rate);
    set(&facts.redis, CLOCK("-60001.0", "0.5", "-3000.1"));
    finds(doctor_clock_offset, SEVERITY_CRIT, "the clock of this host is 1m0s ahead of that of Redis");
    finds(doctor_clock_rate, SEVERITY_WARN, "the clock of this host runs 0.3 % faster than that of Redis");
    set(&facts.redis, CLOCK("0.0", "0.5", "8000.1"));
    finds_nothing(doctor_clock_offset);
    finds(doctor_clock_rate, SEVERITY_CRIT, "the clock of this host runs 0.8 % slower than that of Redis");
    set(&facts.redis, "{'clock': null}");
    finds_nothing(doctor_clock_offset);
    finds_nothing(doctor_clock_rate);
}

static void test_suspend(void) {
    set(&facts.redis, "{'standstill': null, " LEASE "}");
    finds_nothing(doctor_suspend);
    set(&facts.redis, "{'standstill': {'ago_ms': 86400001, 'lasted_ms': 40000}, " LEASE "}");
    finds_nothing(doctor_suspend);
    set(&facts.redis, "{'standstill': {'ago_ms': 3600000, 'lasted_ms': 6000}, " LEASE "}");
    finds(doctor_suspend, SEVERITY_NOTE, "berthd or this machine stood still for 6.0s, 1h0m ago");
    set(&facts.redis, "{'standstill': {'ago_ms': 3600000, 'lasted_ms': 30001}, " LEASE "}");
    finds(doctor_suspend, SEVERITY_WARN, "berthd or this machine stood still for 30s, 1h0m ago: longer than the lease");
}

static void test_warnings(void) {
    set(&facts.redis, "{'warnings': []}");
    finds_nothing(doctor_redis_warnings);
    set(&facts.redis, "{'warnings': ['Redis has 1 replica and min-replicas-to-write is 0: a partitioned old "
                      "master would go on granting']}");
    finds_nothing(doctor_redis_warnings); /* redis-replicas tells that */
    set(&facts.redis, "{'warnings': ['the last snapshot of Redis failed: with stop-writes']}");
    finds_nothing(doctor_redis_warnings); /* redis-persistence does */
    set(&facts.redis, "{'warnings': ['Redis has 3 of 3 clients: each host takes 2']}");
    finds(doctor_redis_warnings, SEVERITY_WARN, "Redis has 3 of 3 clients");
}

#define AGE(seconds) "{'metrics': {'berth_heartbeat_age_seconds': [{'labels': {}, 'value': " seconds "}]}}"

static void test_heartbeat(void) {
    set(&facts.redis, "{'state': 'connected', " LEASE "}");
    set(&facts.metrics, AGE("12.5"));
    finds_nothing(doctor_heartbeat);
    set(&facts.metrics, AGE("12.6"));
    finds(doctor_heartbeat, SEVERITY_WARN, "Redis has answered no heartbeat for 12.6s");
    set(&facts.metrics, AGE("20.1"));
    finds(doctor_heartbeat, SEVERITY_CRIT, "Redis has answered no heartbeat for 20.1s");
    set(&facts.redis, "{'state': 'away', " LEASE "}");
    finds(doctor_heartbeat, SEVERITY_CRIT, "Redis has answered no heartbeat for 20.1s");
    set(&facts.metrics, "{'metrics': {}}");
    finds_nothing(doctor_heartbeat);
}

static void test_grace(void) {
    set(&facts.redis, "{'grace_ms': 0}");
    finds_nothing(doctor_grace);
    set(&facts.redis, "{'grace_ms': 2000}");
    finds(doctor_grace, SEVERITY_NOTE, "grace period: nothing is granted for up to 2.0s");
}

static void test_hosts(void) {
    set(&facts.version, "{'version': '" VERSION "', 'host': 'ant', 'drained': false}");
    set(&facts.redis, "{" LEASE "}");
    set(&facts.hosts,
        "{'hosts': [{'host': 'ant', 'version': '" VERSION "', 'seen_ms': 0, 'drained': false, 'limits': []},"
        "{'host': 'bee', 'version': '" VERSION "', 'seen_ms': 22500, 'drained': false, 'limits': []},"
        "{'host': 'cow', 'version': '" VERSION "', 'seen_ms': null, 'drained': false, 'limits': []}]}");
    finds_nothing(doctor_version_skew);
    finds_nothing(doctor_hosts_silent);
    finds_nothing(doctor_host_drained);
    set(&facts.hosts, "{'hosts': [{'host': 'bee', 'version': '0.0.9', 'seen_ms': 22501, 'drained': true},"
                      "{'host': 'cow', 'version': '0.0.8', 'seen_ms': 1, 'drained': true}]}");
    finds(doctor_version_skew, SEVERITY_NOTE,
          "hosts run other versions than " VERSION ": bee 0.0.9, cow 0.0.8");
    finds(doctor_hosts_silent, SEVERITY_WARN, "bee: not seen for 22s");
    TEST_STRING(report.items[0].host, "bee");
    finds(doctor_host_drained, SEVERITY_NOTE, "other drained hosts: bee, cow");
    set(&facts.version, "{'version': '0.0.9', 'host': 'ant', 'drained': true}");
    set(&facts.hosts, "{'hosts': [{'host': 'ant', 'version': '0.0.9', 'seen_ms': 0, 'drained': true}]}");
    finds(doctor_version_skew, SEVERITY_NOTE, "berthd is 0.0.9 and berth is " VERSION);
    finds(doctor_host_drained, SEVERITY_NOTE, "this host is drained: it begins no runs");
}

static void test_limits(void) {
    set(&facts.hosts,
        "{'hosts': [{'host': 'cow', 'limits': [{'pool': 'net', 'limit': 3}, {'pool': 'db', 'limit': 9}]}]}");
    set(&facts.pools, "{'pools': [{'name': 'net', 'limit': 2, 'limits_differ': false}]}");
    finds_nothing(doctor_limits_differ);
    set(&facts.pools, "{'pools': [{'name': 'net', 'limit': 2, 'limits_differ': true, 'lowest': {'limit': 2, "
                      "'host': 'ant'}}]}");
    finds(doctor_limits_differ, SEVERITY_WARN,
          "net: hosts declare different limits; 2 is in force, as on ant; others: cow 3");
    TEST_STRING(report.items[0].pool, "net");
}

static void test_shared_jobs(void) {
    set(&facts.version, "{'host': 'ant'}");
    set(&facts.hosts, "{'hosts': [{'host': 'ant', 'jobs_differ': []}, {'host': 'bee', 'jobs_differ': []}]}");
    finds_nothing(doctor_jobs_differ);
    set(&facts.hosts, "{'hosts': [{'host': 'ant', 'jobs_differ': []}, {'host': 'bee', 'jobs_differ': ['j']}]}");
    finds(doctor_jobs_differ, SEVERITY_WARN, "j: bee defines other due times than ant");
    TEST_STRING(report.items[0].host, "bee");
    set(&facts.next, "{'next': [{'job': 'a', 'on': 'each', 'hosts': null}, {'job': 'b', 'hosts': ['ant']}]}");
    finds_nothing(doctor_open_turns);
    set(&facts.next, "{'next': [{'job': 'b', 'attempt': null, 'hosts': []}, {'job': 'b', 'hosts': []}]}");
    finds(doctor_open_turns, SEVERITY_WARN, "b: no host takes its due times");
    set(&facts.next, "{'next': [{'job': 'b', 'attempt': 2, 'hosts': []}, {'job': 'b', 'hosts': []}]}");
    finds(doctor_open_turns, SEVERITY_WARN, "b: attempt 2 is open");
}

static void test_stuck(void) {
    set(&facts.version, "{'host': 'ant'}");
    set(&facts.pools, "{'pools': [{'name': 'db', 'limit': 4}]}");
    set(&facts.runs, "{'runs': [{'run': '0123456789abcdef', 'name': 'cp', 'state': 'stopping', 'stuck': null, 'pools': {'db': 1}}]}");
    finds_nothing(doctor_stuck_run);
    set(&facts.runs, "{'runs': [{'run': '0123456789abcdef', 'name': 'cp', 'state': 'stopping', 'stuck': 'process 4711 (cp), state D', "
                     "'pools': {'db': 1}}]}");
    finds(doctor_stuck_run, SEVERITY_WARN, "cp (run 01234567) was killed and does not end: process 4711 (cp), state D");
    TEST_STRING(json_string_value(json_array_get(json_array_get(report.items[0].commands, 0), 3)), "5");
}

static void test_overcommitted(void) {
    set(&facts.metrics, "{'metrics': {'berth_overcommitted_total': [{'labels': {}, 'value': 0}]}}");
    set(&facts.pools, "{'pools': [{'name': 'db', 'keys': null, 'limit': 2, 'used': 2, 'override': null},"
                      "{'name': 'tenant/*', 'keys': 2, 'limit': 2, 'used': 4, 'override': null}]}");
    finds_nothing(doctor_overcommitted);
    set(&facts.pools, "{'pools': [{'name': 'db', 'keys': null, 'limit': 2, 'used': 3, 'override': null}]}");
    finds(doctor_overcommitted, SEVERITY_WARN, "db: 3 permits are in use, the limit is 2");
    set(&facts.metrics, "{'metrics': {'berth_overcommitted_total': [{'labels': {}, 'value': 1}]}}");
    finds(doctor_overcommitted, SEVERITY_CRIT, "db: 3 permits are in use, the limit is 2");
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'keys': null, 'limit': 2, 'used': 3, 'override': {'limit': 2}}]}");
    finds(doctor_overcommitted, SEVERITY_NOTE, "db: 3 permits are in use, the limit is 2 by an override");
}

static void test_paused(void) {
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'override': null}, {'name': 'net', 'override': {'limit': 0, 'until': "
        "'2025-11-20T12:30:00Z', 'reason': null}}]}");
    finds_nothing(doctor_paused);
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'override': {'limit': 0, 'until': null, 'reason': 'upgrade'}}]}");
    finds(doctor_paused, SEVERITY_NOTE, "db: paused until somebody resumes it: upgrade");
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'override': {'limit': 5, 'until': null, 'reason': null}}]}");
    finds(doctor_paused, SEVERITY_NOTE, "db: the limit is overridden with 5 until the override is cleared");
}

#define WAITER(permits, position, waiting)                                                                  \
    "{'claim': '0123456789abcdef0123456789abcdef', 'host': 'bee', 'name': 'big', 'permits': " permits       \
    ", 'position': " position ", 'waiting_ms': " waiting "}"

static void test_impossible(void) {
    set(&facts.hosts,
        "{'hosts': [{'host': 'cow', 'limits': [{'pool': 'db', 'limit': 4}, {'pool': 'net', 'limit': 9}]}]}");
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'limit': 2, 'configured': 3, 'queue': [" WAITER("4", "0", "5") "]}]}");
    finds_nothing(doctor_impossible);
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'limit': 2, 'configured': 3, 'queue': [" WAITER("5", "0", "5") "]}]}");
    finds(doctor_impossible, SEVERITY_WARN,
          "db: big on bee (run 01234567) wants 5 permits, no host declares more than 4");
    TEST_STRING(report.items[0].run, "0123456789abcdef0123456789abcdef");
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'limit': 5, 'configured': 3, 'queue': [" WAITER("5", "1", "5") "]}]}");
    finds_nothing(doctor_impossible); /* an override allows it */
    set(&facts.pools,
        "{'pools': [{'name': 'db', 'limit': 0, 'configured': 5, 'queue': [" WAITER("5", "0", "5") "]}]}");
    finds_nothing(doctor_impossible); /* this host declares it */
}

/* 95 of 100 runs waited for 10 s at most. */
#define WAITS(few)                                                                                          \
    "{'metrics': {'berth_wait_seconds': [{'labels': {'pool': 'net'}, 'bounds': [1, 10], 'counts': [100, "   \
    "0, 0], 'sum': 1},"                                                                                     \
    "{'labels': {'pool': 'db'}, 'bounds': [1, 10], 'counts': [" few ", 5], 'sum': 1}]}}"
#define QUEUE(waiting)                                                                                      \
    "{'pools': [{'name': 'db', 'queue': [" WAITER("1", "1", "3") ", " WAITER(                               \
        "1", "2", waiting) ", " WAITER("9", "0", "999999") "]}]}"

static void test_long_queue(void) {
    set(&facts.metrics, WAITS("90, 5"));
    set(&facts.pools, QUEUE("100000"));
    finds_nothing(doctor_long_queue);
    set(&facts.pools, QUEUE("100001"));
    finds(doctor_long_queue, SEVERITY_WARN,
          "db: big on bee has waited for 1m40s; most runs of this host waited at most 10s");
    set(&facts.metrics, /* too few to know */
        "{'metrics': {'berth_wait_seconds': [{'labels': {'pool': 'db'}, 'bounds': [1, 10], 'counts': [9, 0, "
        "0]}]}}");
    finds_nothing(doctor_long_queue);
    set(&facts.metrics, WAITS("1000, 0"));
    set(&facts.pools, QUEUE("60000")); /* ten times as long, but short */
    finds_nothing(doctor_long_queue);
    set(&facts.pools, QUEUE("60001"));
    finds(doctor_long_queue, SEVERITY_WARN, "db: big on bee has waited for 1m0s");
}

static void test_missing(void) {
    TEST_STRING(facts_missing(&facts, NEEDS_REDIS), "needs berthd");
    TEST_STRING(facts_missing(&facts, NEEDS_SETTINGS), "needs a readable config");
    facts.is_other_config = true;
    TEST_STRING(facts_missing(&facts, NEEDS_SETTINGS | NEEDS_RUNS), "needs the config of this berthd: -c");
    CU_ASSERT_PTR_NULL(facts_missing(&facts, 0));
    set(&facts.version, "{'host': 'ant'}");
    CU_ASSERT_PTR_NULL(facts_missing(&facts, NEEDS_DAEMON));
    TEST_STRING(facts_missing(&facts, NEEDS_REDIS), "berthd did not answer in time");
    TEST_STRING(facts_missing(&facts, NEEDS_RUNS), "berthd did not answer in time");
    TEST_STRING(facts_missing(&facts, NEEDS_POOLS), "berthd did not answer in time");
    set(&facts.pools, "{'stale': true}");
    TEST_STRING(facts_missing(&facts, NEEDS_POOLS), "needs Redis");
    set(&facts.pools, "{'stale': false}");
    CU_ASSERT_PTR_NULL(facts_missing(&facts, NEEDS_POOLS));
    facts.has_no_redis = true;
    CU_ASSERT_PTR_NULL(facts_missing(&facts, NEEDS_POOLS | NEEDS_HOSTS | NEEDS_REDIS));
}

int main(int argc, char **argv) {
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
        {"version-skew, hosts-silent, host-drained", test_hosts},
        {"limits-differ", test_limits},
        {"jobs-differ, open-turns", test_shared_jobs},
        {"stuck-run", test_stuck},
        {"overcommitted", test_overcommitted},
        {"paused", test_paused},
        {"impossible", test_impossible},
        {"long-queue", test_long_queue},
        {"what a check needs", test_missing},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {
        {.pName = "doctor-checks", .pSetUpFunc = begin, .pTearDownFunc = end, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
