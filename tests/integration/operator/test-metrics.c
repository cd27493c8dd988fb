/* SPDX-License-Identifier: MIT */

/* `berth metrics`: each counter counts its events and nothing else. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/counters.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS                                                                                               \
    "pool \"db\" { limit = 1 queue-limit = 1 }\npool \"net\" { limit = 2 scope = \"host\" }\n"              \
    "pool \"tenant/*\" { limit = 1 }\npool \"slot/*\" { limit = 1 scope = \"host\" }\npool \"slot/x\" { "   \
    "limit = 1 scope = \"host\" }\n"
#define JOBS                                                                                                \
    POOLS "job \"good\" { command = {\"/bin/true\"} }\n"                                                    \
          "job \"bad\" { command = {\"/bin/false\"} pools = {\"net\"} }\n"

#define MANY_JOBS 300
#define MANY_POOLS 100
#define STARTED_AT_ONCE 30
#define SERIES_MAX 5000
#define HOSTS_MAX 100 /* with series */
#define FINISHED "berth_runs_finished_total{"
#define POOLS_MAX 64 /* with series */
#define LIMIT "berth_pool_permits_limit{"

/* Returns the value of a series as it is printed, "berth_runs{state=\"running\"}"; -1: it is not there. */
static double value_in(const char *text, const char *series) {
    size_t n = strlen(series);

    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, series, n) == 0 && line[n] == ' ')
            return strtod(line + n + 1, NULL);
    return -1;
}

static double value(struct host *h, const char *series) {
    TEST_INT(berth(h, "metrics"), 0);
    TEST_STRING(berth_err, "");
    return value_in(berth_out, series);
}

static double value_of_cluster(struct host *h, const char *series) {
    TEST_INT(berth(h, "metrics --cluster"), 0);
    return value_in(berth_out, series);
}

#define IS(h, series, expected) TEST_INT((int) value(h, series), expected)
#define OF_CLUSTER(h, series, expected) TEST_INT((int) value_of_cluster(h, series), expected)

static void test_runs(void) {
    struct host *ant = host_up("ant", "%s", JOBS);

    IS(ant, "berth_up", 1);
    IS(ant, "berth_build_info{version=\"" VERSION "\",namespace=\"test\",host=\"ant\"}", 1);
    IS(ant, "berth_events_total{event=\"granted\"}", 0);
    IS(ant, "berth_wait_seconds_count{pool=\"db\"}", -1);
    TEST_INT(berth(ant, "run -p db -p tenant/acme -- true"), 0);
    host_await(ant, "released", " ");
    IS(ant, "berth_runs_finished_total{job=\"\",result=\"success\"}", 1);
    IS(ant, "berth_events_total{event=\"granted\"}", 1);
    IS(ant, "berth_wait_seconds_count{pool=\"db\"}", 1);
    IS(ant, "berth_hold_seconds_count{pool=\"db\"}", 1);
    IS(ant, "berth_hold_seconds_bucket{pool=\"db\",le=\"86400\"}", 1);
    IS(ant, "berth_hold_seconds_count{pool=\"tenant/*\"}", 1); /* a key is no series */
    IS(ant, "berth_hold_seconds_count{pool=\"net\"}", -1);
    TEST_INT(berth(ant, "start --wait bad"), 1);
    TEST_INT(berth(ant, "start --wait good"), 0);
    TEST_INT(berth(ant, "start --wait good"), 0);
    IS(ant, "berth_runs_finished_total{job=\"bad\",result=\"failure\"}", 1);
    IS(ant, "berth_runs_finished_total{job=\"good\",result=\"success\"}", 2);
    IS(ant, "berth_runs_finished_total{job=\"bad\",result=\"success\"}", -1);
    IS(ant, "berth_runs_finished_total{job=\"\",result=\"success\"}", 1);
    IS(ant, "berth_wait_seconds_count{pool=\"net\"}", 1);
}

