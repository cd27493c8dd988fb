/* SPDX-License-Identifier: MIT */

/* Templates: the jobs that they make. */

#include <string.h>

#include "conf/expand.h"
#include "tests/harness/config.h"
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

/* A job without parameters has the hash that it had before there were any. */
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

static CU_TestInfo tests[] = {
    {"the instance in each option", test_all_options},
    {"each instance is a job", test_each_is_a_job},
    {"the hash of a job with parameters", test_hash},
    {"a thousand instances", test_thousand},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "template", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
