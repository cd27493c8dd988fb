/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include "tests/harness/test.h"

static void test_add(void) {
    CU_ASSERT(usec_add(1, 2) == 3);
    CU_ASSERT(usec_add(USEC_INFINITY, 0) == USEC_INFINITY);
    CU_ASSERT(usec_add(USEC_INFINITY, 1) == USEC_INFINITY);
    CU_ASSERT(usec_add(1, USEC_INFINITY) == USEC_INFINITY);
    CU_ASSERT(usec_add(0, USEC_INFINITY) == USEC_INFINITY);
    CU_ASSERT(usec_add(USEC_INFINITY - 1, 2) == USEC_INFINITY);
    CU_ASSERT(usec_add(USEC_INFINITY - 2, 1) == USEC_INFINITY - 1);
}

static void test_sub(void) {
    CU_ASSERT(usec_sub(3, 2) == 1);
    CU_ASSERT(usec_sub(2, 2) == 0);
    CU_ASSERT(usec_sub(2, 3) == 0);
    CU_ASSERT(usec_sub(2, USEC_INFINITY) == 0);
    CU_ASSERT(usec_sub(USEC_INFINITY, 5) == USEC_INFINITY);
    CU_ASSERT(usec_sub(USEC_INFINITY, USEC_INFINITY) == 0);
}

static void test_format(void) {
    char text[CLOCK_TEXT_SIZE];

    TEST_STRING(clock_format(0, text), "1970-01-01T00:00:00.000000Z");
    TEST_STRING(clock_format(UINT64_C(1795172479123456), text), "2026-11-20T11:01:19.123456Z");
    TEST_STRING(clock_format(UINT64_C(951782400000001), text), "2000-02-29T00:00:00.000001Z");
    TEST_STRING(clock_format(UINT64_C(253402300799999999), text), "9999-12-31T23:59:59.999999Z");
    TEST_STRING(clock_format(UINT64_C(253402300800000000), text), "");
    TEST_STRING(clock_format(USEC_INFINITY, text), "");
}

static void test_read(void) {
    usec_t first = clock_boottime();

    CU_ASSERT(first > 0);
    CU_ASSERT(clock_boottime() >= first);
    CU_ASSERT(clock_realtime() > UINT64_C(1700000000000000));
}

static CU_TestInfo tests[] = {
    {"add", test_add}, {"sub", test_sub}, {"format", test_format}, {"read", test_read}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "clock", .pTests = tests});
