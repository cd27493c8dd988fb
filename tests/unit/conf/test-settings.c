/* SPDX-License-Identifier: MIT */

/* What a config means: values, defaults, files. What follows from several values is in test-settings-derived.c, what is refused in
 * test-settings-errors.c. */

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

#define REDIS "redis { }\n"

static void test_defaults(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse("");

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->host, "ant");
    TEST_STRING(s->namespace, "berth");
    TEST_STRING(s->runtime_directory, "/run/berth");
    TEST_INT(s->lease_usec, 30 * USEC_PER_SEC);
    TEST_INT(s->heartbeat_usec, 5 * USEC_PER_SEC);
    CU_ASSERT_PTR_NULL(s->redis);
    TEST_INT(s->n_pools, 0);
    TEST_INT(s->n_jobs, 0);
    TEST_INT(s->n_files, 1);
    TEST_STRING(s->files[0], "c");
    TEST_STRING(s->run_group.name, "berth");
    TEST_STRING(s->operate_group.name, "berth-admin");
    CU_ASSERT(s->run_group.is_group && !s->run_group.is_known);
}

static void test_top(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("host = \"web-07\" namespace = 'n.1' lease = \"10s\"\nruntime-directory = '/tmp/x'");

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->host, "web-07");
    TEST_STRING(s->namespace, "n.1");
    TEST_STRING(s->runtime_directory, "/tmp/x");
    TEST_INT(s->lease_usec, 10 * USEC_PER_SEC);
    TEST_INT(s->heartbeat_usec, 1666 * USEC_PER_MSEC); /* a sixth, in whole milliseconds */
}

static void test_hostname(void) {
    struct settings_source source = {"a.conf", "", 0};
    struct settings_errors errors = {};
    struct settings *s = NULL;
    char own[65] = "";

    CU_ASSERT(gethostname(own, sizeof(own) - 1) == 0);
    TEST_INT(settings_parse(&source, 1, NULL, &s, &errors), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->host, own);
    settings_free(s);
}

static void test_redis_defaults(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse("# a comment\n" REDIS);

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s->redis);
    TEST_STRING(s->redis->host, "127.0.0.1");
    CU_ASSERT_PTR_NULL(s->redis->unix_path);
    TEST_INT(s->redis->port, 6379);
    TEST_INT(s->redis->db, 0);
    TEST_STRING(s->redis->username, "");
    TEST_STRING(s->redis->password_file, "");
    TEST_INT(s->redis->timeout_usec, 2500 * USEC_PER_MSEC); /* half a heartbeat of 5s */
    TEST_INT(s->redis->place.line, 2);
}

static void test_redis(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse("lease = \"2h\"\n"
                                                         "redis { url = \"unix:///run/r.sock?db=3\" username = \"bob\"\n"
                                                         "password-file = \"/etc/p\" }");

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->redis->unix_path, "/run/r.sock");
    TEST_INT(s->redis->db, 3);
    TEST_STRING(s->redis->username, "bob");
    TEST_STRING(s->redis->password_file, "/etc/p");
    TEST_INT(s->redis->timeout_usec, 5 * USEC_PER_SEC); /* half a heartbeat would be more */
    settings_free(s);
    s = config_parse("redis { url = \"redis://eve@h:7000/2\" timeout = 1s }");
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->redis->username, "eve");
    TEST_INT(s->redis->timeout_usec, USEC_PER_SEC);
}

static void test_pools(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse(REDIS "pool \"net\" { limit = 0 }\n"
                    "pool db { limit = 4 scope = \"host\" host-limit = 2 queue-limit = 7 description = \"für alle\" }");
    const struct pool_settings *pool;

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_INT(s->n_pools, 2);
    TEST_STRING(s->pools[0].name, "db");
    pool = settings_find_pool(s, "net");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    TEST_INT(pool->limit, 0);
    TEST_INT(pool->scope, POOL_SCOPE_CLUSTER);
    TEST_INT(pool->host_limit, 0);
    TEST_INT(pool->queue_limit, 10000);
    TEST_INT(pool->users.n, 0);
    TEST_INT(pool->head_start_max_usec, 300 * USEC_PER_SEC);
    TEST_STRING(pool->description, "");
    TEST_INT(pool->place.line, 2);
    pool = settings_find_pool(s, "db");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    TEST_INT(pool->limit, 4);
    TEST_INT(pool->scope, POOL_SCOPE_HOST);
    TEST_INT(pool->host_limit, 2);
    TEST_INT(pool->queue_limit, 7);
    TEST_STRING(pool->description, "für alle");
    CU_ASSERT_PTR_NULL(settings_find_pool(s, "d"));
}

