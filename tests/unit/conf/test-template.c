/* SPDX-License-Identifier: MIT */

/* Templates: the jobs that they make. */

#include <string.h>

#include "conf/expand.h"
#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

static void test_all_options(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse(
        "pool db1 { limit = 1 scope = host }\npool \"t/*\" { limit = 1 scope = host }\n"
        "job \"b@\" { instances = {db1} command = {\"/b\", \"%i\", \"--%i=%%\", \"%%i\"} environment = "
        "{\"A=%i\"} directory = \"/d/%i\"\n"
        " output = \"/o/%i\" stdin = \"/s/%i\" environment-file = {\"-/e/%i\"} credentials = {\"c=/c/%i\"} "
        "pools = {\"%i\", \"t/%i\"}\n"
        " on-success = {\"c@%i\"} description = \"of %i\" parameters = {\"P=100%|50%\"} user = nobody }\n"
        "job \"c@\" { instances = {db1} script = \"echo %i %% $BERTH_INSTANCE\" }\n"
        "job plain { command = {\"/p\", \"%i\", \"100%\"} }");
    const struct job_settings *job = settings_find_job(s, "b@db1");

    TEST_INT(s->n_jobs, 3);
    CU_ASSERT_PTR_NULL(settings_find_job(s, "b@"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    TEST_STRING(job->command.argv[1], "db1");
    TEST_STRING(job->command.argv[2], "--db1=%");
    TEST_STRING(job->command.argv[3], "%i");
    TEST_STRING(job->input.environment[0], "A=db1");
    TEST_STRING(job->directory, "/d/db1");
    TEST_STRING(job->output.path, "/o/db1");
    TEST_STRING(job->input.file, "/s/db1");
    TEST_STRING(job->input.environment_files[0], "-/e/db1");
    TEST_STRING(job->input.credentials[0], "c=/c/db1");
    TEST_STRING(job->pools.items[0].pool, "db1");
    TEST_STRING(job->pools.items[1].pool, "t/db1");
    TEST_STRING(job->hooks.on_success[0], "c@db1");
    TEST_STRING(job->description, "of db1");
    TEST_STRING(job->input.parameters[0], "P=100%|50%");
    TEST_STRING(settings_find_job(s, "c@db1")->command.script, "echo %i %% $BERTH_INSTANCE");
    TEST_STRING(settings_find_job(s, "plain")->command.argv[2], "100%");
}

static void test_each_is_a_job(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("job \"b@\" { instances = {b, a, c} command = {\"/b\", \"%i\"} every = 1d }\njob \"b\" { "
              "command = {\"/b\"} }");

    TEST_INT(s->n_jobs, 4);
    TEST_STRING(s->jobs[0].name, "b");
    TEST_STRING(s->jobs[1].name, "b@a");
    TEST_STRING(s->jobs[3].name, "b@c");
    CU_ASSERT(strcmp(s->jobs[1].hash, s->jobs[2].hash) != 0);
}

/* An empty list of parameters does not change the hash of a job. */
static void test_hash(void) {
    _cleanup_(settings_freep) struct settings *without = config_parse("job b { command = {\"/b\"} }"),
                                              *with = config_parse("job b { command = {\"/b\"} parameters = {A} }"),
                                              *none = config_parse("job b { command = {\"/b\"} parameters = {} }");

    TEST_STRING(without->jobs[0].hash, none->jobs[0].hash);
    CU_ASSERT(strcmp(without->jobs[0].hash, with->jobs[0].hash) != 0);
}

static void test_thousand(void) {
    char text[16384];
    size_t n = (size_t) snprintf(text, sizeof(text), "job \"b@\" { command = {\"/b\"} instances = {");
    struct settings *s;

    for (int i = 0; i < INSTANCES_MAX; i++)
        n += (size_t) snprintf(text + n, sizeof(text) - n, "%si%d", i > 0 ? "," : "", i);
    snprintf(text + n, sizeof(text) - n, "} }");
    s = config_parse(text);
    TEST_INT(s->n_jobs, INSTANCES_MAX);
    settings_free(s);
    snprintf(text + n, sizeof(text) - n, ", more} }");
    config_refuse(text, "c:1: job \"b@\": 1001 instances; at most 1000");
}

#define OPEN                                                                                                \
    "pool \"t/*\" { limit = 1 scope = host }\n"                                                             \
    "job \"b@\" { open-instances = true instances = {a} command = {\"/b\", \"%i\"} pools = {\"t/%i\"} "     \
    "schedule = {\"@daily\"} max-silence = 1h operators = {o} on-failure = {h} }\n"                         \
    "job h { command = {\"/h\"} }\n"                                                                        \
    "job \"p@\" { open-instances = true command = {\"/p\"} pools = {\"%i\"} }\n"                            \
    "job \"c@\" { instances = {a} command = {\"/c\"} }\n"

static void expect_open(struct settings *s, const char *name, int expected, const char *error) {
    const struct job_settings *job = NULL;
    struct settings_errors errors = {};

    TEST_INT(settings_open_job(s, name, &job, &errors), expected);
    TEST_INT(errors.n, error ? 1 : 0);
    if (error && errors.n == 1)
        TEST_STRING(errors.lines[0], error);
    CU_ASSERT((expected == 0) == (job && strcmp(job->name, name) == 0));
    settings_errors_done(&errors);
}

static void test_open(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse(OPEN), *again = config_parse(OPEN);
    const struct job_settings *job;

    TEST_INT(s->n_jobs, 3);
    CU_ASSERT_PTR_NULL(settings_find_job(s, "b@"));
    CU_ASSERT(settings_find_job(s, "h")->hooks.is_hook);
    TEST_STRING(settings_find_open_template(s, "b@z")->name, "b@");
    CU_ASSERT_PTR_NULL(settings_find_open_template(s, "c@a"));
    expect_open(s, "b@z", 0, NULL);
    job = settings_find_job(s, "b@z");
    expect_open(s, "b@db", 0, NULL);
    expect_open(s, "b@z", 0, NULL);
    CU_ASSERT_PTR_EQUAL_FATAL(settings_find_job(s, "b@z"), job);
    TEST_STRING(job->command.argv[1], "z");
    TEST_STRING(job->pools.items[0].pool, "t/z");
    CU_ASSERT(schedule_is_empty(&job->triggers.schedule));
    CU_ASSERT(job->hooks.max_silence_usec == USEC_INFINITY);
    CU_ASSERT(!schedule_is_empty(&settings_find_job(s, "b@a")->triggers.schedule));
    expect_open(again, "b@z", 0, NULL); /* as berth-runner does */
    TEST_STRING(settings_find_job(again, "b@z")->hash, job->hash);
    TEST_STRING(settings_get_job(s, 3)->name, "b@db");
    TEST_STRING(settings_get_job(s, 4)->name, "b@z");
    CU_ASSERT_PTR_NULL(settings_get_job(s, 5));
    settings_close_job(s, "b@db");
    settings_close_job(s, "b@a"); /* a listed instance stays */
    CU_ASSERT_PTR_NULL(settings_find_job(s, "b@db"));
    CU_ASSERT_PTR_NOT_NULL(settings_find_job(s, "b@a"));
    CU_ASSERT_PTR_EQUAL(settings_find_job(s, "b@z"), job);
}

static void test_not_open(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse(OPEN);

    expect_open(s, "b@", SETTINGS_E_UNKNOWN, NULL);
    expect_open(s, "b", SETTINGS_E_UNKNOWN, NULL);
    expect_open(s, "c@b", SETTINGS_E_UNKNOWN, NULL);
    expect_open(s, "b@-rf", SETTINGS_E_UNKNOWN, NULL);
    expect_open(s, "b@x@y", SETTINGS_E_UNKNOWN, NULL);
    expect_open(
        s, "p@x", SETTINGS_E_INVALID,
        "c:4: job \"p@x\": pools \"x\" names a pool that is not defined; add pool \"x\" { limit = N }");
    CU_ASSERT_PTR_NULL(settings_find_job(s, "p@x"));
    CU_ASSERT_PTR_NULL(settings_get_job(s, s->n_jobs));
}

static void test_full(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("job \"b@\" { open-instances = true instances = {a, b} command = {\"/b\"} }\n"
                     "job \"c@\" { open-instances = true command = {\"/c\"} }");
    char name[16];

    for (int i = 2; i < INSTANCES_MAX; i++) {
        snprintf(name, sizeof(name), "b@%d", i);
        expect_open(s, name, 0, NULL);
    }
    expect_open(s, "b@more", SETTINGS_E_FULL, NULL);
    expect_open(s, "b@a", 0, NULL);
    expect_open(s, "c@more", 0, NULL);
    settings_close_job(s, "b@7");
    expect_open(s, "b@more", 0, NULL);
}

static CU_TestInfo tests[] = {
    {"the instance in each option", test_all_options},
    {"each instance is a job", test_each_is_a_job},
    {"the hash of a job with parameters", test_hash},
    {"a thousand instances", test_thousand},
    {"open instances", test_open},
    {"no open instance", test_not_open},
    {"a thousand open instances", test_full},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "template", .pTests = tests});
