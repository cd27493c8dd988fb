/* SPDX-License-Identifier: MIT */
#include "base/job-name.h"

#include "tests/harness/test.h"

#define X32 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X64 X32 X32

static void test_kinds(void) {
    static const struct {
        const char *text;
        enum job_name kind;
        const char *why;
    } cases[] = {
        {"pg-dump", JOB_NAME_PLAIN, NULL},
        {"backup@db1", JOB_NAME_INSTANCE, NULL},
        {"backup@", JOB_NAME_TEMPLATE, NULL},
        {X64, JOB_NAME_PLAIN, NULL},
        {X32 "@" X32, JOB_NAME_INVALID, "is longer than 64 characters, '@' and instance included"},
        {"@" X64, JOB_NAME_INVALID, "is empty"},
        {"", JOB_NAME_INVALID, "is empty"},
        {"@", JOB_NAME_INVALID, "is empty"},
        {"@db1", JOB_NAME_INVALID, "is empty"},
        {"a@b@c", JOB_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"backup@../x", JOB_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"backup@-rf", JOB_NAME_INVALID, "begins with '.' or '-'"},
        {"backup@.", JOB_NAME_INVALID, "begins with '.' or '-'"},
        {"backup@a b", JOB_NAME_INVALID, "has a space"},
        {"backup@a/b", JOB_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"-x@a", JOB_NAME_INVALID, "begins with '.' or '-'"},
        {X64 "@", JOB_NAME_INVALID, "is longer than 64 characters, '@' and instance included"},
        {X64 "x@a", JOB_NAME_INVALID, "is longer than 64 characters"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        TEST_INT(job_name_parse(cases[i].text), cases[i].kind);
        if (cases[i].why)
            TEST_STRING(job_name_explain(cases[i].text), cases[i].why);
        TEST_INT(job_name_is_runnable(cases[i].text),
                 cases[i].kind == JOB_NAME_PLAIN || cases[i].kind == JOB_NAME_INSTANCE);
    }
}

static void test_instances(void) {
    char template[NAME_MAX_LENGTH + 1];

    TEST_STRING(job_name_instance("backup@db1"), "db1");
    CU_ASSERT_PTR_NULL(job_name_instance("backup@"));
    CU_ASSERT_PTR_NULL(job_name_instance("backup"));
    CU_ASSERT_PTR_NULL(job_name_instance("backup@.x"));
    TEST_STRING(job_name_template("backup@db1", template), "backup@");
    CU_ASSERT_PTR_NULL(job_name_template("backup@", template));
    CU_ASSERT(job_name_matches("backup@", "backup@db1"));
    CU_ASSERT_FALSE(job_name_matches("backup@", "backup@"));
    CU_ASSERT_FALSE(job_name_matches("backup@", "backups@db1"));
    CU_ASSERT_FALSE(job_name_matches("backup", "backup@db1"));
    CU_ASSERT_FALSE(job_name_matches("", "db1"));
}

static CU_TestInfo tests[] = {
    {"a plain name, an instance, a template", test_kinds},
    {"the instances of a template", test_instances},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "job-name", .pTests = tests});
