/* SPDX-License-Identifier: MIT */

/* The checks of `berth doctor` that read berthd's replies about hosts, pools and runs: facts that cause
 * each finding, and facts that just do not. */

#include "base/process/process-describe.h"
#include "tests/harness/host/doctor-check.h"
#include "tests/harness/test.h"

#define LEASE "'lease_ms': 30000, 'heartbeat_ms': 5000, 'outage_ms': 19500"

static void test_hosts(void) {
    check_set(&doctor_facts.version, "{'version': '" VERSION "', 'host': 'ant', 'drained': false}");
    check_set(&doctor_facts.redis, "{" LEASE "}");
    check_set(
        &doctor_facts.hosts,
        "{'hosts': [{'host': 'ant', 'version': '" VERSION "', 'seen_ms': 0, 'drained': false, 'limits': []},"
        "{'host': 'bee', 'version': '" VERSION "', 'seen_ms': 22500, 'drained': false, 'limits': []},"
        "{'host': 'cow', 'version': '" VERSION "', 'seen_ms': null, 'drained': false, 'limits': []}]}");
    check_finds_nothing(doctor_version_skew);
    check_finds_nothing(doctor_hosts_silent);
    check_finds_nothing(doctor_hosts_twice);
    check_finds_nothing(doctor_host_drained);
    check_set(&doctor_facts.hosts,
              "{'hosts': [{'host': 'bee', 'version': '0.0.9', 'seen_ms': 22501, 'drained': true},"
              "{'host': 'cow', 'version': '0.0.8', 'seen_ms': 1, 'drained': true}]}");
    check_finds(doctor_version_skew, SEVERITY_NOTE,
                "hosts run other versions than " VERSION ": bee 0.0.9, cow 0.0.8");
    check_finds(doctor_hosts_silent, SEVERITY_WARN, "bee: not seen for 22s");
    TEST_STRING(doctor_findings.items[0].host, "bee");
    check_finds(doctor_host_drained, SEVERITY_NOTE, "other drained hosts: bee, cow");
    check_set(&doctor_facts.version, "{'version': '0.0.9', 'host': 'ant', 'drained': true}");
    check_set(&doctor_facts.hosts,
              "{'hosts': [{'host': 'ant', 'version': '0.0.9', 'seen_ms': 0, 'drained': true}]}");
    check_finds(doctor_version_skew, SEVERITY_NOTE, "berthd is 0.0.9 and berth is " VERSION);
    check_finds(doctor_host_drained, SEVERITY_NOTE, "this host is drained: it begins no runs");
    check_set(&doctor_facts.hosts, "{'hosts': [{'host': 'bee', 'seen_ms': 1}, {'host': 'ant', 'seen_ms': 0}, {'host': 'bee', 'seen_ms': 22501}]}");
    check_finds_nothing(doctor_hosts_twice); /* it has crashed and come back */
    check_set(&doctor_facts.hosts, "{'hosts': [{'host': 'bee', 'seen_ms': 1}, {'host': 'ant', 'seen_ms': 0}, {'host': 'bee', 'seen_ms': 22500}]}");
    check_finds(doctor_hosts_twice, SEVERITY_WARN, "bee: two machines have this name and the same machine id");
}

static void test_limits(void) {
    check_set(
        &doctor_facts.hosts,
        "{'hosts': [{'host': 'cow', 'limits': [{'pool': 'net', 'limit': 3}, {'pool': 'db', 'limit': 9}]}]}");
    check_set(&doctor_facts.pools, "{'pools': [{'name': 'net', 'limit': 2, 'limits_differ': false}]}");
    check_finds_nothing(doctor_limits_differ);
    check_set(&doctor_facts.pools,
              "{'pools': [{'name': 'net', 'limit': 2, 'limits_differ': true, 'lowest': {'limit': 2, "
              "'host': 'ant'}}]}");
    check_finds(doctor_limits_differ, SEVERITY_WARN,
                "net: hosts declare different limits; 2 is in force, as on ant; others: cow 3");
    TEST_STRING(doctor_findings.items[0].pool, "net");
}

static void test_pools(void) {
    check_set(&doctor_facts.version, "{'host': 'ant'}");
    check_set(&doctor_facts.hosts, "{'hosts': [{'host': 'bee', 'pools_only_there': [], 'pools_only_here': []}]}");
    check_finds_nothing(doctor_pools_differ);
    check_set(&doctor_facts.hosts,
              "{'hosts': [{'host': 'bee', 'pools_only_there': ['net', 'db'], 'pools_only_here': []}]}");
    check_finds(doctor_pools_differ, SEVERITY_NOTE, "ant does not define pools of bee: net, db");
    TEST_STRING(doctor_findings.items[0].host, "bee");
    check_set(&doctor_facts.hosts,
              "{'hosts': [{'host': 'bee', 'pools_only_there': [], 'pools_only_here': ['net']}]}");
    check_finds(doctor_pools_differ, SEVERITY_NOTE, "bee does not define pools of ant: net");
}

