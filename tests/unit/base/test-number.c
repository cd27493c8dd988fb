/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <errno.h>

#include "tests/harness/test.h"

static void number(const char *text, uint64_t max, int answer, uint64_t expected) {
    uint64_t value = 4711;

    TEST_INT(number_parse(text, max, &value), answer);
    TEST_INT(value, answer == 0 ? expected : 4711);
}

static void size(const char *text, int answer, uint64_t expected) {
    uint64_t bytes = 4711;

    TEST_INT(size_parse(text, &bytes), answer);
    TEST_INT(bytes, answer == 0 ? expected : 4711);
}

static void test_number(void) {
    number("0", 0, 0, 0);
    number("7", 7, 0, 7);
    number("18446744073709551615", UINT64_MAX, 0, UINT64_MAX);
    number("8", 7, -ERANGE, 0);
    number("18446744073709551616", UINT64_MAX, -ERANGE, 0);
    number("99999999999999999999999", UINT64_MAX, -ERANGE, 0);
}

static void test_number_refuses(void) {
    static const char *const wrong[] = {"", "010", "00", "0x10", "+1", "-1", " 1", "1 ", "1.5", "1e3", "a", "1a", "\xc2\xb9"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        number(wrong[i], UINT64_MAX, -EINVAL, 0);
}

static void test_size(void) {
    size("0", 0, 0);
    size("512", 0, 512);
    size("64K", 0, 65536);
    size("64M", 0, UINT64_C(64) << 20);
    size("2G", 0, UINT64_C(2) << 30);
    size("1T", 0, UINT64_C(1) << 40);
    size("16777215T", 0, UINT64_C(16777215) << 40);
    size("16777216T", -ERANGE, 0);
    size("18446744073709551616", -ERANGE, 0);
}

static void test_size_refuses(void) {
    static const char *const wrong[] = {"", "K", "1k", "1KB", "1 K", "-1K", "01K", "1KK", "0x1K", "1P"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        size(wrong[i], -EINVAL, 0);
}

static CU_TestInfo tests[] = {
    {"number", test_number},
    {"number-refuses", test_number_refuses},
    {"size", test_size},
    {"size-refuses", test_size_refuses},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "number", .pTests = tests});
