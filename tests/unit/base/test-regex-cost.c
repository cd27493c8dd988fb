/* SPDX-License-Identifier: MIT */
#include "base/regex-cost.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

static void test_costs(void) {
    static const struct {
        const char *regex;
        unsigned length, depth;
    } cases[] = {
        {"", 0, 0},
        {"abc", 3, 0},
        {"a\\*b", 3, 0},
        {"[]*+]x[^]*]", 3, 0},
        {"[[:alpha:]*]", 1, 0},
        {"[abc", 1, 0},
        {"x*", 1, 1},
        {"x+", 2, 1},
        {"x{3}", 3, 1},
        {"x{2,5}y", 6, 1},
        {"x{2,}", 2, 1},
        {"x{0,0}", 1, 1},
        {"[a-z]+(-[a-z]+)*", 5, 2},
        {"[0-9]{1,3}([.][0-9]{1,3}){3}", 15, 2},
        {"(ab){2}c", 5, 1},
        {"(a|b)?", 3, 1},
        {"()", 1, 0},
        {"(()()){2}", 4, 1},
        {"(){32767}", REGEX_LENGTH_MAX + 1, 1},
        {"x**", 1, 2},
        {"((x*)+)?", 2, 3},
        {"(x{3", 3, 1},
        {")*", 1, 1},
        {"x{512}", 512, 1},
        {"x{513}", REGEX_LENGTH_MAX + 1, 1},
        {"x{512}y", REGEX_LENGTH_MAX + 1, 1},
        {"(x{512}){99999999999999999999}*", REGEX_LENGTH_MAX + 1, 3},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct regex_cost cost = regex_cost(cases[i].regex);

        if (cost.length != cases[i].length || cost.depth != cases[i].depth)
            printf("%s\n", cases[i].regex);
        TEST_INT(cost.length, cases[i].length);
        TEST_INT(cost.depth, cases[i].depth);
    }
}

static void test_too_many_groups(void) {
    char regex[65];

    memset(regex, '(', sizeof(regex) - 1);
    regex[64] = '\0';
    TEST_INT(regex_cost(regex).length, REGEX_LENGTH_MAX + 1);
    regex[63] = '\0';
    TEST_INT(regex_cost(regex).length, 0);
}

static CU_TestInfo tests[] = {
    {"costs", test_costs},
    {"too many groups", test_too_many_groups},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "regex-cost", .pTests = tests});
