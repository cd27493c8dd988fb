/* SPDX-License-Identifier: MIT */

/* schedule_spread(): the part of a duration by which a time is spread. Another program computed the
 * expected numbers from the definitions of both hashes. */

#include <string.h>

#include "base/schedule/schedule.h"
#include "tests/harness/test.h"

#define SPREAD(x, ...) schedule_spread(x, (const char *const[]){__VA_ARGS__, NULL})
#define ZEROS "00000000000000000000000000000000"

static void test_known(void) {
    TEST_INT(SPREAD(15000, "retry", ZEROS, "1"), 9043);
    TEST_INT(SPREAD(600000, "splay", "berth", "backup", "web-01"), 192348);
    TEST_INT(SPREAD(600000, "splay", "berth", "backup", ""), 156887);
    CU_ASSERT(SPREAD(UINT64_MAX, "a", "b") == UINT64_C(12355895974393876010));
    CU_ASSERT(SPREAD(UINT64_MAX, "ab") == UINT64_C(15740586271646006755)); /* the texts are hashed apart */
    TEST_INT(SPREAD(0, "a"), 0);
    TEST_INT(SPREAD(1, "a"), 0);
}

/* 1000 hosts over ten minutes: about a hundred begin in each. */
static void test_even(void) {
    unsigned minutes[10] = {};
    char host[16];

    for (int i = 0; i < 1000; i++) {
        snprintf(host, sizeof(host), "web-%03d", i);
        minutes[SPREAD(600000, "splay", "berth", "backup", host) / 60000]++;
    }
    for (size_t i = 0; i < ELEMENTSOF(minutes); i++)
        CU_ASSERT(minutes[i] >= 60 && minutes[i] <= 140);
}

static CU_TestInfo tests[] = {
    {"known", test_known},
    {"even", test_even},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "spread", .pTests = tests});