static void test_shared_jobs(void) {
    check_set(&doctor_facts.version, "{'host': 'ant'}");
    check_set(&doctor_facts.hosts,
              "{'hosts': [{'host': 'ant', 'jobs_differ': []}, {'host': 'bee', 'jobs_differ': []}]}");
    check_finds_nothing(doctor_jobs_differ);
    check_set(&doctor_facts.hosts,
              "{'hosts': [{'host': 'ant', 'jobs_differ': []}, {'host': 'bee', 'jobs_differ': ['j']}]}");
    check_finds(doctor_jobs_differ, SEVERITY_WARN, "j: bee defines other due times than ant");
    TEST_STRING(doctor_findings.items[0].host, "bee");
    check_set(&doctor_facts.next,
              "{'next': [{'job': 'a', 'on': 'each', 'hosts': null}, {'job': 'b', 'hosts': ['ant']}]}");
    check_finds_nothing(doctor_open_turns);
    check_set(&doctor_facts.next,
              "{'next': [{'job': 'b', 'attempt': null, 'hosts': []}, {'job': 'b', 'hosts': []}]}");
    check_finds(doctor_open_turns, SEVERITY_WARN, "b: no host takes its due times");
    check_set(&doctor_facts.next, "{'next': [{'job': 'b', 'attempt': 2, 'hosts': []}, {'job': 'b', 'hosts': []}]}");
    check_finds(doctor_open_turns, SEVERITY_WARN, "b: attempt 2 is open");
}

static void test_broken(void) {
    check_set(&doctor_facts.version, "{'host': 'ant'}");
    check_set(&doctor_facts.jobs, "{'jobs': [{'name': 'dump', 'broken': false, 'bad': 1, 'last_result': 'failure', 'last_exit_code': 3}]}");
    check_finds_nothing(doctor_broken_jobs);
    check_set(&doctor_facts.jobs, "{'jobs': [{'name': 'dump', 'broken': true, 'bad': 1, 'last_result': 'failure', 'last_exit_code': 3}]}");
    check_finds(doctor_broken_jobs, SEVERITY_WARN, "job dump is broken: 1 failed run, the last one ended with failure (exit 3)");
    check_set(&doctor_facts.jobs, "{'jobs': [{'name': 'dump', 'broken': true, 'bad': 3, 'last_result': 'timeout'}]}");
    check_finds(doctor_broken_jobs, SEVERITY_WARN, "job dump is broken: 3 failed runs in a row, the last one ended with timeout");
    TEST_STRING(json_string_value(json_array_get(json_array_get(doctor_findings.items[0].commands, 0), 2)), "dump");
    check_set(&doctor_facts.jobs, "{'jobs': [{'name': 'dump', 'broken': true, 'bad': 0, 'last_result': 'success'}]}");
    check_finds(doctor_broken_jobs, SEVERITY_WARN, "job dump is broken: it had no success for its max-silence");
}

