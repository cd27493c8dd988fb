/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <errno.h>

#include "tests/harness/test.h"

static void parses(const char *text, usec_t expected) {
    usec_t usec = 0;

    TEST_INT(duration_parse(text, &usec), 0);
    TEST_INT(usec, expected);
}

static void refuses(const char *text, int error) {
    usec_t usec = 4711;

    TEST_INT(duration_parse(text, &usec), error);
    TEST_INT(usec, 4711);
}

static void test_parse(void) {
    parses("250ms", 250000);
    parses("30s", 30 * USEC_PER_SEC);
    parses("1h30m", 5400 * USEC_PER_SEC);
    parses("1d2h3m4s5ms", 93784005 * USEC_PER_MSEC);
    parses("0s", 0);
    parses("3650d", 3650 * 86400 * USEC_PER_SEC);
}

static void test_refuse(void) {
    static const char *const wrong[] = {"", "5", "s", "5 s", "-5s", "5s5s", "5s1m", "5ss", "1.5s", "5sm", "0x5s", "5S", "+5s"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        refuses(wrong[i], -EINVAL);
    refuses("3651d", -ERANGE);
    refuses("99999999999999999999999s", -ERANGE);
    refuses("18446744073709551615ms", -ERANGE);
}

static void test_format(void) {
    char text[DURATION_TEXT_SIZE];

    TEST_STRING(duration_format(5400 * USEC_PER_SEC, text), "1h30m");
    TEST_STRING(duration_format(250000, text), "250ms");
    TEST_STRING(duration_format(0, text), "0s");
    TEST_STRING(duration_format(USEC_INFINITY, text), "never");
    TEST_STRING(duration_format(93784005 * USEC_PER_MSEC, text), "1d2h3m4s5ms");
}

static CU_TestInfo tests[] = {
    {"parse", test_parse},
    {"refuse", test_refuse},
    {"format", test_format},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "duration", .pTests = tests});
