/* SPDX-License-Identifier: MIT */
#include "base/nearest.h"

#include "tests/harness/test.h"

static const char *const known[] = {"limit", "host-limit", "queue-limit", "scope", "description", "db"};

static const char *near(const char *written) {
    return nearest(written, known, sizeof(known) / sizeof(known[0]));
}

static void test_found(void) {
    TEST_STRING(near("limt"), "limit");         /* one left out */
    TEST_STRING(near("limiit"), "limit");       /* one too many */
    TEST_STRING(near("lomit"), "limit");        /* one replaced */
    TEST_STRING(near("ilmit"), "limit");        /* two neighbours swapped */
    TEST_STRING(near("host_limit"), "host-limit");
    TEST_STRING(near("que-limit"), "queue-limit");
    TEST_STRING(near("desciprtoin"), "description");
    TEST_STRING(near("bd"), "db");              /* a swap is one step, so not all of it is different */
    TEST_STRING(near("limit"), "limit");
    CU_ASSERT(near("scop") == known[3]); /* the known one itself */
}

static void test_none(void) {
    CU_ASSERT_PTR_NULL(near(""));
    CU_ASSERT_PTR_NULL(near("x"));
    CU_ASSERT_PTR_NULL(near("xy"));
    CU_ASSERT_PTR_NULL(near("timeout"));
    CU_ASSERT_PTR_NULL(near("Limits")); /* two steps, another first letter */
    CU_ASSERT_PTR_NULL(near("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"));
    CU_ASSERT_PTR_NULL(nearest("limit", known, 0));
}

/* Two steps or more from each other, and only alike by accident. */
static void test_misleading(void) {
    static const char *const options[] = {"nice", "at-start", "--name", "-p"};

    CU_ASSERT_PTR_NULL(nearest("once", options, 4));
    CU_ASSERT_PTR_NULL(nearest("restart", options, 4));
    CU_ASSERT_PTR_NULL(nearest("--same-as", options, 4));
    TEST_STRING(nearest("nicce", options, 4), "nice");
    TEST_STRING(nearest("ncie-", options, 4), "nice");
    TEST_STRING(nearest("-naem", options, 4), "--name");
}

static void test_first_of_equals(void) {
    static const char *const two[] = {"cat", "car"};

    TEST_STRING(nearest("cab", two, 2), "cat");
}

static void test_long_names(void) {
    static const char *const names[] = {
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", /* 65 */
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",  /* 64 */
    };

    CU_ASSERT(nearest("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy", names, 2) == names[1]);
    CU_ASSERT_PTR_NULL(nearest(names[0], names, 2));
}

static CU_TestInfo tests[] = {
    {"found", test_found},
    {"none", test_none},
    {"misleading", test_misleading},
    {"first-of-equals", test_first_of_equals},
    {"long-names", test_long_names},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "nearest", .pTests = tests});