static void test_stuck(void) {
    check_set(&doctor_facts.version, "{'host': 'ant'}");
    check_set(&doctor_facts.pools, "{'pools': [{'name': 'db', 'limit': 4}]}");
    check_set(&doctor_facts.runs, "{'runs': [{'run': '0123456789abcdef', 'name': 'cp', 'state': 'stopping', "
                           "'stuck': null, 'pools': {'db': 1}}]}");
    check_finds_nothing(doctor_stuck_run);
    check_set(&doctor_facts.runs, "{'runs': [{'run': '0123456789abcdef', 'name': 'cp', 'state': 'stopping', "
                           "'stuck': 'process 4711 (cp), state D', "
                           "'pools': {'db': 1}}]}");
    check_finds(doctor_stuck_run, SEVERITY_WARN,
                "cp (run 01234567) was killed and does not end: process 4711 (cp), state D");
    TEST_STRING(json_string_value(json_array_get(json_array_get(doctor_findings.items[0].commands, 0), 3)), "5");
    CU_ASSERT_PTR_NOT_NULL(strstr(json_string_value(json_array_get(doctor_findings.items[0].remedies, 0)), "mount that hangs"));
    check_set(&doctor_facts.runs, "{'runs': [{'run': '0123456789abcdef', 'name': 'cp', 'state': 'stopping', "
                           "'stuck': 'process 4711 (cp), state S, " PROCESS_OF_OTHERS "', 'pools': {'db': 1}}]}");
    check_finds(doctor_stuck_run, SEVERITY_WARN,
                "cp (run 01234567) was killed and does not end: process 4711 (cp), state S, " PROCESS_OF_OTHERS);
    CU_ASSERT_PTR_NULL(strstr(json_string_value(json_array_get(doctor_findings.items[0].remedies, 0)), "mount that hangs"));
    check_set(&doctor_facts.runs, "{'runs': [{'run': '0123456789abcdef', 'name': 'cp', 'state': 'stopping', "
                           "'stuck': 'process 4711 (berth), state T in do_signal_stop', 'pools': {'db': 1}}]}");
    check_finds(doctor_stuck_run, SEVERITY_WARN,
                "cp (run 01234567) was killed and does not end: process 4711 (berth), state T in do_signal_stop");
    CU_ASSERT_PTR_NOT_NULL(strstr(json_string_value(json_array_get(doctor_findings.items[0].remedies, 0)), "kill -CONT"));
    check_set(&doctor_facts.runs, "{'runs': [{'run': '0123456789abcdef', 'name': 'cp', 'state': 'running', "
                           "'stuck': 'process 4711 (berth-guard), state T', 'pools': {'db': 1}}]}");
    check_finds(doctor_stuck_run, SEVERITY_WARN,
                "the guard of cp (run 01234567) does not answer: process 4711 (berth-guard), state T");
    TEST_STRING(json_string_value(json_array_get(json_array_get(doctor_findings.items[0].commands, 0), 1)), "stop");
}

static void test_overcommitted(void) {
    check_set(&doctor_facts.metrics, "{'metrics': {'berth_overcommitted_total': [{'labels': {}, 'value': 0}]}}");
    check_set(&doctor_facts.pools,
              "{'pools': [{'name': 'db', 'keys': null, 'limit': 2, 'used': 2, 'override': null},"
              "{'name': 'tenant/*', 'keys': 2, 'limit': 2, 'used': 4, 'override': null}]}");
    check_finds_nothing(doctor_overcommitted);
    check_set(&doctor_facts.pools,
              "{'pools': [{'name': 'db', 'keys': null, 'limit': 2, 'used': 3, 'override': null}]}");
    check_finds(doctor_overcommitted, SEVERITY_WARN, "db: 3 permits are in use, the limit is 2");
    check_set(&doctor_facts.metrics, "{'metrics': {'berth_overcommitted_total': [{'labels': {}, 'value': 1}]}}");
    check_finds(doctor_overcommitted, SEVERITY_CRIT, "db: 3 permits are in use, the limit is 2");
    check_set(&doctor_facts.pools,
              "{'pools': [{'name': 'db', 'keys': null, 'limit': 2, 'used': 3, 'override': {'limit': 2}}]}");
    check_finds(doctor_overcommitted, SEVERITY_NOTE,
                "db: 3 permits are in use, the limit is 2 by an override");
}

static void test_paused(void) {
    check_set(
        &doctor_facts.pools,
        "{'pools': [{'name': 'db', 'override': null}, {'name': 'net', 'override': {'limit': 0, 'until': "
        "'2025-11-20T12:30:00Z', 'reason': null}}]}");
    check_finds_nothing(doctor_paused);
    check_set(&doctor_facts.pools,
              "{'pools': [{'name': 'db', 'override': {'limit': 0, 'until': null, 'reason': 'upgrade'}}]}");
    check_finds(doctor_paused, SEVERITY_NOTE, "db: paused until somebody resumes it: upgrade");
    check_set(&doctor_facts.pools,
              "{'pools': [{'name': 'db', 'override': {'limit': 5, 'until': null, 'reason': null}}]}");
    check_finds(doctor_paused, SEVERITY_NOTE,
                "db: the limit is overridden with 5 until the override is cleared");
}

#define WAITER(permits, position, waiting)                                                                  \
    "{'claim': '0123456789abcdef0123456789abcdef', 'host': 'bee', 'name': 'big', 'permits': " permits       \
    ", 'position': " position ", 'waiting_ms': " waiting "}"

