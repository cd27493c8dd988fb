/* SPDX-License-Identifier: MIT */
#include "cli/when.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/harness/test.h"

#define NOW (UINT64_C(1763640000) * USEC_PER_SEC) /* 2025-11-20T12:00:00Z */
#define HOUR (3600 * USEC_PER_SEC)

static void parses(const char *text, usec_t expected) {
    usec_t usec = 0;

    TEST_INT(when_parse(text, NOW, &usec), 0);
    TEST_INT(usec, expected);
}

struct row {
    const char *text, *utc; /* as `date -u` prints it */
};

static void in_zone(const char *zone, const char *now, const struct row *rows, size_t n) {
    setenv("TZ", zone, 1);
    tzset();
    for (size_t i = 0; i < n; i++) {
        struct tm tm = {}, at = {};
        usec_t usec = 0;
        char text[64];

        CU_ASSERT_PTR_NOT_NULL(strptime(now, "%Y-%m-%d %H:%M:%S", &at));
        CU_ASSERT_PTR_NOT_NULL(strptime(rows[i].utc, "%Y-%m-%d %H:%M:%S", &tm));
        if (when_parse(rows[i].text, (usec_t) timegm(&at) * USEC_PER_SEC, &usec) == 0 && usec == (usec_t) timegm(&tm) * USEC_PER_SEC)
            continue;
        printf("TZ=%s \"%s\": %s, not %s\n", zone, rows[i].text, clock_format(usec, text), rows[i].utc);
        CU_FAIL("is another time");
    }
    unsetenv("TZ");
    tzset();
}

static void test_absolute(void) {
    parses("2025-11-20T12:00:00Z", NOW);
    parses("2025-11-20T12:00Z", NOW);
    parses("2025-11-20 12:00:00Z", NOW);
    parses("2025-11-20T12:00:00.25Z", NOW + 250000);
    parses("2025-11-20T12:00:00.1234567z", NOW + 123456);
    parses("2025-11-20T13:30:00+01:30", NOW);
    parses("2025-11-20T07:00:00-05:00", NOW);
    parses("2025-11-20 12:00 UTC", NOW);
    parses("2025-11-20 UTC", NOW - 12 * HOUR);
    parses("1970-01-01T00:00:00Z", 0);
    parses("2024-02-29T00:00:00Z", UINT64_C(1709164800) * USEC_PER_SEC);
    parses("@1763640000", NOW);
    parses("@1763640000.5", NOW + 500000);
    parses("@0", 0);
}

static void test_relative(void) {
    parses("now", NOW);
    parses("-2h", NOW - 2 * HOUR);
    parses("+2h", NOW + 2 * HOUR);
    parses("-1h30m", NOW - 3 * HOUR / 2);
    parses("-0s", NOW);
    parses("2 hours ago", NOW - 2 * HOUR);
    parses("2h ago", NOW - 2 * HOUR);
    parses("1 hour ago", NOW - HOUR);
    parses("30 min ago", NOW - HOUR / 2);
    parses("30minutes left", NOW + HOUR / 2);
    parses("1 week 2 days ago", NOW - 9 * 24 * HOUR);
    parses("1d12h ago", NOW - 36 * HOUR);
    parses("-250ms", NOW - 250000);
    parses("-1M", NOW - 2629800 * USEC_PER_SEC);
    parses("-1m", NOW - 60 * USEC_PER_SEC);
    parses("-100y", 0); /* before 1970 */
}