static void test_pools(void) {
    struct host *ant = host_up("ant", "%s", JOBS);
    struct child *holder = berth_at_gate(ant, "-p db -p net", "holder", "started"), *waiter;

    IS(ant, "berth_view_calls_total", 0); /* nobody has looked at the cluster */
    IS(ant, "berth_runs{state=\"running\"}", 1);
    IS(ant, "berth_pool_host_permits_used{pool=\"db\"}", 1);
    IS(ant, "berth_pool_permits_configured{pool=\"db\",scope=\"cluster\"}", 1);
    IS(ant, "berth_pool_permits_used{pool=\"net\",scope=\"host\"}", 1);
    IS(ant, "berth_pool_permits_limit{pool=\"net\",scope=\"host\"}", 2);
    IS(ant, "berth_pool_permits_used{pool=\"db\",scope=\"cluster\"}", -1); /* Redis is not asked */
    IS(ant, "berth_hosts", -1);
    OF_CLUSTER(ant, "berth_pool_permits_used{pool=\"db\",scope=\"cluster\"}", 1);
    OF_CLUSTER(ant, "berth_hosts", 1);
    CU_ASSERT(value(ant, "berth_view_calls_total") > 0);
    CU_ASSERT(value_in(berth_out, "berth_view_seconds_total") >=
              10e-6 * value_in(berth_out, "berth_view_calls_total"));
    OF_CLUSTER(ant, "berth_host_claims{host=\"ant\"}", 1);
    OF_CLUSTER(ant, "berth_pool_paused{pool=\"db\"}", 0);
    IS(ant, "berth_claims_refused_total{reason=\"busy\"}", 0);
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    IS(ant, "berth_claims_refused_total{reason=\"busy\"}", 1);
    waiter = berth_at_gate(ant, "-p db", "waiter", "queued");
    TEST_INT(berth(ant, "run -p db -- true"), 75);
    IS(ant, "berth_claims_refused_total{reason=\"queue-full\"}", 1);
    IS(ant, "berth_runs{state=\"waiting\"}", 1);
    host_await_pool(ant, "db", "waiting", 1);
    OF_CLUSTER(ant, "berth_pool_claims_waiting{pool=\"db\",scope=\"cluster\"}", 1);
    CU_ASSERT(value_of_cluster(ant, "berth_pool_oldest_wait_seconds{pool=\"db\",scope=\"cluster\"}") > 0);
    TEST_INT(berth(ant, "pause db"), 0);
    host_await_pool(ant, "db", "limit", 0);
    OF_CLUSTER(ant, "berth_pool_paused{pool=\"db\"}", 1);
    TEST_INT(berth(ant, "resume db"), 0);
    TEST_INT(berth(ant, "drain"), 0);
    TEST_INT(berth_end(waiter), 75);
    IS(ant, "berth_drained", 1);
    TEST_INT(berth(ant, "run -p db -- true"), 75);
    IS(ant, "berth_claims_refused_total{reason=\"drained\"}", 1);
    TEST_INT(berth(ant, "undrain"), 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

/* A pattern stands for its keys, also for those that the config names in full. */
static void test_patterns(void) {
    struct host *ant = host_up("ant", "%s", JOBS);
    struct child *holder = berth_at_gate(ant, "-p tenant/acme -p slot/x -p slot/y", "holder", "started"),
                 *waiter;
    struct child *other = berth_at_gate(ant, "-p tenant/acme", "other", "queued");

    waiter = berth_at_gate(ant, "-p slot/x", "waiter", "queued");
    IS(ant, "berth_pool_host_permits_used{pool=\"tenant/*\"}", 1);
    IS(ant, "berth_pool_host_permits_used{pool=\"slot/*\"}", 2);
    IS(ant, "berth_pool_host_permits_used{pool=\"slot/x\"}", 1);
    IS(ant, "berth_pool_host_permits_used{pool=\"db\"}", 0);
    IS(ant, "berth_pool_host_permits_used{pool=\"slot/y\"}", -1);
    IS(ant, "berth_pool_permits_used{pool=\"slot/*\",scope=\"host\"}", 2);
    IS(ant, "berth_pool_claims_waiting{pool=\"slot/*\",scope=\"host\"}", 1);
    CU_ASSERT(value(ant, "berth_pool_oldest_wait_seconds{pool=\"slot/*\",scope=\"host\"}") > 0);
    CU_ASSERT(value(ant, "berth_pool_oldest_wait_seconds{pool=\"slot/x\",scope=\"host\"}") > 0);
    IS(ant, "berth_pool_oldest_wait_seconds{pool=\"net\",scope=\"host\"}", 0);
    OF_CLUSTER(ant, "berth_pool_permits_used{pool=\"tenant/*\",scope=\"cluster\"}", 1);
    OF_CLUSTER(ant, "berth_pool_oldest_wait_seconds{pool=\"db\",scope=\"cluster\"}", 0);
    OF_CLUSTER(ant, "berth_pool_claims_waiting{pool=\"tenant/*\",scope=\"cluster\"}", 1);
    OF_CLUSTER(ant, "berth_pool_claims_waiting{pool=\"tenant/acme\",scope=\"cluster\"}", -1);
    CU_ASSERT(value_of_cluster(ant, "berth_pool_oldest_wait_seconds{pool=\"tenant/*\",scope=\"cluster\"}") >
              0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    TEST_INT(berth_end(waiter), 0);
    TEST_INT(berth_end(other), 0);
}

static void test_daemon(void) {
    struct host *ant = host_up("ant", "%s", JOBS);
    double loaded = value(ant, "berth_config_last_reload_success_timestamp_seconds");

    CU_ASSERT(loaded > 1.7e9 && loaded == value(ant, "berth_start_time_seconds"));
    IS(ant, "berth_config_last_reload_successful", 1);
    host_set_config(ant, "pool \"db\" { limit = many }\n");
    TEST_INT(berth(ant, "reload"), 78);
    IS(ant, "berth_config_last_reload_successful", 0);
    CU_ASSERT(loaded == value(ant, "berth_config_last_reload_success_timestamp_seconds"));
    host_set_config(ant, "%s", JOBS);
    TEST_INT(berth(ant, "reload"), 0);
    IS(ant, "berth_config_last_reload_successful", 1);
    CU_ASSERT(loaded < value(ant, "berth_config_last_reload_success_timestamp_seconds"));
    IS(ant, "berth_clients", 1);
    IS(ant, "berth_watchers", 0);
    IS(ant, "berth_journal_errors_total", 0);
    IS(ant, "berth_metrics_dropped", 0);
}

static void test_redis(void) {
    struct host *ant = host_up("ant", "%s", JOBS);
    double beats = value(ant, "berth_redis_round_trip_seconds_count");

    IS(ant, "berth_redis_connected", 1);
    IS(ant, "berth_redis_connects_total", 1);
    IS(ant, "berth_redis_errors_total{class=\"retry\"}", 0);
    CU_ASSERT(beats > 0 && value_in(berth_out, "berth_redis_round_trip_seconds_count") ==
                               value_in(berth_out, "berth_redis_round_trip_seconds_bucket{le=\"+Inf\"}"));
    CU_ASSERT(value_in(berth_out, "berth_heartbeat_age_seconds") >= 0 &&
              value_in(berth_out, "berth_heartbeat_age_seconds") < 30);
    IS(ant, "berth_lease_seconds", 30);
    CU_ASSERT(fabs(value_in(berth_out, "berth_clock_offset_seconds")) < 0.9); /* not -1: it is there */
    host_mark(ant);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    IS(ant, "berth_redis_connected", 0);
    CU_ASSERT(value_in(berth_out, "berth_redis_errors_total{class=\"retry\"}") > 0);
    TEST_INT((int) value_in(berth_out, "berth_clock_offset_seconds"), -1);
    CU_ASSERT(value_in(berth_out, "berth_heartbeat_age_seconds") > 0);
    CU_ASSERT(value_in(berth_out, "berth_redis_round_trip_seconds_count") >= beats);
    TEST_INT(berth(ant, "metrics --cluster"), 0); /* what this host knows */
    TEST_INT((int) value_in(berth_out, "berth_hosts"), -1);
    host_mark(ant);
    TEST_INT(redis_server_resume(&cluster.redis), 0);
    host_await(ant, "redis-connected", " ");
    IS(ant, "berth_redis_connects_total", 2);
    host_end_grace(ant);
}

static void read_file(const char *path, char *buffer, size_t size) {
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(buffer, 1, size - 1, f) : 0;

    buffer[n] = '\0';
    if (f)
        (void) fclose(f);
}

static void test_output(void) {
    struct host *ant = host_up("ant", "%s", JOBS);
    char path[96], text[65536];
    struct stat st;

    (void) snprintf(path, sizeof(path), "%s/berth.prom", cluster.folder);
    TEST_INT(berth(ant, "metrics --output %s", path), 0);
    TEST_STRING(berth_out, "");
    read_file(path, text, sizeof(text));
    TEST_INT((int) value_in(text, "berth_up"), 1);
    TEST_INT((int) value_in(text, "berth_drained"), 0);
    TEST_INT(stat(path, &st), 0);
    TEST_INT(st.st_mode & 0777, 0644);
    TEST_INT(berth(ant, "metrics --output /nowhere/berth.prom"), 70);
    TEST_STRING(berth_err, "berth: /nowhere/berth.prom.tmp: No such file or directory\n");
    host_stop(ant);
    TEST_INT(berth(ant, "metrics"), 69);
    TEST_STRING(berth_out, "");
    TEST_INT(berth(ant, "metrics --output %s", path), 0);
    TEST_STRING(berth_err, "");
    read_file(path, text, sizeof(text));
    TEST_STRING(text,
                "# HELP berth_up 1: berthd answered; 0: it did not, and there are no other metrics.\n# "
                "TYPE berth_up gauge\nberth_up 0\n");
    TEST_INT(berth(ant, "metrics --format openmetrics --output %s", path), 0);
    read_file(path, text, sizeof(text));
    CU_ASSERT(strstr(text, "\nberth_up 0\n# EOF\n") != NULL);
    TEST_INT(berth(ant, "metrics --format json"), 64);
    TEST_INT(berth(ant, "metrics --output="), 64);
}

/* A host with more jobs and pools than have series of their own. In a year each job may end in each way, and
 * there are more hosts. */
static void test_many(void) {
    _cleanup_free_ char *config = NULL, *names = NULL;
    size_t n_config, n_names, n = 0, n_limits = 0, n_finished = 0, worst;
    FILE *c = open_memstream(&config, &n_config);
    struct host *ant;

    for (unsigned i = 0; i < MANY_POOLS; i++)
        fprintf(c, "pool \"p%u\" { limit = 5 }\n", i);
    for (unsigned i = 0; i < MANY_JOBS; i++)
        fprintf(c, "job \"j%u\" { command = {\"/bin/true\"} output = \"null\" pools = {\"p%u\"} }\n", i,
                i % MANY_POOLS);
    CU_ASSERT_FATAL(fclose(c) == 0);
    ant = host_up("ant", "%s", config);
    for (unsigned first = 0; first < MANY_JOBS; first += STARTED_AT_ONCE) {
        FILE *f = open_memstream(&names, &n_names);

        for (unsigned i = first; i < first + STARTED_AT_ONCE; i++)
            fprintf(f, " j%u", i);
        CU_ASSERT_FATAL(fclose(f) == 0);
        TEST_INT(berth(ant, "start --wait%s", names), 0);
        free(names);
        names = NULL;
    }
    TEST_INT(berth(ant, "metrics --cluster"), 0);
    for (const char *line = berth_out; *line; line += strcspn(line, "\n") + 1) {
        n += *line != '#';
        n_limits += strncmp(line, LIMIT, strlen(LIMIT)) == 0;
        n_finished += strncmp(line, FINISHED, strlen(FINISHED)) == 0;
    }
    worst = n - n_finished + COUNTERS_RESULTS_MAX + 2 * RUN_RESULTS + HOSTS_MAX;
    TEST_INT(n_limits, POOLS_MAX);
    printf("%zu series, at most %zu\n", n, worst);
    CU_ASSERT(n > MANY_JOBS && worst <= SERIES_MAX);
    TEST_INT((int) value_in(berth_out, "berth_metrics_dropped"), MANY_POOLS - POOLS_MAX);
    TEST_INT((int) value_in(berth_out, "berth_runs_finished_total{job=\"_other\",result=\"success\"}"),
             MANY_JOBS - 256);
}

static CU_TestInfo tests[] = {
    {"a run moves its counters and histograms", test_runs},
    {"pools, refusals and drain", test_pools},
    {"patterns stand for their keys", test_patterns},
    {"reloads and clients", test_daemon},
    {"Redis goes and comes", test_redis},
    {"a file is replaced, also while berthd is away", test_output},
    {"many jobs and pools", test_many},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "metrics", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