static void expect_account(const struct account *a, bool is_group, const char *name, int line) {
    TEST_INT(a->is_group, is_group);
    TEST_STRING(a->name, name);
    TEST_INT(a->place.line, line);
    CU_ASSERT(!a->is_known);
}

static void test_accounts(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("run-group = staff\noperate-group = \"\"\n"
              "pool p { limit = 1 scope = host head-start-max = 0s users = {\"alice\",\n\"@students\"} }\n"
              "job j { command = {\"/j\"} operators = {\"@dba\"} }");

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    expect_account(&s->run_group, true, "staff", 1);
    expect_account(&s->operate_group, true, "", 2);
    TEST_INT(s->pools[0].head_start_max_usec, 0);
    TEST_INT(s->pools[0].users.n, 2);
    expect_account(&s->pools[0].users.items[0], false, "alice", 3);
    expect_account(&s->pools[0].users.items[1], true, "students", 4);
    TEST_INT(s->jobs[0].operators.n, 1);
    expect_account(&s->jobs[0].operators.items[0], true, "dba", 5);
}

static void test_job_defaults(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse("lease = \"12s\"\n/* two\nlines */\njob \"j\" { command = {\"/bin/true\"} }");
    const struct job_settings *job;

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    job = settings_find_job(s, "j");
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    TEST_STRING(job->command.argv[0], "/bin/true");
    CU_ASSERT_PTR_NULL(job->command.argv[1]);
    TEST_INT(job->pools.n, 0);
    TEST_INT(job->head_start_usec, 0);
    CU_ASSERT(!job->triggers.at_start);
    CU_ASSERT(job->triggers.every_usec == USEC_INFINITY);
    TEST_INT(job->triggers.overlap, JOB_OVERLAP_SKIP);
    CU_ASSERT(job->queue_timeout_usec == USEC_INFINITY);
    CU_ASSERT(job->timeout_usec == USEC_INFINITY);
    TEST_INT(job->stop_signal, SIGTERM);
    TEST_INT(job->stop_timeout_usec, 2 * USEC_PER_SEC); /* a sixth of the lease */
    TEST_INT(job->on_lease_lost, ON_LEASE_LOST_STOP);
    TEST_STRING(job->user, "");
    TEST_STRING(job->group, "");
    TEST_STRING(job->directory, "/");
    TEST_STRING(job->command.script, "");
    TEST_STRING(job->command.shell, "/bin/sh");
    TEST_STRING(job->input.file, "");
    TEST_INT(job->process.io_class, JOB_IO_CLASS_NONE);
    TEST_INT(job->process.io_priority, JOB_INHERIT);
    CU_ASSERT_PTR_NULL(job->input.environment[0]);
    TEST_INT(job->umask, 022);
    TEST_INT(job->output.kind, JOB_OUTPUT_JOURNAL);
    CU_ASSERT_PTR_NULL(job->output.path);
    TEST_STRING(job->description, "");
    TEST_INT(job->process.rlimits.n, 0);
    TEST_INT(job->process.nice, JOB_INHERIT);
    TEST_INT(job->process.oom_score_adjust, JOB_INHERIT);
    CU_ASSERT(!job->process.no_new_privileges);
    TEST_INT(job->resources.memory_max, 0);
    TEST_INT(job->resources.cpu_weight, 0);
    TEST_INT(job->resources.tasks_max, 0);
    TEST_INT(job->operators.n, 0);
    TEST_INT(strlen(job->hash), 16);
    TEST_INT(job->place.line, 4);
    TEST_STRING(job->place.file, "c");
}

