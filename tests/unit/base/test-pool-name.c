/* SPDX-License-Identifier: MIT */
#include "base/pool-name.h"

#include <string.h>

#include "tests/harness/test.h"

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void test_kinds(void) {
    static const struct {
        const char *text;
        enum pool_name kind;
        const char *why;
    } cases[] = {
        {"db", POOL_NAME_PLAIN, NULL},
        {"tenant/acme", POOL_NAME_KEY, NULL},
        {"tenant/*", POOL_NAME_PATTERN, NULL},
        {X64 "/" X64, POOL_NAME_KEY, NULL},
        {X64 "/*", POOL_NAME_PATTERN, NULL},
        {"@report", POOL_NAME_JOB, NULL},
        {"@" X64, POOL_NAME_JOB, NULL},
        {"@backup@db1", POOL_NAME_JOB, NULL},
        {"", POOL_NAME_INVALID, "is empty"},
        {"@", POOL_NAME_INVALID, "is empty"},
        {"@backup@", POOL_NAME_INVALID, "is that of a template, which has no pool"},
        {"@@report", POOL_NAME_INVALID, "is empty"},
        {"@a/b", POOL_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"*", POOL_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"/", POOL_NAME_INVALID, "is empty"},
        {"/acme", POOL_NAME_INVALID, "is empty"},
        {"tenant/", POOL_NAME_INVALID, "has no key behind the slash"},
        {"tenant/**", POOL_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"tenant/a*", POOL_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"tenant/a/b", POOL_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"a/b/*", POOL_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"*/acme", POOL_NAME_INVALID, "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"tenant/.a", POOL_NAME_INVALID, "begins with '.' or '-'"},
        {"-t/acme", POOL_NAME_INVALID, "begins with '.' or '-'"},
        {"tenant/a b", POOL_NAME_INVALID, "has a space"},
        {X64 "x/acme", POOL_NAME_INVALID, "is longer than 64 characters"},
        {"tenant/" X64 "x", POOL_NAME_INVALID, "is longer than 64 characters"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        TEST_INT(pool_name_parse(cases[i].text), cases[i].kind);
        if (cases[i].why)
            TEST_STRING(pool_name_explain(cases[i].text), cases[i].why);
        TEST_INT(pool_name_is_claimable(cases[i].text), cases[i].kind != POOL_NAME_INVALID && cases[i].kind != POOL_NAME_PATTERN);
    }
    TEST_INT(strlen(X64 "/" X64), POOL_NAME_MAX_LENGTH);
}

static void test_patterns(void) {
    char pattern[POOL_NAME_SIZE];

    TEST_STRING(pool_name_pattern("tenant/acme", pattern), "tenant/*");
    TEST_STRING(pool_name_pattern(X64 "/" X64, pattern), X64 "/*");
    CU_ASSERT_PTR_NULL(pool_name_pattern("tenant", pattern));
    CU_ASSERT_PTR_NULL(pool_name_pattern("tenant/*", pattern));
    CU_ASSERT_PTR_NULL(pool_name_pattern("tenant/a/b", pattern));
    CU_ASSERT(pool_name_matches("tenant/*", "tenant/acme"));
    CU_ASSERT_FALSE(pool_name_matches("tenant/*", "tenant/*"));
    CU_ASSERT_FALSE(pool_name_matches("tenant/*", "tenants/acme"));
    CU_ASSERT_FALSE(pool_name_matches("tenant/*", "tenant"));
    CU_ASSERT_FALSE(pool_name_matches("tenant/acme", "tenant/acme"));
    CU_ASSERT_FALSE(pool_name_matches("tenant", "tenant/acme"));
}

static CU_TestInfo tests[] = {
    {"a plain name, a key, a pattern, the pool of a job", test_kinds},
    {"the pattern of a key", test_patterns},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "pool-name", .pTests = tests});
