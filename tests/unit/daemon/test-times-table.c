/* SPDX-License-Identifier: MIT */

/* How long runs held their permits: bounds, trends, and the two texts. */

#include "daemon/times-table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

#define MSEC USEC_PER_MSEC

static struct times times;

static void reset(void) {
    memset(&times, 0, sizeof(times));
}

static usec_t cap(const char *name, void *userdata) {
    (void) userdata;
    return strcmp(name, "a") == 0 ? 7 * USEC_PER_SEC : USEC_INFINITY;
}

static struct times_summary summary_of(size_t i) {
    struct times_summary s;

    times_summarize(&times.names[i], &s);
    return s;
}

/* The last 64 count. Percentiles lie between the two next to them. */
static void test_quantiles(void) {
    struct times_summary s;

    reset();
    TEST_INT(times_add(&times, "a", 500 * MSEC), 1);
    s = summary_of(0);
    CU_ASSERT(s.n == 1 && s.q_msec[0] == 500 && s.q_msec[7] == 500);
    reset();
    for (unsigned i = 0; i < 70; i++)
        (void) times_add(&times, "a", (i < 6 ? 9999 : 1000 + i % 2) * MSEC);
    s = summary_of(0);
    CU_ASSERT(s.n == 64 && s.q_msec[0] == 1000 && s.q_msec[7] == 1001);
    reset();
    for (unsigned i = 0; i < 19; i++)
        (void) times_add(&times, "a", 100 * (i % 2 ? 19 - i : i + 1) * MSEC); /* 100 to 1900, in no order */
    s = summary_of(0);
    CU_ASSERT(s.q_msec[0] == 100 && s.q_msec[1] == 100 && s.q_msec[2] == 500 && s.q_msec[3] == 1000);
    CU_ASSERT(s.q_msec[4] == 1500 && s.q_msec[5] == 1800 && s.q_msec[6] == 1900 && s.q_msec[7] == 1900);
    reset();
    (void) times_add(&times, "a", USEC_INFINITY - 1);
    CU_ASSERT(summary_of(0).q_msec[3] == UINT32_MAX);
}

/* A trend is added: older runs count as if they had run now. Runs that merely differ count as measured. */
static void test_trend(void) {
    reset();
    for (unsigned i = 0; i < 64; i++)
        (void) times_add(&times, "a", (1000 + 20 * i) * MSEC);
    CU_ASSERT(summary_of(0).q_msec[3] > 2100 && summary_of(0).q_msec[3] < 2400);
    CU_ASSERT(summary_of(0).q_msec[0] > 2000 && summary_of(0).q_msec[7] < 2500);
    reset();
    for (unsigned i = 0; i < 64; i++)
        (void) times_add(&times, "a", (2300 - 20 * i) * MSEC);
    CU_ASSERT(summary_of(0).q_msec[3] > 900 && summary_of(0).q_msec[3] < 1200);
    reset();
    for (unsigned i = 0; i < 64; i++)
        (void) times_add(&times, "a", (i % 4 == 3 ? 8000 : 1000) * MSEC);
    CU_ASSERT(summary_of(0).q_msec[3] == 1000 && summary_of(0).q_msec[7] == 8000);
    reset();
    for (unsigned i = 0; i < 9; i++) /* too few to see a trend */
        (void) times_add(&times, "a", (1000 + 100 * i) * MSEC);
    CU_ASSERT(summary_of(0).q_msec[7] == 1800);
}

/* A new name replaces the one that has had no run for the longest time. */
static void test_names(void) {
    char name[16];

    reset();
    for (unsigned i = 0; i <= TIMES_NAMES_MAX; i++) {
        snprintf(name, sizeof(name), "job%u", i);
        (void) times_add(&times, name, MSEC);
        if (i == 5)
            (void) times_add(&times, "job0", MSEC);
    }
    TEST_INT(times.n, TIMES_NAMES_MAX);
    TEST_INT(times_add(&times, "job0", MSEC), 3);
    TEST_INT(times_add(&times, "job1", MSEC), 1);
}

/* A restarted berthd loads the same times, in the same order. */
static void test_kept(void) {
    _cleanup_free_ char *text = NULL, *again = NULL;

    reset();
    for (unsigned i = 0; i < 100; i++)
        (void) times_add(&times, i % 3 ? "a" : "backup@db1", i * MSEC);
    text = times_save(&times);
    reset();
    TEST_INT(times_load(&times, text), 0);
    again = times_save(&times);
    TEST_STRING(again, text);
    TEST_INT(times.n, 2);
    CU_ASSERT(times_load(&times, "a 1 2 x\n") < 0);
    CU_ASSERT(times_load(&times, "a/b 1\n") < 0);
    CU_ASSERT(times_load(&times, "a 4294967296\n") < 0);
    TEST_INT(times_load(&times, ""), 0);
}

static void test_told(void) {
    _cleanup_free_ char *text = NULL, *little = NULL;
    struct times_summary s;
    const char *rest;

    reset();
    for (unsigned i = 0; i < 10; i++)
        (void) times_add(&times, "a", 2000 * MSEC);
    (void) times_add(&times, "b", 5 * MSEC);
    text = times_format(&times, 1000, cap, NULL);
    TEST_STRING(text, "b 1 0 5 5 5 5 5 5 5 5\na 10 7000 2000 2000 2000 2000 2000 2000 2000 2000\n");
    rest = times_read(text, &s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
    CU_ASSERT(s.n == 1 && s.q_msec[3] == 5 && s.cap_msec == 0);
    rest = times_read(rest, &s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
    TEST_STRING(s.name, "a");
    CU_ASSERT(s.n == 10 && s.cap_msec == 7000);
    CU_ASSERT_PTR_NULL(times_read(rest, &s));
    little = times_format(&times, 30, cap, NULL); /* the name whose last run is the newest */
    TEST_STRING(little, "b 1 0 5 5 5 5 5 5 5 5\n");
}

/* Any client of Redis may have written the text. */
static void test_lies(void) {
    static const char *const texts[] = {"",
                                        "a",
                                        "a\n",
                                        "a 1 0 1 1 1 1 1 1 1\n",
                                        "a 1 0 1 1 1 1 1 1 1 1 1\n",
                                        "a 0 0 1 1 1 1 1 1 1 1\n",
                                        "a 65 0 1 1 1 1 1 1 1 1\n",
                                        "a 1 0 1 1 1 1 1 1 1 0\n",
                                        "a 1 0 1 1 1 1 1 1 1 -1\n",
                                        "a b 0 1 1 1 1 1 1 1 1\n",
                                        "\x1b[2J 1 0 1 1 1 1 1 1 1 1\n",
                                        "a 1 0 1 1 1 1 1 1 1 4294967296\n",
                                        "a 1 0 1 1 1 1 1 1 1 1"};
    struct times_summary s;

    for (size_t i = 0; i < ELEMENTSOF(texts); i++)
        CU_ASSERT_PTR_NULL(times_read(texts[i], &s));
}

static CU_TestInfo tests[] = {
    {"quantiles", test_quantiles}, {"trend", test_trend}, {"names", test_names}, {"kept", test_kept},
    {"reported", test_told},           {"lies", test_lies},   CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "times", .pTests = tests});