/* A script over several lines does not change the line numbers of later errors and jobs. */
static void test_script(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("job a {\n script = '\n\tread a\n\techo \"${a} \\\\ it\\'s $0\" | wc -c # x\n'\n directory = \"~\"\n"
              " stdin = \"/dev/zero\" io-class = best-effort io-priority = 0 }\n"
              "job b {\n script = \"a\\\nb\\n\tc\n\"\n shell = \"/bin/bash\" io-class = idle }\njob c { script = 'x' }");

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->jobs[0].command.script, "\n\tread a\n\techo \"${a} \\ it's $0\" | wc -c # x\n");
    CU_ASSERT_PTR_NULL(s->jobs[0].command.argv[0]);
    TEST_STRING(s->jobs[0].directory, "~");
    TEST_STRING(s->jobs[0].input.file, "/dev/zero");
    TEST_INT(s->jobs[0].process.io_class, JOB_IO_CLASS_BEST_EFFORT);
    TEST_INT(s->jobs[0].process.io_priority, 0);
    TEST_STRING(s->jobs[1].command.script, "ab\n\tc\n");
    TEST_STRING(s->jobs[1].command.shell, "/bin/bash");
    TEST_INT(s->jobs[1].place.line, 8);
    TEST_INT(s->jobs[2].place.line, 13);
}

static void test_job(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse(REDIS "pool db { limit = 4 } pool net { limit = 1 scope = host }\n"
                    "job \"j\" { command = {\"/bin/sh\", \"-c\", \"echo a\\n\", 'x ${Y} \\n',} pools = {\"db:2\", 'net'}\n"
                    "head-start = 10m at-start = true every = \"1d\" overlap = \"queue\" queue-timeout = \"1h\" timeout = \"\"\n"
                    "stop-signal = SIGINT stop-timeout = \"0s\" on-lease-lost = continue user = \"www-data\" group = \"_g$\"\n"
                    "directory = \"/tmp\" environment = {\"A_2=\", \"A=x=y\"} umask = 077 output = \"/var/log/x\" }\n"
                    "job k { command = {\"/k\"} output = null overlap = allow pools = {net} timeout = 1ms stop-signal = USR1 }");
    const struct job_settings *job;

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    job = settings_find_job(s, "j");
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    TEST_STRING(job->command.argv[2], "echo a\n");
    TEST_STRING(job->command.argv[3], "x ${Y} \\n");
    CU_ASSERT_PTR_NULL(job->command.argv[4]);
    TEST_INT(job->pools.n, 2);
    TEST_INT(demands_get(&job->pools, "db"), 2);
    TEST_INT(demands_get(&job->pools, "net"), 1);
    TEST_INT(job->head_start_usec, 600 * USEC_PER_SEC);
    CU_ASSERT(job->triggers.at_start);
    TEST_INT(job->triggers.every_usec, 86400 * USEC_PER_SEC);
    TEST_INT(job->triggers.overlap, JOB_OVERLAP_QUEUE);
    TEST_INT(job->queue_timeout_usec, 3600 * USEC_PER_SEC);
    CU_ASSERT(job->timeout_usec == USEC_INFINITY);
    TEST_INT(job->stop_signal, SIGINT);
    TEST_INT(job->stop_timeout_usec, 0);
    TEST_INT(job->on_lease_lost, ON_LEASE_LOST_CONTINUE);
    TEST_STRING(job->user, "www-data");
    TEST_STRING(job->group, "_g$");
    TEST_STRING(job->directory, "/tmp");
    TEST_STRING(job->input.environment[0], "A_2=");
    TEST_STRING(job->input.environment[1], "A=x=y");
    CU_ASSERT_PTR_NULL(job->input.environment[2]);
    TEST_INT(job->umask, 077);
    TEST_INT(job->output.kind, JOB_OUTPUT_FILE);
    TEST_STRING(job->output.path, "/var/log/x");
    CU_ASSERT(settings_needs_cluster(s, &job->pools));

    job = settings_find_job(s, "k");
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    TEST_INT(job->output.kind, JOB_OUTPUT_NULL);
    TEST_INT(job->triggers.overlap, JOB_OVERLAP_ALLOW);
    TEST_INT(job->timeout_usec, 1000);
    TEST_INT(job->stop_signal, SIGUSR1);
    CU_ASSERT(!settings_needs_cluster(s, &job->pools));
}

