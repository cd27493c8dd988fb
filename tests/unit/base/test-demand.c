/* SPDX-License-Identifier: MIT */
#include "base/demand.h"

#include <string.h>

#include "tests/harness/test.h"

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void test_add(void) {
    struct demands d = {};

    TEST_INT(demands_add(&d, "db"), 0);
    TEST_INT(demands_add(&d, "net:999"), 0);
    TEST_INT(d.n, 2);
    TEST_INT(demands_get(&d, "db"), 1);
    TEST_INT(demands_get(&d, "net"), 999);
    TEST_INT(demands_get(&d, "ne"), 0);
    TEST_INT(demands_add(&d, "more"), DEMAND_E_PERMITS); /* 1000 in all */
    TEST_INT(d.n, 2);
}

static void test_refuse(void) {
    static const struct {
        const char *text;
        int answer;
    } wrong[] = {
        {"", DEMAND_E_NAME},           {":1", DEMAND_E_NAME},        {"a b", DEMAND_E_NAME},
        {"a,b", DEMAND_E_NAME},        {"a/b/c", DEMAND_E_NAME},    {"a/", DEMAND_E_NAME},
        {"a/*", DEMAND_E_PATTERN},     {"/b", DEMAND_E_NAME},       {"@j", DEMAND_E_NAME},       {X64 "/" X64 "x", DEMAND_E_NAME},
               {X64 "x", DEMAND_E_NAME},     {X64 "x:1", DEMAND_E_NAME},
        {"a:", DEMAND_E_SYNTAX},       {"a:x", DEMAND_E_SYNTAX},     {"a:-1", DEMAND_E_SYNTAX},
        {"a:1:2", DEMAND_E_SYNTAX},    {"a:01", DEMAND_E_SYNTAX},    {"a: 1", DEMAND_E_SYNTAX},
        {"a:0x1", DEMAND_E_SYNTAX},    {"a:0", DEMAND_E_PERMITS},    {"a:1001", DEMAND_E_PERMITS},
        {"a:9999999", DEMAND_E_PERMITS}, {"a:99999999999999999999", DEMAND_E_PERMITS}, {"a:0000000000001", DEMAND_E_SYNTAX},
        {"a:manypermits", DEMAND_E_SYNTAX}, {"old", DEMAND_E_TWICE}, {"old:2", DEMAND_E_TWICE},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct demands d = {};

        TEST_INT(demands_add(&d, "old"), 0);
        TEST_INT(demands_add(&d, wrong[i].text), wrong[i].answer);
        TEST_INT(d.n, 1);
        CU_ASSERT(strlen(demands_explain(wrong[i].answer)) > 0);
    }
}

static void test_many(void) {
    struct demands d = {}, back = {};
    char name[16], text[DEMANDS_TEXT_SIZE];

    for (int i = 0; i < DEMAND_POOLS_MAX; i++) {
        snprintf(name, sizeof(name), "p%d:31", i);
        TEST_INT(demands_add(&d, name), 0);
    }
    TEST_INT(demands_add(&d, "one-more"), DEMAND_E_MANY);
    TEST_INT(d.n, DEMAND_POOLS_MAX);
    TEST_INT(demands_parse(demands_format(&d, text), &back), 0);
    TEST_INT(back.n, DEMAND_POOLS_MAX);
    TEST_INT(demands_get(&back, "p31"), 31);
}

static void test_text(void) {
    struct demands d = {}, untouched = {.n = 7};
    char text[DEMANDS_TEXT_SIZE];

    TEST_INT(demands_parse("db:2,net", &d), 0);
    TEST_STRING(demands_format(&d, text), "db:2,net:1");
    TEST_INT(demands_parse("", &d), 0);
    TEST_INT(d.n, 0);
    TEST_STRING(demands_format(&d, text), "");
    TEST_INT(demands_parse(X64 ":1000", &d), 0);
    TEST_STRING(demands_format(&d, text), X64 ":1000");
    TEST_INT(demands_parse("@job,net:2", &d), 0); /* of a record */
    TEST_STRING(demands_format(&d, text), "@job:1,net:2");
    TEST_INT(demands_parse("a,", &untouched), DEMAND_E_SYNTAX);
    TEST_INT(demands_parse(",a", &untouched), DEMAND_E_NAME);
    TEST_INT(demands_parse("a,,b", &untouched), DEMAND_E_NAME);
    TEST_INT(demands_parse("a, b", &untouched), DEMAND_E_NAME);
    TEST_INT(demands_parse("a,a", &untouched), DEMAND_E_TWICE);
    TEST_INT(demands_parse("a:12345678,b", &untouched), DEMAND_E_PERMITS);
    TEST_INT(untouched.n, 7);
}

/* The longest text there can be fits its buffer. */
static void test_longest(void) {
    struct demands d = {.n = DEMAND_POOLS_MAX};
    char text[DEMANDS_TEXT_SIZE];

    for (size_t i = 0; i < DEMAND_POOLS_MAX; i++) {
        memcpy(d.items[i].pool, X64 "/" X64, sizeof(X64 "/" X64));
        d.items[i].permits = DEMAND_PERMITS_MAX;
    }
    TEST_INT(strlen(demands_format(&d, text)), DEMAND_POOLS_MAX * (POOL_NAME_MAX_LENGTH + 6) - 1);
}

static CU_TestInfo tests[] = {
    {"add", test_add}, {"refuse", test_refuse}, {"many", test_many}, {"text", test_text}, {"longest", test_longest}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "demand", .pTests = tests});
