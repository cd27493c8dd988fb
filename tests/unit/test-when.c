/* SPDX-License-Identifier: MIT */
#include "cli/when.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/harness/test.h"

#define NOW (UINT64_C(1763640000) * USEC_PER_SEC) /* 2025-11-20T12:00:00Z */

static void parses(const char *text, usec_t expected) {
    usec_t usec = 0;

    TEST_INT(when_parse(text, NOW, &usec), 0);
    TEST_INT(usec, expected);
}

static void test_parse(void) {
    parses("2025-11-20T12:00:00Z", NOW);
    parses("2025-11-20T12:00:00.25Z", NOW + 250000);
    parses("2025-11-20T12:00:00.1234567z", NOW + 123456);
    parses("2025-11-20T13:30:00+01:30", NOW);
    parses("2025-11-20T07:00:00-05:00", NOW);
    parses("1970-01-01T00:00:00Z", 0);
    parses("2024-02-29T00:00:00Z", UINT64_C(1709164800) * USEC_PER_SEC);
    parses("-2h", NOW - 7200 * USEC_PER_SEC);
    parses("-1h30m", NOW - 5400 * USEC_PER_SEC);
    parses("-0s", NOW);
}

static void test_local(void) {
    setenv("TZ", "XYZ-2", 1); /* two hours east */
    tzset();
    parses("2025-11-20 14:00", NOW);
    parses("2025-11-20 14:00:30", NOW + 30 * USEC_PER_SEC);
    parses("2025-11-20T12:00:00Z", NOW);
    unsetenv("TZ");
    tzset();
}

static void test_refuse(void) {
    static const char *const wrong[] = {"", "now", "2h", "--2h", "- 2h", "2025-11-20", "2025-11-20T12:00:00", "2025-11-20T12:00Z",
                                        "2025-11-31T12:00:00Z", "2025-02-29T12:00:00Z", "2025-13-01T12:00:00Z", "2025-00-01T12:00:00Z",
                                        "2025-11-20T24:00:00Z", "2025-11-20T12:60:00Z", "2025-11-20 12:00 ", "2025-11-20 12",
                                        "2025-11-20 12:00Z", "2025-11-20T12:00:00Zx", "2025-11-20T12:00:00+1:00", "1969-12-31T23:59:59Z",
                                        "2025-11-20  12:00", "25-11-20 12:00", "2025-11-20T12:00:00.Z"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        usec_t usec = 4711;

        if (when_parse(wrong[i], NOW, &usec) != -EINVAL || usec != 4711) {
            printf("%s\n", wrong[i]);
            CU_FAIL("is taken for a time");
        }
    }
}

static CU_TestInfo tests[] = {{"parse", test_parse}, {"local", test_local}, {"refuse", test_refuse}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "when", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