static void test_impossible(void) {
    check_set(
        &doctor_facts.hosts,
        "{'hosts': [{'host': 'cow', 'limits': [{'pool': 'db', 'limit': 4}, {'pool': 'net', 'limit': 9}]}]}");
    check_set(&doctor_facts.pools, "{'pools': [{'name': 'db', 'limit': 2, 'configured': 3, 'queue': [" WAITER(
                                "4", "0", "5") "]}]}");
    check_finds_nothing(doctor_impossible);
    check_set(&doctor_facts.pools, "{'pools': [{'name': 'db', 'limit': 2, 'configured': 3, 'queue': [" WAITER(
                                "5", "0", "5") "]}]}");
    check_finds(doctor_impossible, SEVERITY_WARN,
                "db: big on bee (run 01234567) wants 5 permits, no host declares more than 4");
    TEST_STRING(doctor_findings.items[0].run, "0123456789abcdef0123456789abcdef");
    check_set(&doctor_facts.pools, "{'pools': [{'name': 'db', 'limit': 5, 'configured': 3, 'queue': [" WAITER(
                                "5", "1", "5") "]}]}");
    check_finds_nothing(doctor_impossible); /* an override allows it */
    check_set(&doctor_facts.pools, "{'pools': [{'name': 'db', 'limit': 0, 'configured': 5, 'queue': [" WAITER(
                                "5", "0", "5") "]}]}");
    check_finds_nothing(doctor_impossible); /* this host declares it */
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
    check_set(&doctor_facts.metrics, WAITS("90, 5"));
    check_set(&doctor_facts.pools, QUEUE("100000"));
    check_finds_nothing(doctor_long_queue);
    check_set(&doctor_facts.pools, QUEUE("100001"));
    check_finds(doctor_long_queue, SEVERITY_WARN,
                "db: big on bee has waited for 1m40s; most runs of this host waited at most 10s");
    check_set(
        &doctor_facts.metrics, /* too few to know */
        "{'metrics': {'berth_wait_seconds': [{'labels': {'pool': 'db'}, 'bounds': [1, 10], 'counts': [9, 0, "
        "0]}]}}");
    check_finds_nothing(doctor_long_queue);
    check_set(&doctor_facts.metrics, WAITS("1000, 0"));
    check_set(&doctor_facts.pools, QUEUE("60000")); /* ten times as long, but short */
    check_finds_nothing(doctor_long_queue);
    check_set(&doctor_facts.pools, QUEUE("60001"));
    check_finds(doctor_long_queue, SEVERITY_WARN, "db: big on bee has waited for 1m0s");
}

static void test_missing(void) {
    TEST_STRING(facts_missing(&doctor_facts, NEEDS_REDIS), "needs berthd");
    TEST_STRING(facts_missing(&doctor_facts, NEEDS_SETTINGS), "needs a readable config");
    doctor_facts.is_other_config = true;
    TEST_STRING(facts_missing(&doctor_facts, NEEDS_SETTINGS | NEEDS_RUNS), "needs the config of this berthd: -c");
    CU_ASSERT_PTR_NULL(facts_missing(&doctor_facts, 0));
    check_set(&doctor_facts.version, "{'host': 'ant'}");
    CU_ASSERT_PTR_NULL(facts_missing(&doctor_facts, NEEDS_DAEMON));
    TEST_STRING(facts_missing(&doctor_facts, NEEDS_REDIS), "berthd did not answer in time");
    TEST_STRING(facts_missing(&doctor_facts, NEEDS_RUNS), "berthd did not answer in time");
    TEST_STRING(facts_missing(&doctor_facts, NEEDS_POOLS), "berthd did not answer in time");
    check_set(&doctor_facts.pools, "{'stale': true}");
    TEST_STRING(facts_missing(&doctor_facts, NEEDS_POOLS), "needs Redis");
    check_set(&doctor_facts.pools, "{'stale': false}");
    CU_ASSERT_PTR_NULL(facts_missing(&doctor_facts, NEEDS_POOLS));
    doctor_facts.has_no_redis = true;
    CU_ASSERT_PTR_NULL(facts_missing(&doctor_facts, NEEDS_POOLS | NEEDS_HOSTS | NEEDS_REDIS));
}

static CU_TestInfo tests[] = {
    {"version-skew, hosts-silent, host-drained", test_hosts},
    {"limits-differ", test_limits},
    {"pools-differ", test_pools},
    {"jobs-differ, open-turns", test_shared_jobs},
    {"broken-jobs", test_broken},
    {"stuck-run", test_stuck},
    {"overcommitted", test_overcommitted},
    {"paused", test_paused},
    {"impossible", test_impossible},
    {"long-queue", test_long_queue},
    {"what a check needs", test_missing},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor-checks", .pSetUpFunc = check_begin, .pTearDownFunc = check_done,
             .pTests = tests});