/* UTC+1, in summer UTC+2: from 02:00 on the last Sunday of March to 03:00 on the last of October. */
static void test_berlin(void) {
    static const char zone[] = "CET-1CEST,M3.5.0,M10.5.0/3";
    static const struct row winter[] = {
        {"today", "2026-11-21 23:00:00"},
        {"yesterday", "2026-11-20 23:00:00"},
        {"tomorrow", "2026-11-22 23:00:00"},
        {"2026-11-21", "2026-11-20 23:00:00"},
        {"2026-11-21 14:00", "2026-11-21 13:00:00"},
        {"2026-11-21 14:00:30", "2026-11-21 13:00:30"},
        {"2026-11-21T14:00", "2026-11-21 13:00:00"},
        {"2026-07-21 14:00", "2026-07-21 12:00:00"},
        {"14:00", "2026-11-22 13:00:00"},
        {"00:15:30", "2026-11-21 23:15:30"},
        {"today UTC", "2026-11-21 00:00:00"}, /* where it is still the day before */
        {"00:15 UTC", "2026-11-21 00:15:00"},
    };
    static const struct row forward[] = {
        {"today", "2026-03-28 23:00:00"}, /* at UTC+1 */
        {"tomorrow", "2026-03-29 22:00:00"},
        {"01:59", "2026-03-29 00:59:00"},
        {"02:30", "2026-03-29 01:30:00"}, /* does not exist: 03:30 */
        {"03:00", "2026-03-29 01:00:00"},
        {"yesterday", "2026-03-27 23:00:00"},
    };
    static const struct row back[] = {
        {"today", "2026-10-24 22:00:00"},
        {"tomorrow", "2026-10-25 23:00:00"}, /* 25 hours later */
        {"01:59", "2026-10-24 23:59:00"},
        {"02:30", "2026-10-25 00:30:00"}, /* the first of two */
        {"03:00", "2026-10-25 02:00:00"},
        {"-2h", "2026-10-25 09:00:00"},
    };

    in_zone(zone, "2026-11-21 23:30:00", winter, sizeof(winter) / sizeof(winter[0]));
    in_zone(zone, "2026-03-29 10:00:00", forward, sizeof(forward) / sizeof(forward[0]));
    in_zone(zone, "2026-10-25 11:00:00", back, sizeof(back) / sizeof(back[0]));
}

static void test_other_zones(void) {
    static const struct row kathmandu[] = {
        {"today", "2026-11-21 18:15:00"}, {"14:00", "2026-11-22 08:15:00"}, {"2026-11-21 14:00", "2026-11-21 08:15:00"}};
    /* Clocks go from 00:00 to 01:00: this day begins at 01:00. */
    static const struct row sao_paulo[] = {
        {"today", "2018-11-04 03:00:00"}, {"00:30", "2018-11-04 03:30:00"}, {"01:00", "2018-11-04 03:00:00"}, {"yesterday", "2018-11-03 03:00:00"}};
    static const struct row west[] = {{"today", "2026-01-01 08:00:00"}, {"yesterday", "2025-12-31 08:00:00"}};

    in_zone("<+0545>-5:45", "2026-11-22 12:00:00", kathmandu, 3);
    in_zone("<-03>3<-02>,M11.1.0/0,M2.3.0/0", "2018-11-04 15:00:00", sao_paulo, 4);
    in_zone("PST8", "2026-01-02 07:59:59", west, 2);
}

static void test_refuse(void) {
    static const char *const wrong[] = {"", "2h", "--2h", "-", "+", "-2", "-2 fortnights", "2 hours", "2 hours ago now", "ago", "-2h ago",
                                        "-99999999999999999999h", "-h", "@", "@x", "@12x", "@1234567890123", "now UTC", " today", "Today",
                                        "today 12:00", "2025-11-31T12:00:00Z", "2025-02-29T12:00:00Z", "2025-02-30", "2025-13-01T12:00:00Z",
                                        "2025-00-01T12:00:00Z", "2025-11-20T24:00:00Z", "2025-11-20T12:60:00Z", "2025-11-20 12:00 ",
                                        "2025-11-20 12", "2025-11-20 ", "2025-11-20Z", "2025-11-20T12:00:00Zx", "2025-11-20T12:00:00+1:00",
                                        "2025-11-20 12:00Z UTC", "1969-12-31T23:59:59Z", "2025-11-20  12:00", "25-11-20 12:00",
                                        "2025-11-20T12:00:00.Z", "12", "12:", "12:6", "12:60", "24:00", "12:00Z", "1:00", " UTC", "UTC",
                                        "2025-11-20 12:00:00.00000000000000000000000000000000000000000000000000000000000000000000"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        usec_t usec = 4711;

        if (when_parse(wrong[i], NOW, &usec) != -EINVAL || usec != 4711) {
            printf("%s\n", wrong[i]);
            CU_FAIL("is taken for a time");
        }
    }
}

static CU_TestInfo tests[] = {
    {"absolute", test_absolute}, {"relative", test_relative}, {"berlin", test_berlin}, {"other-zones", test_other_zones},
    {"refuse", test_refuse}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "when", .pTests = tests});