static void test_bounds(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("job j { command = {\"/j\"} limits = {\"nofile=1024\", \"core=0\", 'as=4G', \"nproc=unlimited\"} nice = -20 oom-score-adjust = -1000\n"
              "no-new-privileges = true memory-max = 64M memory-high = 1 cpu-weight = 10000 tasks-max = 4194304 }\n"
              "job k { command = {\"/k\"} limits = {} nice = 19 oom-score-adjust = 0 cpu-weight = \"\" tasks-max = 1 }");
    static const struct rlimit_setting expected[] = {
        {RLIMIT_CORE, 0}, {RLIMIT_NPROC, RLIM_INFINITY}, {RLIMIT_NOFILE, 1024}, {RLIMIT_AS, UINT64_C(4) << 30}};
    const struct job_settings *job;

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    job = settings_find_job(s, "j");
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    TEST_INT(job->process.rlimits.n, ELEMENTSOF(expected));
    for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
        TEST_INT(job->process.rlimits.items[i].resource, expected[i].resource);
        CU_ASSERT(job->process.rlimits.items[i].value == expected[i].value);
    }
    TEST_INT(job->process.nice, -20);
    TEST_INT(job->process.oom_score_adjust, -1000);
    CU_ASSERT(job->process.no_new_privileges);
    TEST_INT(job->resources.memory_max, 64 << 20);
    TEST_INT(job->resources.memory_high, 1);
    TEST_INT(job->resources.cpu_weight, 10000);
    TEST_INT(job->resources.tasks_max, 4194304);
    job = settings_find_job(s, "k");
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    TEST_INT(job->process.rlimits.n, 0);
    TEST_INT(job->process.nice, 19);
    TEST_INT(job->process.oom_score_adjust, 0);
    TEST_INT(job->resources.cpu_weight, 0);
    TEST_INT(job->resources.tasks_max, 1);
}

static void test_heavy_in_paused_pool(void) {
    /* limit = 0 pauses the pool: a job that needs permits waits, which is no error. */
    _cleanup_(settings_freep) struct settings *s = config_parse("pool p { limit = 0 scope = host }\njob j { command = {\"/j\"} pools = {\"p:3\"} }");

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_INT(s->n_jobs, 1);
}

static void test_files(void) {
    const char *const texts[] = {
        "pool a { limit = 1 scope = host }\n",
        "\nlease = \"20s\" job j { command = {\"/j\"} pools = {b} }",
        "\n\npool b { limit = 1 scope = host }",
    };
    const struct settings_source sources[] = {
        {"berth.conf", texts[0], strlen(texts[0])},
        {"berth.conf.d/10.conf", texts[1], strlen(texts[1])},
        {"berth.conf.d/20.conf", texts[2], strlen(texts[2])},
    };
    _cleanup_(settings_freep) struct settings *s = config_parse_files(sources, 3);

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_INT(s->n_files, 3);
    TEST_INT(s->lease_usec, 20 * USEC_PER_SEC);
    TEST_STRING(settings_find_job(s, "j")->place.file, "berth.conf.d/10.conf");
    TEST_INT(settings_find_job(s, "j")->place.line, 2);
    TEST_STRING(settings_find_pool(s, "b")->place.file, "berth.conf.d/20.conf");
    TEST_INT(settings_find_pool(s, "b")->place.line, 3);
    CU_ASSERT(settings_find_pool(s, "b")->place.file == s->files[2]);
}

static void test_environment_is_not_read(void) {
    _cleanup_(settings_freep) struct settings *s = NULL;

    CU_ASSERT(setenv("BERTH_TEST_VARIABLE", "replaced", 1) == 0);
    s = config_parse("job j { command = {\"/j\", '${BERTH_TEST_VARIABLE}', \"\\${BERTH_TEST_VARIABLE}\"} }");
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    TEST_STRING(s->jobs[0].command.argv[1], "${BERTH_TEST_VARIABLE}");
    TEST_STRING(s->jobs[0].command.argv[2], "${BERTH_TEST_VARIABLE}");
}

static CU_TestInfo values[] = {
    {"defaults", test_defaults},
    {"top", test_top},
    {"hostname", test_hostname},
    {"redis-defaults", test_redis_defaults},
    {"redis", test_redis},
    {"pools", test_pools},
    {"job-defaults", test_job_defaults},
    {"job", test_job},
    {"script", test_script},
    {"bounds", test_bounds},
    {"heavy-in-paused-pool", test_heavy_in_paused_pool},
    {"files", test_files},
    {"accounts", test_accounts},
    {"environment-is-not-read", test_environment_is_not_read},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "settings", .pTests = values});
